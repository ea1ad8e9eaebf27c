-- What others used, by window, as the upstream reported it: JSON, '' for nothing.
ALTER TABLE buckets ADD COLUMN others TEXT NOT NULL DEFAULT '';
