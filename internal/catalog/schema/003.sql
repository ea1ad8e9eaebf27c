-- One row with as many bytes as a large page takes, rewritten before a page is bought: a full
-- disk is noticed before the page costs units.
CREATE TABLE room (
    id     INTEGER PRIMARY KEY CHECK (id = 1),
    filler BLOB    NOT NULL
) STRICT;
