-- ?1 credential, ?2 bucket throughout.

-- name: bucket_find
SELECT suspended_until, suspended_since, suspended_by, reason, reset_at, keep, floor, levels, others, recorded, digest FROM buckets WHERE credential = ?1 AND bucket = ?2;

-- ?3 suspended_until, ?4 suspended_since, ?5 suspended_by, ?6 reason, ?7 reset_at, ?8 keep, ?9 floor, ?10 levels, ?11 others, ?12 recorded, ?13 digest
-- name: bucket_put
INSERT OR REPLACE INTO buckets (credential, bucket, suspended_until, suspended_since, suspended_by, reason, reset_at, keep, floor, levels, others, recorded, digest)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13);

-- ?1 credential. Each bucket with the units of its entries and holds, whether it has a suspension
-- or usage by other programs, and the time of its newest entry or hold.
-- name: bucket_list
WITH names AS (
    SELECT bucket FROM buckets WHERE credential = ?1
    UNION SELECT bucket FROM sums WHERE credential = ?1
    UNION SELECT bucket FROM holds WHERE credential = ?1)
SELECT n.bucket,
    coalesce((SELECT total FROM entries WHERE credential = ?1 AND bucket = n.bucket ORDER BY at DESC LIMIT 1), 0) +
    coalesce((SELECT sum(units - drawn) FROM holds WHERE credential = ?1 AND bucket = n.bucket), 0),
    coalesce((SELECT suspended_until <> 0 OR others NOT IN ('null', '[]') FROM buckets WHERE credential = ?1 AND bucket = n.bucket), 0),
    max(coalesce((SELECT max(at) FROM entries WHERE credential = ?1 AND bucket = n.bucket), 0),
        coalesce((SELECT max(created_at) FROM holds WHERE credential = ?1 AND bucket = n.bucket), 0))
FROM names n ORDER BY n.bucket;

-- ?2 first name, ?3 last name, ?4 now, ?5 limit: buckets of label values whose entries and holds no
-- longer count.
-- name: bucket_idle
SELECT bucket FROM buckets b WHERE credential = ?1 AND bucket BETWEEN ?2 AND ?3 AND instr(bucket, '@') AND
    coalesce((SELECT max(at) FROM entries e WHERE e.credential = ?1 AND e.bucket = b.bucket), 0) + keep < ?4 AND
    coalesce((SELECT max(expires_at) FROM holds h WHERE h.credential = ?1 AND h.bucket = b.bucket), 0) + keep < ?4
LIMIT ?5;

-- name: bucket_remove
DELETE FROM buckets WHERE credential = ?1 AND bucket = ?2;

-- name: holds_remove
DELETE FROM holds WHERE credential = ?1 AND bucket = ?2;

-- name: hold_list
SELECT id, units, most, drawn, created_at, expires_at, lapse, labels, manual, note FROM holds WHERE credential = ?1 AND bucket = ?2;

-- ?3 id, ?4 units, ?5 most, ?6 drawn, ?7 created_at, ?8 expires_at, ?9 lapse, ?10 labels, ?11 manual, ?12 note
-- name: hold_put
INSERT OR REPLACE INTO holds (credential, bucket, id, units, most, drawn, created_at, expires_at, lapse, labels, manual, note)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12);

-- ?3 id
-- name: hold_remove
DELETE FROM holds WHERE credential = ?1 AND bucket = ?2 AND id = ?3;

-- ?3 id: the first entry, if the ID was used again.
-- name: lapsed_find
SELECT l.at FROM lapsed l JOIN entries e ON e.credential = ?1 AND e.bucket = ?2 AND e.at = l.at
WHERE l.credential = ?1 AND l.bucket = ?2 AND l.id = ?3 ORDER BY l.at LIMIT 1;

-- ?3 id, ?4 at
-- name: lapsed_put
INSERT OR REPLACE INTO lapsed (credential, bucket, id, at) VALUES (?1, ?2, ?3, ?4);

-- ?3 id, ?4 at
-- name: lapsed_remove
DELETE FROM lapsed WHERE credential = ?1 AND bucket = ?2 AND id = ?3 AND at = ?4;

-- Deletes at most ?4 rows, stamped ?3 or earlier.
-- name: lapsed_trim
DELETE FROM lapsed WHERE (credential, bucket, id, at) IN (
    SELECT credential, bucket, id, at FROM lapsed WHERE credential = ?1 AND bucket = ?2 AND at <= ?3 ORDER BY at LIMIT ?4);

-- ?1 credential, ?2 name
-- name: answer_find
SELECT request, decision, expires_at FROM answers WHERE credential = ?1 AND name = ?2;

-- ?1 credential, ?2 name, ?3 request, ?4 decision, ?5 expires_at
-- name: answer_keep
INSERT OR REPLACE INTO answers (credential, name, request, decision, expires_at) VALUES (?1, ?2, ?3, ?4, ?5);

-- ?1 credential, ?2 name
-- name: answer_forget
DELETE FROM answers WHERE credential = ?1 AND name = ?2;

-- Deletes at most ?2 rows that expired by ?1.
-- name: answer_trim
DELETE FROM answers WHERE (credential, name) IN (
    SELECT credential, name FROM answers WHERE expires_at <= ?1 ORDER BY expires_at LIMIT ?2);

-- Changes hold the write lock from their start. The queue waits for it; the connection itself never does.

-- name: begin
BEGIN IMMEDIATE;

-- name: commit
COMMIT;

-- name: rollback
ROLLBACK;
