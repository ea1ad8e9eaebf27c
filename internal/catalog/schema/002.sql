-- What the upstream said of a chart that it has not.
ALTER TABLE unavailable ADD COLUMN invalid INTEGER NOT NULL DEFAULT 0 CHECK (invalid IN (0, 1)); -- 1: it knows no such region
