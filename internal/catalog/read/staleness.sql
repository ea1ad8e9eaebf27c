-- ?1 region: always one row
SELECT (SELECT max(completed_at) FROM charts WHERE region = ?1), at, coalesce(invalid, 0)
FROM (SELECT 1) LEFT JOIN unavailable ON region = ?1;
