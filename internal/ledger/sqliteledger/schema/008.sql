-- What was denied, hour by hour. Nothing is decided by it.

CREATE TABLE denials (
    credential TEXT    NOT NULL,
    hour       INTEGER NOT NULL,  -- time at which the hour begins
    bucket     TEXT    NOT NULL,  -- that the limit is on
    name       TEXT    NOT NULL,  -- of the limit
    labels     TEXT    NOT NULL,  -- as those of entries, without the run
    denials    INTEGER NOT NULL,  -- at least 1
    units      INTEGER NOT NULL,  -- asked for in the bucket
    last_at    INTEGER NOT NULL,  -- time
    PRIMARY KEY (credential, hour, bucket, name, labels)
) STRICT, WITHOUT ROWID;

-- Who suspended a bucket, when and why. A bucket that is not suspended has none.
CREATE TABLE suspensions (
    bucket INTEGER PRIMARY KEY REFERENCES buckets (id),
    since  INTEGER NOT NULL,  -- time
    made_by TEXT   NOT NULL,
    reason TEXT    NOT NULL
) STRICT;
