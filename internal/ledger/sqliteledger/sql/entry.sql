-- ?1 is the bucket's id throughout.

-- The first entry after ?2, and the one that follows it. The running total just before the first is where a window begins: what was
-- charged since is the bucket's total less this.
-- name: entry_base
SELECT e.at, e.total, e.units, n.total, n.units
FROM entries e LEFT JOIN entries n ON n.bucket = ?1 AND n.at = (SELECT min(at) FROM entries WHERE bucket = ?1 AND at > e.at)
WHERE e.bucket = ?1 AND e.at > ?2 ORDER BY e.at LIMIT 1;

-- The time of the entry with which the running total reached ?2.
-- name: entry_reaching
SELECT at FROM entries WHERE bucket = ?1 AND total >= ?2 ORDER BY total LIMIT 1;

-- name: entry_add
INSERT INTO entries (bucket, at, id, units, total, labels) VALUES (?1, ?2, ?3, ?4, ?5, ?6);

-- Forgets the oldest entries up to the time ?2, at most ?3 of them.
-- name: entry_trim
DELETE FROM entries WHERE bucket = ?1 AND at <= (
    SELECT max(at) FROM (SELECT at FROM entries WHERE bucket = ?1 AND at <= ?2 ORDER BY at LIMIT ?3));

-- ?2 at, ?3 id
-- name: entry_find
SELECT units FROM entries WHERE bucket = ?1 AND at = ?2 AND id = ?3;

-- How many entries follow ?2, counted up to ?3, and the least of their running totals.
-- name: entry_count_after
SELECT count(*), min(total) FROM (SELECT total FROM entries WHERE bucket = ?1 AND at > ?2 LIMIT ?3);

-- The ?2th entry from the newest.
-- name: entry_from_newest
SELECT at, total FROM entries WHERE bucket = ?1 ORDER BY at DESC LIMIT 1 OFFSET ?2;

-- name: entry_remove
DELETE FROM entries WHERE bucket = ?1 AND at = ?2;

-- Takes ?3 units out of the running totals after ?2.
-- name: entry_lower_after
UPDATE entries SET total = total - ?3 WHERE bucket = ?1 AND at > ?2;

-- The newest ?4 entries after ?2 and up to ?3 (all when ?4 is -1), oldest first.
-- name: entry_list
SELECT at, id, units, total, labels FROM (
    SELECT at, id, units, total, labels FROM entries WHERE bucket = ?1 AND at > ?2 AND at <= ?3
    ORDER BY at DESC LIMIT ?4)
ORDER BY at;

-- The oldest ?4 entries after ?2 and up to ?3 (all when ?4 is -1).
-- name: entry_page
SELECT at, id, units, total, labels FROM entries WHERE bucket = ?1 AND at > ?2 AND at <= ?3 ORDER BY at LIMIT ?4;
