-- ?1 region, ?2 category, ?3 run, ?4 chart: the run's newest chart begun after it. Only a few
-- rows have larger ids.
SELECT id FROM charts NOT INDEXED
WHERE id > ?4 AND region = ?1 AND category = ?2 AND run = ?3 ORDER BY id DESC LIMIT 1;
