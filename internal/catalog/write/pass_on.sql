-- ?1 chart, ?2 from run, ?3 to run. A complete chart keeps its run.
UPDATE charts SET run = ?3 WHERE id = ?1 AND run = ?2 AND completed_at IS NULL;
