-- ?1 limit: newest first
SELECT title, channel_title, tags, description FROM videos ORDER BY id DESC LIMIT ?1;
