-- Triggers keep the sums, so that they are right also while an earlier version of the program, which knows nothing of them, has the
-- file open. Units that cannot be read are in no sum.

-- Where run= begins in the labels; 0 for none.
ALTER TABLE entries ADD COLUMN run_at INTEGER GENERATED ALWAYS AS (instr('&' || labels, '&run=')) VIRTUAL;

-- The labels without the run.
ALTER TABLE entries ADD COLUMN line TEXT GENERATED ALWAYS AS (
    CASE run_at WHEN 0 THEN labels ELSE trim(substr(labels, 1, run_at - 1) || substr(substr(labels, run_at) || '&',
        instr(substr(labels, run_at) || '&', '&') + 1), '&') END) VIRTUAL;

CREATE TRIGGER entry_added AFTER INSERT ON entries WHEN NEW.units BETWEEN 1 AND 1000000000000 BEGIN
    INSERT INTO sums (bucket, grain, labels, units, charges)
    VALUES (NEW.bucket, NEW.at - NEW.at % 600000000, NEW.line, NEW.units, 1)
    ON CONFLICT (bucket, grain, labels) DO UPDATE SET units = units + excluded.units, charges = charges + 1;
END;

CREATE TRIGGER entry_removed AFTER DELETE ON entries WHEN OLD.units BETWEEN 1 AND 1000000000000 BEGIN
    UPDATE sums SET units = units - OLD.units, charges = charges - 1
    WHERE bucket = OLD.bucket AND grain = OLD.at - OLD.at % 600000000 AND labels = OLD.line;
    DELETE FROM sums
    WHERE bucket = OLD.bucket AND grain = OLD.at - OLD.at % 600000000 AND labels = OLD.line AND charges <= 0;
END;

DELETE FROM sums; -- an earlier version may have charged since they were made

INSERT INTO sums (bucket, grain, labels, units, charges)
SELECT bucket, at - at % 600000000, line, sum(units), count(*) FROM entries WHERE units BETWEEN 1 AND 1000000000000 GROUP BY 1, 2, 3;
