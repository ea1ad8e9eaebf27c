-- Decisions hold the write lock from their start. The queue waits for it; the connection itself never does.

-- name: begin
BEGIN IMMEDIATE;

-- name: commit
COMMIT;

-- name: rollback
ROLLBACK;

-- name: data_version
PRAGMA data_version;
