-- How the last runs of each lane of a daemon ended.
CREATE TABLE lane_runs (
    lane      TEXT    NOT NULL,  -- trending/BR, or backfill
    tick      TEXT    NOT NULL,  -- its ID
    ended_at  INTEGER NOT NULL,  -- µs
    outcome   TEXT    NOT NULL,
    exit_code INTEGER,           -- of a command; NULL where none was started
    units     TEXT    NOT NULL,  -- by bucket, as JSON
    PRIMARY KEY (lane, tick)
) STRICT, WITHOUT ROWID;
