-- ?1 credential, ?2 name throughout.

-- ?3 now
-- name: claim_find
SELECT holder FROM claims WHERE credential = ?1 AND name = ?2 AND expires_at > ?3;

-- ?3 holder, '' for done; ?4 when it lapses
-- name: claim_put
INSERT OR REPLACE INTO claims (credential, name, holder, expires_at) VALUES (?1, ?2, ?3, ?4);

-- name: claim_give_back
DELETE FROM claims WHERE credential = ?1 AND name = ?2;

-- Forgets those that lapsed by ?1, at most ?2 of them.
-- name: claim_trim
DELETE FROM claims WHERE (credential, name) IN (
    SELECT credential, name FROM claims WHERE expires_at <= ?1 ORDER BY expires_at LIMIT ?2);
