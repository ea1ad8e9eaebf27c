-- ?1 credential throughout.

-- The number of rows from hour ?2 on.
-- name: denial_rows
SELECT count(*) FROM denials WHERE credential = ?1 AND hour >= ?2;

-- ?2 hour, ?3 bucket, ?4 limit, ?5 labels, ?6 denials, ?7 units, ?8 last
-- name: denial_add
INSERT INTO denials (credential, hour, bucket, name, labels, denials, units, last_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
ON CONFLICT (credential, hour, bucket, name, labels) DO UPDATE SET
    denials = denials + excluded.denials, units = units + excluded.units, last_at = max(last_at, excluded.last_at);

-- Deletes the rows before hour ?2.
-- name: denial_trim
DELETE FROM denials WHERE credential = ?1 AND hour < ?2;

-- Rows whose last denial was at ?2 or later.
-- name: denial_list
SELECT hour, bucket, name, labels, denials, units, last_at FROM denials WHERE credential = ?1 AND last_at >= ?2;
