-- Charts as they were fetched, videos as they were last seen, and how names and counters changed.
-- Times are integer Unix microseconds, UTC. Text is stored byte for byte as the upstream sent it.

CREATE TABLE charts (
    id              INTEGER PRIMARY KEY,         -- later charts have larger ids
    region          TEXT    NOT NULL,            -- ISO 3166-1 alpha-2
    run             TEXT    NOT NULL,            -- id of the run that began it
    started_at      INTEGER NOT NULL,            -- µs
    fetched_at      INTEGER,                     -- µs, of the last page
    completed_at    INTEGER,                     -- µs; NULL until then: readers skip such a chart
    pages           INTEGER NOT NULL DEFAULT 0,  -- stored so far
    places          INTEGER NOT NULL DEFAULT 0,  -- on these pages, repeated videos included
    videos          INTEGER NOT NULL DEFAULT 0,  -- on these pages, each counted once
    next_page_token TEXT    NOT NULL DEFAULT ''  -- '' before the first page and after the last
) STRICT;
CREATE INDEX charts_by_key ON charts (region, completed_at);
CREATE INDEX charts_by_start ON charts (started_at);

-- One row for each stored page, so that no page is stored twice.
CREATE TABLE chart_pages (
    chart INTEGER NOT NULL REFERENCES charts ON DELETE CASCADE,
    token TEXT    NOT NULL,                      -- token that fetched this page; '' for the first
    PRIMARY KEY (chart, token)
) STRICT, WITHOUT ROWID;

CREATE TABLE videos (
    id            INTEGER PRIMARY KEY,
    video_id      TEXT    NOT NULL UNIQUE CHECK (video_id <> ''), -- the upstream's; may begin with '-'
    title         TEXT    NOT NULL,
    channel_id    TEXT    NOT NULL,
    channel_title TEXT    NOT NULL,
    category      TEXT    NOT NULL,              -- the upstream's category id
    views         INTEGER,                       -- NULL: not reported, which is not 0
    likes         INTEGER,                       -- NULL: not reported
    comments      INTEGER,                       -- NULL: not reported
    published_at  INTEGER,                       -- µs; NULL: not reported
    first_seen_at INTEGER NOT NULL,              -- µs
    fetched_at    INTEGER NOT NULL,              -- µs, of everything in this row
    duration      TEXT    NOT NULL,              -- ISO 8601, as reported; '' if missing
    tags          TEXT    NOT NULL,              -- JSON array, repeats and empty ones included
    description   TEXT    NOT NULL
) STRICT;
CREATE INDEX videos_by_fetch ON videos (fetched_at);

CREATE TABLE chart_entries (
    chart INTEGER NOT NULL REFERENCES charts ON DELETE CASCADE,
    rank  INTEGER NOT NULL,                      -- 1 is the first place; a repeated video leaves a gap
    video INTEGER NOT NULL REFERENCES videos ON DELETE CASCADE,
    PRIMARY KEY (chart, rank),
    UNIQUE (video, chart)
) STRICT, WITHOUT ROWID;

-- One row when a video is first seen and one for each change.
CREATE TABLE video_names (
    video         INTEGER NOT NULL REFERENCES videos ON DELETE CASCADE,
    at            INTEGER NOT NULL,              -- µs, fetched
    title         TEXT    NOT NULL,
    channel_id    TEXT    NOT NULL,
    channel_title TEXT    NOT NULL,
    category      TEXT    NOT NULL,
    PRIMARY KEY (video, at)
) STRICT, WITHOUT ROWID;

CREATE TABLE video_counters (
    video    INTEGER NOT NULL REFERENCES videos ON DELETE CASCADE,
    at       INTEGER NOT NULL,                   -- µs, fetched
    views    INTEGER,                            -- NULL: not reported
    likes    INTEGER,                            -- NULL: not reported
    comments INTEGER,                            -- NULL: not reported
    PRIMARY KEY (video, at)
) STRICT, WITHOUT ROWID;

-- Charts that the upstream did not have at the last request.
CREATE TABLE unavailable (
    region   TEXT    NOT NULL,
    at       INTEGER NOT NULL,                   -- µs
    invalid  INTEGER NOT NULL CHECK (invalid IN (0, 1)), -- 1: the upstream has no such region
    PRIMARY KEY (region)
) STRICT, WITHOUT ROWID;

-- The words of each video, rowid = videos.id, as words.go splits them. Only the index is stored. It
-- holds words, not trigrams: indexing a page of new videos takes a quarter of the time and of the
-- space, and queries of one or two characters, as Chinese and Japanese ones often are, need no
-- scan.
CREATE VIRTUAL TABLE texts USING fts5 (
    title, channel_title, tags, description,
    content = '', contentless_delete = 1, prefix = '2 3',
    tokenize = "unicode61 remove_diacritics 2 categories 'L* N* M* Co'"
);
CREATE TRIGGER videos_deleted AFTER DELETE ON videos BEGIN
    DELETE FROM texts WHERE rowid = old.id;
END;

-- One row with as many bytes as a large page takes, rewritten before a page is charged, so that a
-- full disk is noticed before the page costs units.
CREATE TABLE room (
    id     INTEGER PRIMARY KEY CHECK (id = 1),
    filler BLOB    NOT NULL
) STRICT;

-- Short links to what the pages show.
CREATE TABLE links (
    slug TEXT    PRIMARY KEY,                    -- made from path, so each path has one link
    path TEXT    NOT NULL,                       -- of this server, with its query
    at   INTEGER NOT NULL                        -- µs, first requested
) STRICT, WITHOUT ROWID;

-- How the last runs of each lane of a daemon ended.
CREATE TABLE lane_runs (
    lane      TEXT    NOT NULL,  -- trending/BR, or backfill
    tick      TEXT    NOT NULL,  -- its ID
    ended_at  INTEGER NOT NULL,  -- µs
    outcome   TEXT    NOT NULL,
    exit_code INTEGER,           -- of a command; NULL if none was started
    units     TEXT    NOT NULL,  -- by bucket, as JSON
    PRIMARY KEY (lane, tick)
) STRICT, WITHOUT ROWID;
