-- Units that were leased from a ledger, for times when it cannot be reached.
CREATE TABLE leases (
    reservation TEXT PRIMARY KEY,
    account     TEXT NOT NULL,    -- whose: a digest of the ledger's URL and the credential's name
    expires_at  INTEGER NOT NULL, -- Unix µs by this host's clock
    usable      INTEGER NOT NULL  -- 0 before the ledger has granted it, and once it is given back
) STRICT;

-- What is left of a lease.
CREATE TABLE parts (
    reservation TEXT NOT NULL REFERENCES leases ON DELETE CASCADE,
    bucket      TEXT NOT NULL,
    units       INTEGER NOT NULL,
    left        INTEGER NOT NULL CHECK (left >= 0),
    PRIMARY KEY (reservation, bucket)
) STRICT, WITHOUT ROWID;

-- The journal: what was spent and is not in the ledger yet.
CREATE TABLE lines (
    id          TEXT NOT NULL,
    bucket      TEXT NOT NULL,
    account     TEXT NOT NULL,
    units       INTEGER NOT NULL,
    spent_at    INTEGER NOT NULL, -- Unix µs by this host's clock
    labels      TEXT NOT NULL,
    PRIMARY KEY (id, bucket)
) STRICT, WITHOUT ROWID;

-- Who brings an account up to date, so that two processes do not.
CREATE TABLE turns (
    account TEXT PRIMARY KEY,
    until   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
