-- ?1 region, ?2 category
SELECT (SELECT max(completed_at) FROM charts WHERE region = ?1 AND category = ?2),
       (SELECT at FROM unavailable WHERE region = ?1 AND category = ?2);
