-- When a lease was granted or last extended, by a clock that nobody sets: µs since the boot of that
-- name. Empty where the system has no such clock.
ALTER TABLE leases ADD COLUMN boot TEXT NOT NULL DEFAULT '';
ALTER TABLE leases ADD COLUMN up_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE leases ADD COLUMN leased_at INTEGER NOT NULL DEFAULT 0; -- Unix µs by this host's clock

-- The same of what was spent, which lease paid for it, and what the ledger was asked for before,
-- whose answer may have been lost.
ALTER TABLE lines ADD COLUMN boot TEXT NOT NULL DEFAULT '';
ALTER TABLE lines ADD COLUMN up_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE lines ADD COLUMN lease TEXT NOT NULL DEFAULT '';
ALTER TABLE lines ADD COLUMN asked TEXT NOT NULL DEFAULT ''; -- a reservation; '' for a charge
ALTER TABLE lines ADD COLUMN key TEXT NOT NULL DEFAULT '';   -- idempotency key
CREATE INDEX lines_by_key ON lines (account, key) WHERE key <> '';

-- Buckets that are suspended: by what the ledger said last, or by the upstream since.
CREATE TABLE suspensions (
    account TEXT NOT NULL,
    bucket  TEXT NOT NULL,
    until   INTEGER NOT NULL,  -- Unix µs
    waits   INTEGER NOT NULL,  -- 1 before the ledger knows it
    PRIMARY KEY (account, bucket)
) STRICT, WITHOUT ROWID;
