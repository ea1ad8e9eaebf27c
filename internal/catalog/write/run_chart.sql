-- ?1 region, ?2 category, ?3 run, ?4 a chart: the run's that was begun after it. These are few
SELECT id FROM charts NOT INDEXED
WHERE id > ?4 AND region = ?1 AND category = ?2 AND run = ?3 AND pages > 0 ORDER BY id DESC LIMIT 1;
