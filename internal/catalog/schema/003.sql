-- One row of as many bytes as a large page takes, written anew before a page is bought: a file that takes no more is
-- found out while that costs nothing.
CREATE TABLE room (
    id     INTEGER PRIMARY KEY CHECK (id = 1),
    filler BLOB    NOT NULL
) STRICT;
