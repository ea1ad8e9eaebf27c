-- ?1 video, ?2 at, ?3 title, ?4 channel id, ?5 channel title, ?6 category
INSERT OR REPLACE INTO video_names (video, at, title, channel_id, channel_title, category)
VALUES (?1, ?2, ?3, ?4, ?5, ?6);
