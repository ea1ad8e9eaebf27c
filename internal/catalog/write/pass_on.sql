-- ?1 chart, ?2 from run, ?3 to run. A chart that is complete stays whose it is.
UPDATE charts SET run = ?3 WHERE id = ?1 AND run = ?2 AND completed_at IS NULL;
