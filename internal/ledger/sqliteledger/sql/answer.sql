-- ?1 credential, ?2 kind, ?3 key throughout.

-- ?4 now
-- name: answer_find
SELECT request, decision FROM answers WHERE credential = ?1 AND kind = ?2 AND key = ?3 AND expires_at > ?4;

-- An expired one of the same key gives way.
-- name: answer_keep
INSERT OR REPLACE INTO answers (credential, kind, key, request, decision, expires_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6);

-- name: answer_forget
DELETE FROM answers WHERE credential = ?1 AND kind = ?2 AND key = ?3;

-- Forgets those that expired by ?1, at most ?2 of them.
-- name: answer_trim
DELETE FROM answers WHERE (credential, kind, key) IN (
    SELECT credential, kind, key FROM answers WHERE expires_at <= ?1 ORDER BY expires_at LIMIT ?2);
