-- ?1 region, ?2 run, ?3 when its first page was fetched, which the same transaction
-- stores
INSERT INTO charts (region, run, started_at) VALUES (?1, ?2, ?3) RETURNING id;
