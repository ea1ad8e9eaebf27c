-- The log of every bucket, with what is set aside and what was answered. Times are Unix microseconds, UTC.

CREATE TABLE buckets (
    id              INTEGER PRIMARY KEY,         -- 2 or more: SQLite plans a statement anew when an id turns from or into 0 or 1
    credential      TEXT    NOT NULL,
    bucket          TEXT    NOT NULL,
    total           INTEGER NOT NULL DEFAULT 0,  -- units of all entries ever made and not cancelled
    newest          INTEGER NOT NULL DEFAULT 0,  -- time of the newest entry ever made, even if it is gone
    suspended_until INTEGER NOT NULL DEFAULT 0,  -- time; 0 when open
    retention       INTEGER NOT NULL DEFAULT 0,  -- microseconds for which entries are kept
    UNIQUE (credential, bucket)
) STRICT;

CREATE TABLE entries (
    bucket INTEGER NOT NULL REFERENCES buckets (id),
    at     INTEGER NOT NULL,  -- time; strictly rising within a bucket
    id     TEXT    NOT NULL,
    units  INTEGER NOT NULL,
    total  INTEGER NOT NULL,  -- units of the bucket up to and with this entry
    labels TEXT    NOT NULL,  -- name=value&name=value, in the order of names
    PRIMARY KEY (bucket, at)
) STRICT, WITHOUT ROWID;

CREATE INDEX entries_by_total ON entries (bucket, total);

CREATE TABLE reservations (
    bucket     INTEGER NOT NULL REFERENCES buckets (id),
    id         TEXT    NOT NULL,            -- with the bucket's name in front: default.06fmjq2kx4a9bc
    units      INTEGER NOT NULL,            -- as set aside
    drawn      INTEGER NOT NULL DEFAULT 0,  -- units of them charged since
    created_at INTEGER NOT NULL,            -- time
    expires_at INTEGER NOT NULL,            -- time; from then on it counts no more
    manual     INTEGER NOT NULL,            -- 1 when a person reserved
    note       TEXT    NOT NULL,
    PRIMARY KEY (bucket, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX reservations_by_expiry ON reservations (bucket, expires_at);

CREATE TABLE answers (
    credential TEXT    NOT NULL,
    kind       TEXT    NOT NULL,  -- 'key': of an idempotency key; 'commit': of the commit of a reservation
    key        TEXT    NOT NULL,  -- the idempotency key, or the reservation's id
    request    TEXT    NOT NULL,  -- what was asked
    decision   TEXT    NOT NULL,  -- what was answered, as JSON
    expires_at INTEGER NOT NULL,  -- time; from then on the key is new again
    PRIMARY KEY (credential, kind, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX answers_by_expiry ON answers (expires_at);

CREATE TABLE claims (
    credential TEXT    NOT NULL,
    name       TEXT    NOT NULL,  -- of the work
    holder     TEXT    NOT NULL,  -- who does it; '' when it is done
    expires_at INTEGER NOT NULL,  -- time; from then on it is anybody's
    PRIMARY KEY (credential, name)
) STRICT, WITHOUT ROWID;

CREATE INDEX claims_by_expiry ON claims (expires_at);
