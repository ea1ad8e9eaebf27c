-- ?1 before, ?2 limit
DELETE FROM videos WHERE id IN (SELECT id FROM videos WHERE fetched_at < ?1 ORDER BY fetched_at LIMIT ?2);
