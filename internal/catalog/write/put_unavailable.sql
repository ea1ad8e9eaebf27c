-- ?1 region, ?2 at, ?3 invalid
INSERT INTO unavailable (region, at, invalid) VALUES (?1, ?2, ?3)
ON CONFLICT DO UPDATE SET at = excluded.at, invalid = excluded.invalid WHERE excluded.at >= at;
