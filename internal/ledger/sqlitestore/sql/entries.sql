-- ?1 credential, ?2 bucket throughout.

-- The two newest entries.
-- name: entry_newest
SELECT at, id, units, total, labels FROM entries WHERE credential = ?1 AND bucket = ?2 ORDER BY at DESC LIMIT 2;

-- The last entry before ?3.
-- name: entry_before
SELECT at, total FROM entries WHERE credential = ?1 AND bucket = ?2 AND at < ?3 ORDER BY at DESC LIMIT 1;

-- The first two entries from ?3 on.
-- name: entry_from
SELECT at, units, total FROM entries WHERE credential = ?1 AND bucket = ?2 AND at >= ?3 ORDER BY at LIMIT 2;

-- The oldest ?5 entries after ?3 and up to ?4 (all when ?5 is -1).
-- name: entry_page
SELECT at, id, units, total, labels FROM entries
WHERE credential = ?1 AND bucket = ?2 AND at > ?3 AND at <= ?4 ORDER BY at LIMIT ?5;

-- The newest ?5 entries after ?3 and up to ?4, oldest first.
-- name: entry_list
SELECT at, id, units, total, labels FROM (
    SELECT at, id, units, total, labels FROM entries
    WHERE credential = ?1 AND bucket = ?2 AND at > ?3 AND at <= ?4 ORDER BY at DESC LIMIT ?5)
ORDER BY at;

-- ?3 at, ?4 id, ?5 units, ?6 total, ?7 labels
-- name: entry_add
INSERT INTO entries (credential, bucket, at, id, units, total, labels) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7);

-- Removes the entries after ?3 and up to ?4.
-- name: entry_remove
DELETE FROM entries WHERE credential = ?1 AND bucket = ?2 AND at > ?3 AND at <= ?4;

-- ?3 grain, ?4 labels without the run, ?5 units, ?6 charges
-- name: sum_add
INSERT INTO sums (credential, bucket, grain, labels, units, charges) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT DO UPDATE SET units = units + excluded.units, charges = charges + excluded.charges;

-- ?3 grain, ?4 labels
-- name: sum_drop_empty
DELETE FROM sums WHERE credential = ?1 AND bucket = ?2 AND grain = ?3 AND labels = ?4 AND charges <= 0;

-- ?3 the first grain
-- name: sum_list
SELECT grain, labels, units, charges FROM sums WHERE credential = ?1 AND bucket = ?2 AND grain >= ?3 ORDER BY grain, labels;

-- name: sum_clear
DELETE FROM sums WHERE credential = ?1 AND bucket = ?2;

-- ?3 at, ?4 id, ?5 units, ?6 labels
-- name: note_add
INSERT INTO notes (credential, bucket, at, id, units, labels) VALUES (?1, ?2, ?3, ?4, ?5, ?6);

-- The newest ?5 notes after ?3 and up to ?4 (all when ?5 is -1), oldest first.
-- name: note_list
SELECT at, id, units, 0, labels FROM (
    SELECT at, id, units, labels FROM notes
    WHERE credential = ?1 AND bucket = ?2 AND at > ?3 AND at <= ?4 ORDER BY at DESC, id DESC LIMIT ?5)
ORDER BY at, id;

-- Deletes at most ?4 notes, of ?3 or earlier.
-- name: note_trim
DELETE FROM notes WHERE (credential, bucket, at, id) IN (
    SELECT credential, bucket, at, id FROM notes WHERE credential = ?1 AND bucket = ?2 AND at <= ?3 ORDER BY at LIMIT ?4);

-- ?3 at, ?4 id
-- name: note_remove
DELETE FROM notes WHERE credential = ?1 AND bucket = ?2 AND at = ?3 AND id = ?4;
