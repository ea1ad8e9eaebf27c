-- ?1 is the bucket's id throughout.

-- Those that hold something at ?2, the first to expire first.
-- name: reservation_holds
SELECT remains, expires_at FROM reservations WHERE bucket = ?1 AND expires_at > ?2 AND remains > 0 ORDER BY expires_at;

-- What those hold that have expired by ?2 and are still there.
-- name: reservation_lapsed
SELECT coalesce(sum(remains), 0) FROM reservations WHERE bucket = ?1 AND expires_at <= ?2 AND remains > 0;

-- ?2 id
-- name: reservation_find
SELECT units, drawn, expires_at FROM reservations WHERE bucket = ?1 AND id = ?2;

-- An expired one of the same id gives way.
-- name: reservation_add
INSERT OR REPLACE INTO reservations (bucket, id, units, created_at, expires_at, manual, note)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7);

-- ?2 id, ?3 units. Fewer than none are given back, if they were drawn from this one, and not from an earlier one of its id.
-- name: reservation_draw
UPDATE reservations SET drawn = drawn + ?3 WHERE bucket = ?1 AND id = ?2 AND drawn + ?3 >= 0;

-- ?2 id
-- name: reservation_remove
DELETE FROM reservations WHERE bucket = ?1 AND id = ?2;

-- Forgets those that expired by ?2, at most ?3 of them.
-- name: reservation_trim
DELETE FROM reservations WHERE bucket = ?1 AND id IN (
    SELECT id FROM reservations WHERE bucket = ?1 AND expires_at <= ?2 ORDER BY expires_at LIMIT ?3);

-- Those unexpired at ?2, oldest first.
-- name: reservation_list
SELECT id, units, drawn, created_at, expires_at, manual, note FROM reservations
WHERE bucket = ?1 AND expires_at > ?2 ORDER BY created_at, id;
