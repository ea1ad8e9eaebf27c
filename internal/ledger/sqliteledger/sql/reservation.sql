-- ?1 is the bucket's id throughout.

-- Those that hold something at ?2, the first to expire first.
-- name: reservation_holds
SELECT remains, ends_at FROM reservations WHERE bucket = ?1 AND ends_at > ?2 AND may_take > 0 AND remains > 0 ORDER BY ends_at;

-- What those hold, and can turn out to take, that have expired by ?2 and are still there; and whether some of it is to become entries.
-- name: reservation_expired
SELECT coalesce(sum(remains), 0), coalesce(sum(may_take), 0), EXISTS (
    SELECT 1 FROM reservations WHERE bucket = ?1 AND (remains > 0) = 1 AND lapses_at <= ?2)
FROM reservations WHERE bucket = ?1 AND ends_at <= ?2 AND may_take > 0;

-- Whether there are some, unexpired at ?2, that become entries.
-- name: reservation_lapsing
SELECT EXISTS (SELECT 1 FROM reservations WHERE bucket = ?1 AND (remains > 0) IN (0, 1) AND lapses_at > ?2);

-- ?2 id
-- name: reservation_find
SELECT units, drawn, ends_at, may_take FROM reservations WHERE bucket = ?1 AND id = ?2;

-- An expired one of the same id gives way. ?2 id, ?3 units, ?4 most, ?5 created, ?6 expires, ?7 lapses (NULL: gives its units back),
-- ?8 labels, ?9 manual, ?10 note
-- name: reservation_add
INSERT OR REPLACE INTO reservations (bucket, id, units, most, created_at, expires_at, lapses_at, labels, manual, note)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10);

-- ?2 id, ?3 units. Fewer than none are given back, if they were drawn from this one, and not from an earlier one of its id.
-- name: reservation_draw
UPDATE reservations SET drawn = drawn + ?3 WHERE bucket = ?1 AND id = ?2 AND drawn + ?3 >= 0;

-- It lasts until ?3 at least. ?2 id
-- name: reservation_extend
UPDATE reservations SET
    expires_at = CASE WHEN lapses_at IS NULL THEN max(expires_at, ?3) ELSE expires_at END,
    lapses_at = max(lapses_at, ?3)
WHERE bucket = ?1 AND id = ?2;

-- ?2 id
-- name: reservation_ends
SELECT ends_at FROM reservations WHERE bucket = ?1 AND id = ?2;

-- ?2 id
-- name: reservation_remove
DELETE FROM reservations WHERE bucket = ?1 AND id = ?2;

-- Forgets those that expired by ?2, at most ?3 of them. Those that become entries are not among them.
-- name: reservation_trim
DELETE FROM reservations WHERE bucket = ?1 AND id IN (
    SELECT id FROM reservations WHERE bucket = ?1 AND lapses_at IS NULL AND expires_at <= ?2 ORDER BY expires_at LIMIT ?3);

-- Those unexpired at ?2, oldest first.
-- name: reservation_list
SELECT id, units, most, drawn, created_at, ends_at, lapses_at IS NOT NULL, manual, note FROM reservations
WHERE bucket = ?1 AND ends_at > ?2 ORDER BY created_at, id;
