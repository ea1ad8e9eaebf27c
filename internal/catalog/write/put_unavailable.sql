-- ?1 region, ?2 category, ?3 at, ?4 invalid
INSERT INTO unavailable (region, category, at, invalid) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT DO UPDATE SET at = excluded.at, invalid = excluded.invalid WHERE excluded.at >= at;
