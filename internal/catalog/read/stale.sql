-- ?1 before, ?2 limit: oldest first
SELECT video_id FROM videos WHERE fetched_at < ?1 ORDER BY fetched_at, id LIMIT ?2;
