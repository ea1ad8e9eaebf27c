-- The logs of all buckets, their holds, and answers to repeat. Times are Unix microseconds, UTC.

-- The entries are authoritative: the newest one has the bucket's total.
CREATE TABLE entries (
    credential TEXT    NOT NULL,
    bucket     TEXT    NOT NULL,
    at         INTEGER NOT NULL,  -- stamp; strictly rising within a bucket
    id         TEXT    NOT NULL,
    units      INTEGER NOT NULL,
    total      INTEGER NOT NULL,  -- units of the bucket up to and including this entry
    labels     TEXT    NOT NULL,  -- name=value&name=value, in the order of names
    PRIMARY KEY (credential, bucket, at)
) STRICT, WITHOUT ROWID;

-- Units that reservations hold: one row for each bucket.
CREATE TABLE holds (
    credential TEXT    NOT NULL,
    bucket     TEXT    NOT NULL,
    id         TEXT    NOT NULL,  -- with the names of its buckets in front: default.06fmjq2kx4a9bc
    units      INTEGER NOT NULL,  -- units held at the start
    most       INTEGER NOT NULL,  -- maximum units that the call may use; 0 if units is exact
    drawn      INTEGER NOT NULL,  -- units that charges have drawn from the hold
    created_at INTEGER NOT NULL,  -- time
    expires_at INTEGER NOT NULL,  -- time
    lapse      TEXT    NOT NULL,  -- 'charge': it becomes an entry when it expires; 'release': its units come free
    labels     TEXT    NOT NULL,  -- of that entry
    manual     INTEGER NOT NULL,  -- 1 if a person reserved
    note       TEXT    NOT NULL,
    PRIMARY KEY (credential, bucket, id)
) STRICT, WITHOUT ROWID;

-- Reservations that have become entries, so that a late settlement finds them.
CREATE TABLE lapsed (
    credential TEXT    NOT NULL,
    bucket     TEXT    NOT NULL,
    id         TEXT    NOT NULL,  -- of the reservation
    at         INTEGER NOT NULL,  -- stamp of the entry
    PRIMARY KEY (credential, bucket, id, at)
) STRICT, WITHOUT ROWID;

CREATE INDEX lapsed_by_time ON lapsed (credential, bucket, at);

-- The state of a bucket apart from its entries and holds.
CREATE TABLE buckets (
    credential      TEXT    NOT NULL,
    bucket          TEXT    NOT NULL,
    suspended_until INTEGER NOT NULL,  -- time; 0 when open
    suspended_since INTEGER NOT NULL,  -- time
    suspended_by    TEXT    NOT NULL,
    reason          TEXT    NOT NULL,  -- of the suspension
    reset_at        INTEGER NOT NULL,  -- last end of an anchored window that the upstream reported; 0 for none
    keep            INTEGER NOT NULL,  -- microseconds for which entries are kept
    floor           INTEGER NOT NULL,  -- newest stamp of a removed entry or hold; 0 if the newest is still there
    levels          TEXT    NOT NULL,  -- of restoring windows; JSON
    others          TEXT    NOT NULL,  -- usage by other programs, by window; JSON
    recorded        INTEGER NOT NULL,  -- maximum units of all holds of the bucket
    digest          INTEGER NOT NULL,  -- of this row and of the bucket's holds, to detect damage
    PRIMARY KEY (credential, bucket)
) STRICT, WITHOUT ROWID;

-- Sums of entries by ten minutes and labels, without the run.
CREATE TABLE sums (
    credential TEXT    NOT NULL,
    bucket     TEXT    NOT NULL,
    grain      INTEGER NOT NULL,  -- start of the ten minutes
    labels     TEXT    NOT NULL,
    units      INTEGER NOT NULL,
    charges    INTEGER NOT NULL,  -- number of entries
    PRIMARY KEY (credential, bucket, grain, labels)
) STRICT, WITHOUT ROWID;

-- Units that corrections removed from entries.
CREATE TABLE notes (
    credential TEXT    NOT NULL,
    bucket     TEXT    NOT NULL,
    at         INTEGER NOT NULL,  -- time of the correction
    id         TEXT    NOT NULL,
    units      INTEGER NOT NULL,  -- removed, at least 1
    labels     TEXT    NOT NULL,  -- the person and the reason, in the form of an entry's labels
    PRIMARY KEY (credential, bucket, at, id)
) STRICT, WITHOUT ROWID;

-- Answers to repeat, and claims.
CREATE TABLE answers (
    credential TEXT    NOT NULL,
    name       TEXT    NOT NULL,  -- 'key K' of an idempotency key, 'settled R' of a reservation, 'claim N' of a claim
    request    TEXT    NOT NULL,  -- the request; for a claim, its holder, or '' once done
    decision   TEXT    NOT NULL,  -- the answer, as JSON; '' for a claim
    expires_at INTEGER NOT NULL,  -- time from which the name may be used again
    PRIMARY KEY (credential, name)
) STRICT, WITHOUT ROWID;

CREATE INDEX answers_by_expiry ON answers (expires_at);

-- Denials by hour. No decision depends on them.
CREATE TABLE denials (
    credential TEXT    NOT NULL,
    hour       INTEGER NOT NULL,  -- time at which the hour begins
    bucket     TEXT    NOT NULL,  -- of the limit
    name       TEXT    NOT NULL,  -- of the limit
    labels     TEXT    NOT NULL,  -- as in sums
    denials    INTEGER NOT NULL,  -- at least 1
    units      INTEGER NOT NULL,  -- requested from the bucket
    last_at    INTEGER NOT NULL,  -- time
    PRIMARY KEY (credential, hour, bucket, name, labels)
) STRICT, WITHOUT ROWID;
