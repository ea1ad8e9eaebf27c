-- ?1 before, ?2 limit
DELETE FROM charts WHERE id IN (SELECT id FROM charts WHERE started_at < ?1 ORDER BY started_at LIMIT ?2);
