-- What was spent in each ten minutes under each line of labels: the entries, added up.

CREATE TABLE sums (
    bucket  INTEGER NOT NULL REFERENCES buckets (id),
    grain   INTEGER NOT NULL,  -- time at which the ten minutes begin
    labels  TEXT    NOT NULL,  -- of the entries, without the run
    units   INTEGER NOT NULL,
    charges INTEGER NOT NULL,  -- entries, at least 1
    PRIMARY KEY (bucket, grain, labels)
) STRICT, WITHOUT ROWID;

WITH
    lines AS (SELECT bucket, at - at % 600000000 AS grain, units, '&' || labels || '&' AS line FROM entries),
    runs AS (SELECT *, instr(line, '&run=') AS run FROM lines),
    others AS (
        SELECT bucket, grain, units,
            CASE run WHEN 0 THEN line
            ELSE substr(line, 1, run) || substr(line, run + 1 + instr(substr(line, run + 1), '&')) END AS line
        FROM runs)
INSERT INTO sums (bucket, grain, labels, units, charges)
SELECT bucket, grain, trim(line, '&'), sum(units), count(*) FROM others GROUP BY 1, 2, 3;
