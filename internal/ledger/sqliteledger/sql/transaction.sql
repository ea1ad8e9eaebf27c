-- Decisions hold the write lock from their start. To wait for it is the queue's work: the connection itself never waits.

-- name: begin
BEGIN IMMEDIATE;

-- name: commit
COMMIT;

-- name: rollback
ROLLBACK;

-- name: never_wait
PRAGMA busy_timeout = 0;
