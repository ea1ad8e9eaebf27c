-- ?1 region, ?2 category: always one row
SELECT (SELECT max(completed_at) FROM charts WHERE region = ?1 AND category = ?2), at, coalesce(invalid, 0)
FROM (SELECT 1) LEFT JOIN unavailable ON region = ?1 AND category = ?2;
