-- ?1 is the bucket's id throughout.

-- The entries up to ?2 and after ?3, newest first.
-- name: entry_newest_first
SELECT at, id, units, total, labels FROM entries WHERE bucket = ?1 AND at <= ?2 AND at > ?3 ORDER BY at DESC;

-- Removes the entries after ?2 and up to ?3.
-- name: entry_remove_span
DELETE FROM entries WHERE bucket = ?1 AND at > ?2 AND at <= ?3;

-- Forgets, of the entries after ?2 and up to ?3, which reservation each was.
-- name: lapsed_remove_span
DELETE FROM lapsed WHERE bucket = ?1 AND at > ?2 AND at <= ?3;

-- ?2 at, ?3 id, ?4 units, ?5 labels
-- name: taking_add
INSERT INTO takings (bucket, at, id, units, labels) VALUES (?1, ?2, ?3, ?4, ?5);

-- Forgets those up to ?2.
-- name: taking_trim
DELETE FROM takings WHERE bucket = ?1 AND at <= ?2;

-- name: taking_remove
DELETE FROM takings WHERE bucket = ?1 AND at = ?2 AND id = ?3;

-- The newest ?4 after ?2 and up to ?3 (all when ?4 is -1), oldest first.
-- name: taking_list
SELECT at, id, units, labels FROM (
    SELECT at, id, units, labels FROM takings WHERE bucket = ?1 AND at > ?2 AND at <= ?3 ORDER BY at DESC, id DESC LIMIT ?4)
ORDER BY at, id;
