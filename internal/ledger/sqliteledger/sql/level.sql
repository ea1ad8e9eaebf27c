-- ?1 is the bucket's id, ?2 num and ?3 den of a rate.

-- name: level_find
SELECT l.at, l.total, l.level
FROM levels l JOIN entries e ON e.bucket = ?1 AND e.at = l.at AND e.total = l.total
WHERE l.bucket = ?1 AND l.num = ?2 AND l.den = ?3;

-- The level at ?4, by the entries after ?5 and before ?4, at whose end the running total is ?6: see quota.Rate. No more than ?7 units
-- are multiplied. And how many entries that are.
-- name: level_after
SELECT max(?3 * min(?7, ?6 - total + units) - ?2 * (?4 - at)), count(*) FROM entries WHERE bucket = ?1 AND at > ?5 AND at <= ?4;

-- ?4 at, ?5 total, ?6 level
-- name: level_keep
INSERT OR REPLACE INTO levels (bucket, num, den, at, total, level) VALUES (?1, ?2, ?3, ?4, ?5, ?6);

-- Forgets those that no entry goes with any more: older than ?2.
-- name: level_trim
DELETE FROM levels WHERE bucket = ?1 AND at <= ?2;

-- name: level_clear
DELETE FROM levels WHERE bucket = ?1;

-- name: level_list
SELECT num, den, at, total, level FROM levels WHERE bucket = ?1;
