-- ?1 video, ?2 at, ?3 views, ?4 likes, ?5 comments
INSERT OR REPLACE INTO video_counters (video, at, views, likes, comments) VALUES (?1, ?2, ?3, ?4, ?5);
