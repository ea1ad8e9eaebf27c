-- ?1 credential, ?2 bucket
-- name: bucket_find
SELECT id, total, newest, suspended_until, retention FROM buckets WHERE credential = ?1 AND bucket = ?2;

-- ?1 credential, ?2 bucket; answers its id. Ids begin at 2.
-- name: bucket_add
INSERT INTO buckets (id, credential, bucket)
SELECT coalesce(max(id), 1) + 1, ?1, ?2 FROM buckets
RETURNING id;

-- ?1 bucket's id, ?2 total, ?3 newest, ?4 retention
-- name: bucket_update
UPDATE buckets SET total = ?2, newest = ?3, retention = ?4 WHERE id = ?1;

-- ?1 bucket's id, ?2 units
-- name: bucket_lower
UPDATE buckets SET total = total - ?2 WHERE id = ?1;

-- ?1 bucket's id, ?2 until
-- name: bucket_suspend
UPDATE buckets SET suspended_until = ?2 WHERE id = ?1;
