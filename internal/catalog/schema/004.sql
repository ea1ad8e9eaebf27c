-- Short links to what the pages show.
CREATE TABLE links (
    slug TEXT    PRIMARY KEY,                    -- made from the target: one link for each
    path TEXT    NOT NULL,                       -- of this server, with its query
    at   INTEGER NOT NULL                        -- µs, first asked for
) STRICT, WITHOUT ROWID;
