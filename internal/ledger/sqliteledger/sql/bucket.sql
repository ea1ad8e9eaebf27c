-- ?1 credential, ?2 bucket; with the time and the running total of its newest entry, the time of its oldest, and when the first of its
-- reservations ends that hold something.
-- name: bucket_find
SELECT b.id, b.total, b.newest, b.suspended_until, b.retention, b.held, b.at_most, b.reset_at, b.others, e.at, e.total,
    (SELECT min(at) FROM entries WHERE bucket = b.id), (SELECT min(ends_at) FROM reservations WHERE bucket = b.id AND may_take > 0)
FROM buckets b LEFT JOIN entries e ON e.bucket = b.id AND e.at = (SELECT max(at) FROM entries WHERE bucket = b.id)
WHERE b.credential = ?1 AND b.bucket = ?2;

-- ?1 credential, ?2 bucket; answers its id. Ids begin at 2.
-- name: bucket_add
INSERT INTO buckets (id, credential, bucket)
SELECT coalesce(max(id), 1) + 1, ?1, ?2 FROM buckets
RETURNING id;

-- ?1 bucket's id, ?2 total, ?3 newest, ?4 retention
-- name: bucket_update
UPDATE buckets SET total = ?2, newest = ?3, retention = ?4 WHERE id = ?1;

-- ?1 bucket's id, ?2 units. A log that has become empty begins at 0 again.
-- name: bucket_lower
UPDATE buckets SET total = CASE WHEN EXISTS (SELECT 1 FROM entries WHERE bucket = ?1) THEN total - ?2 ELSE 0 END WHERE id = ?1;

-- ?1 bucket's id, ?2 the end of its anchored window
-- name: bucket_reset
UPDATE buckets SET reset_at = ?2 WHERE id = ?1;

-- ?1 bucket's id, ?2 what others used in its windows
-- name: bucket_others
UPDATE buckets SET others = ?2 WHERE id = ?1;

-- ?1 credential
-- name: bucket_list
SELECT bucket, total + held, suspended_until <> 0 FROM buckets WHERE credential = ?1 ORDER BY bucket;

-- ?1 bucket's id, ?2 until
-- name: bucket_suspend
UPDATE buckets SET suspended_until = ?2 WHERE id = ?1;
