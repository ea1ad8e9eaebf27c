-- ?1 video: oldest first
SELECT at, views, likes, comments FROM video_counters WHERE video = ?1 ORDER BY at;
