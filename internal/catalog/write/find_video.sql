-- ?1 video id
SELECT id, fetched_at, title, channel_id, channel_title, category, views, likes, comments, tags, description
FROM videos WHERE video_id = ?1;
