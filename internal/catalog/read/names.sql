-- ?1 video: oldest first
SELECT at, title, channel_id, channel_title, category FROM video_names WHERE video = ?1 ORDER BY at;
