-- ?1 region, ?2 category, ?3 run, ?4 when its first page was fetched, which the same transaction
-- stores
INSERT INTO charts (region, category, run, started_at) VALUES (?1, ?2, ?3, ?4);
