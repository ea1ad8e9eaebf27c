-- ?1 is the bucket's id throughout.

-- ?2 the start of a grain, ?3 a line of labels without the run, ?4 units, ?5 charges
-- name: sum_add
INSERT INTO sums (bucket, grain, labels, units, charges) VALUES (?1, ?2, ?3, ?4, ?5);

-- ?2 the first grain
-- name: sum_list
SELECT grain, labels, units, charges FROM sums WHERE bucket = ?1 AND grain >= ?2 ORDER BY grain, labels;

-- name: sum_clear
DELETE FROM sums WHERE bucket = ?1;

-- The units of the entries after ?2 and up to ?3: their last running total, less the one before their first.
-- name: sum_between
SELECT max(0, coalesce(
    (SELECT total FROM entries WHERE bucket = ?1 AND at > ?2 AND at <= ?3 ORDER BY at DESC LIMIT 1) -
    (SELECT total - units FROM entries WHERE bucket = ?1 AND at > ?2 AND at <= ?3 ORDER BY at LIMIT 1), 0));
