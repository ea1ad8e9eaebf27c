-- ?1 region, ?2 category, ?3 run, ?4 fetched at, of its first page, which comes in the same transaction
INSERT INTO charts (region, category, run, started_at) VALUES (?1, ?2, ?3, ?4);
