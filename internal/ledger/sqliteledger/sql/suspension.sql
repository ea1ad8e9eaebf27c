-- ?1 is the bucket's id throughout.

-- ?2 since, ?3 who made it, ?4 why
-- name: suspension_put
INSERT OR REPLACE INTO suspensions (bucket, since, made_by, reason) VALUES (?1, ?2, ?3, ?4);

-- name: suspension_drop
DELETE FROM suspensions WHERE bucket = ?1;

-- name: suspension_find
SELECT since, made_by, reason FROM suspensions WHERE bucket = ?1;
