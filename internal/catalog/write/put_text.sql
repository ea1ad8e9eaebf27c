-- ?1 video, ?2 title, ?3 channel title, ?4 tags, ?5 description, each split into words
INSERT OR REPLACE INTO texts (rowid, title, channel_title, tags, description) VALUES (?1, ?2, ?3, ?4, ?5);
