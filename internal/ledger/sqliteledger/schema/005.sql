-- A reservation may be of several buckets, with a row in each, and its units may become an entry when it expires.

ALTER TABLE buckets ADD COLUMN reset_at INTEGER NOT NULL DEFAULT 0;  -- the last end of an anchored window that was told; 0 for none
ALTER TABLE buckets ADD COLUMN at_most INTEGER NOT NULL DEFAULT 0;   -- what its reservations can turn out to take, expired ones included

ALTER TABLE reservations ADD COLUMN most INTEGER NOT NULL DEFAULT 0; -- units that it can turn out to take; 0 for those that were set aside

-- Time; from then on what it holds is an entry, which is written by who looks at the bucket next. NULL for a reservation that gives its
-- units back. To an earlier version of the program, which knows nothing of this, expires_at says that it holds them for ever.
ALTER TABLE reservations ADD COLUMN lapses_at INTEGER;
ALTER TABLE reservations ADD COLUMN labels TEXT NOT NULL DEFAULT ''; -- of that entry
ALTER TABLE reservations ADD COLUMN ends_at INTEGER GENERATED ALWAYS AS (coalesce(lapses_at, expires_at)) VIRTUAL;
ALTER TABLE reservations ADD COLUMN may_take INTEGER GENERATED ALWAYS AS (
    CASE WHEN remains > 1000000000000 THEN remains WHEN most BETWEEN units AND 1000000000000 THEN most - drawn ELSE remains END) VIRTUAL;

DROP INDEX reservations_by_expiry;
DROP INDEX reservations_holding;
CREATE INDEX reservations_by_expiry ON reservations (bucket, expires_at) WHERE lapses_at IS NULL;
CREATE INDEX reservations_holding ON reservations (bucket, ends_at, remains, may_take) WHERE may_take > 0;
CREATE INDEX reservations_lapsing ON reservations (bucket, remains > 0, lapses_at) WHERE lapses_at IS NOT NULL;

DROP TRIGGER reservation_added;
DROP TRIGGER reservation_removed;
DROP TRIGGER reservation_changed;

CREATE TRIGGER reservation_added AFTER INSERT ON reservations BEGIN
    UPDATE buckets SET held = held + NEW.remains, at_most = at_most + NEW.may_take WHERE id = NEW.bucket;
END;

CREATE TRIGGER reservation_removed AFTER DELETE ON reservations BEGIN
    UPDATE buckets SET held = held - OLD.remains, at_most = at_most - OLD.may_take WHERE id = OLD.bucket;
END;

CREATE TRIGGER reservation_changed AFTER UPDATE OF bucket, units, drawn, most ON reservations BEGIN
    UPDATE buckets SET held = held - OLD.remains, at_most = at_most - OLD.may_take WHERE id = OLD.bucket;
    UPDATE buckets SET held = held + NEW.remains, at_most = at_most + NEW.may_take WHERE id = NEW.bucket;
END;

UPDATE buckets SET at_most = (SELECT coalesce(sum(may_take), 0) FROM reservations WHERE bucket = buckets.id);

-- The entries that reservations have become, for those who settle late.
CREATE TABLE lapsed (
    bucket INTEGER NOT NULL REFERENCES buckets (id),
    id     TEXT    NOT NULL,  -- of the reservation
    at     INTEGER NOT NULL,  -- of the entry
    PRIMARY KEY (bucket, id, at)
) STRICT, WITHOUT ROWID;

CREATE INDEX lapsed_by_time ON lapsed (bucket, at);

-- The level of a restoring window right after an entry: num units are restored in den µs. It is right as long as there is an entry of
-- this time and running total: whoever takes anything out of the log before it changes that.
CREATE TABLE levels (
    bucket INTEGER NOT NULL REFERENCES buckets (id),
    num    INTEGER NOT NULL,
    den    INTEGER NOT NULL,
    at     INTEGER NOT NULL,  -- of the entry
    total  INTEGER NOT NULL,  -- of the entry
    level  INTEGER NOT NULL,  -- den times the units
    PRIMARY KEY (bucket, num, den)
) STRICT, WITHOUT ROWID;
