-- What a check reads, and what a repair writes. ?1 is the bucket's id, unless it says otherwise.

-- ?1 credential, ?2 bucket
-- name: check_bucket
SELECT id, total, newest, retention, reset_at, others, held, at_most,
    (SELECT coalesce(sum(remains), 0) FROM reservations WHERE bucket = buckets.id),
    (SELECT coalesce(sum(may_take), 0) FROM reservations WHERE bucket = buckets.id)
FROM buckets WHERE credential = ?1 AND bucket = ?2;

-- name: check_entries
SELECT at, id, units, total, labels FROM entries WHERE bucket = ?1 ORDER BY at;

-- name: check_reservations
SELECT id, units, drawn FROM reservations WHERE bucket = ?1;

-- ?2 at, ?3 new at, ?4 units, ?5 total, ?6 labels
-- name: mend_entry
UPDATE entries SET at = ?3, units = ?4, total = ?5, labels = ?6 WHERE bucket = ?1 AND at = ?2;

-- name: mend_held
UPDATE buckets SET held = (SELECT coalesce(sum(remains), 0) FROM reservations WHERE bucket = ?1),
    at_most = (SELECT coalesce(sum(may_take), 0) FROM reservations WHERE bucket = ?1) WHERE id = ?1;

-- ?2 total, ?3 newest, ?4 retention, ?5 the end of its anchored window
-- name: mend_bucket
UPDATE buckets SET total = ?2, newest = ?3, retention = ?4, reset_at = ?5 WHERE id = ?1;
