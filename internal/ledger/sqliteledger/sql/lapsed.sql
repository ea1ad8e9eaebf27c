-- ?1 is the bucket's id throughout. Reservations become entries of the most that they can have taken, those that expired by ?2, in the
-- order in which they did: each is stamped when it expired, but after all entries before it, of which the newest is of the time ?3. If
-- the nth of them expires at e(n), its stamp is n + max(?3, e(1) - 1, ..., e(n) - n).

-- name: lapse_stamps
INSERT INTO lapsed (bucket, id, at)
SELECT ?1, id, nth + max(?3, max(lapses_at - nth) OVER (ORDER BY nth))
FROM (
    SELECT id, lapses_at, row_number() OVER (ORDER BY lapses_at, id) AS nth FROM reservations
    WHERE bucket = ?1 AND (remains > 0) = 1 AND lapses_at <= ?2);

-- ?2 the running total before. The entry's id is the reservation's without the buckets: what comes after the last dot.
-- name: lapse_entries
INSERT INTO entries (bucket, at, id, units, total, labels)
SELECT ?1, l.at, substr(r.id, 1 + length(rtrim(r.id, replace(r.id, '.', '')))), r.may_take, ?2 + sum(r.may_take) OVER (ORDER BY l.at), r.labels
FROM lapsed l JOIN reservations r ON r.bucket = ?1 AND r.id = l.id
WHERE l.bucket = ?1 AND l.at > ?3;

-- name: lapse_reservations
DELETE FROM reservations WHERE bucket = ?1 AND id IN (SELECT id FROM lapsed WHERE bucket = ?1 AND at > ?2);

-- Forgets those whose entries are older than ?2, at most ?3 of them.
-- name: lapsed_trim
DELETE FROM lapsed WHERE bucket = ?1 AND at IN (SELECT at FROM lapsed WHERE bucket = ?1 AND at <= ?2 ORDER BY at LIMIT ?3);

-- Forgets reservations of which all was drawn before they lapsed, by the time ?2, at most ?3 of them.
-- name: lapsed_trim_drawn
DELETE FROM reservations WHERE bucket = ?1 AND id IN (
    SELECT id FROM reservations WHERE bucket = ?1 AND (remains > 0) = 0 AND lapses_at <= ?2 ORDER BY lapses_at LIMIT ?3);

-- The entry that the reservation ?2 has become.
-- name: lapsed_find
SELECT e.at, e.id, e.units, e.total, e.labels
FROM lapsed l JOIN entries e ON e.bucket = ?1 AND e.at = l.at
WHERE l.bucket = ?1 AND l.id = ?2 ORDER BY l.at LIMIT 1;

-- ?2 reservation, ?3 at
-- name: lapsed_remove
DELETE FROM lapsed WHERE bucket = ?1 AND id = ?2 AND at = ?3;
