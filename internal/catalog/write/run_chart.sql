-- ?1 region, ?2 run, ?3 chart: the run's newest chart begun after it. Only a few rows have larger
-- ids.
SELECT id FROM charts NOT INDEXED WHERE id > ?3 AND region = ?1 AND run = ?2 ORDER BY id DESC LIMIT 1;
