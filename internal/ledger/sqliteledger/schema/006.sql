-- What was taken off entries by hand, or because the upstream has counted less.

CREATE TABLE takings (
    bucket INTEGER NOT NULL REFERENCES buckets (id),
    at     INTEGER NOT NULL,  -- time at which it was done
    id     TEXT    NOT NULL,
    units  INTEGER NOT NULL,  -- taken off, at least 1
    labels TEXT    NOT NULL,  -- who and why; as those of entries
    PRIMARY KEY (bucket, at, id)
) STRICT, WITHOUT ROWID;
