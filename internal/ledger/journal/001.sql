-- What the ledger does not have yet: calls that passed while it could not be reached, and usage
-- that is not booked yet.
CREATE TABLE lines (
    id      TEXT PRIMARY KEY, -- of the entry that the line becomes
    account TEXT NOT NULL,    -- a digest of the ledger's URL and the credential's name
    key     TEXT,             -- idempotency key of a spent line
    booking TEXT NOT NULL     -- quota.Booking as JSON
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX lines_by_key ON lines (account, key);

-- The units of the lines that passed without the ledger.
CREATE TABLE spent (
    id     TEXT NOT NULL REFERENCES lines ON DELETE CASCADE,
    bucket TEXT NOT NULL,
    units  INTEGER NOT NULL,
    PRIMARY KEY (id, bucket)
) STRICT, WITHOUT ROWID;

-- Calls that have not ended yet, by the path of the request for their state, and files that later
-- calls refer to, by their IDs. Times are Unix seconds.
CREATE TABLE notes (
    account TEXT NOT NULL,
    name    TEXT NOT NULL,
    text    TEXT NOT NULL,    -- JSON
    made    INTEGER NOT NULL,
    due     INTEGER NOT NULL, -- 0: never
    until   INTEGER NOT NULL, -- time from which it may be deleted
    PRIMARY KEY (account, name)
) STRICT, WITHOUT ROWID;
