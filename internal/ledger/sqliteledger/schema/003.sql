-- What all reservations of a bucket hold is kept as one number, so that nobody has to add it up. Triggers keep it, so that it is right
-- also while an earlier version of the program, which knows nothing of it, has the file open.

ALTER TABLE buckets ADD COLUMN held INTEGER NOT NULL DEFAULT 0;  -- units left in its reservations, expired ones included

-- What a reservation holds. One that cannot be read may hold any number of units: more than any bucket can have.
ALTER TABLE reservations ADD COLUMN remains INTEGER GENERATED ALWAYS AS (
    CASE WHEN units <= 1000000000000 AND drawn BETWEEN 0 AND units THEN units - drawn ELSE 9007199254740992 END) VIRTUAL;

CREATE INDEX reservations_holding ON reservations (bucket, expires_at, remains) WHERE remains > 0;

-- INSERT OR REPLACE deletes without a trigger.
CREATE TRIGGER reservation_replaced BEFORE INSERT ON reservations BEGIN
    DELETE FROM reservations WHERE bucket = NEW.bucket AND id = NEW.id;
END;

CREATE TRIGGER reservation_added AFTER INSERT ON reservations BEGIN
    UPDATE buckets SET held = held + NEW.remains WHERE id = NEW.bucket;
END;

CREATE TRIGGER reservation_removed AFTER DELETE ON reservations BEGIN
    UPDATE buckets SET held = held - OLD.remains WHERE id = OLD.bucket;
END;

CREATE TRIGGER reservation_changed AFTER UPDATE OF bucket, units, drawn ON reservations BEGIN
    UPDATE buckets SET held = held - OLD.remains WHERE id = OLD.bucket;
    UPDATE buckets SET held = held + NEW.remains WHERE id = NEW.bucket;
END;

UPDATE buckets SET held = (SELECT coalesce(sum(remains), 0) FROM reservations WHERE bucket = buckets.id);
