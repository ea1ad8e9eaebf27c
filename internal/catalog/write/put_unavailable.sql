-- ?1 region, ?2 category, ?3 at
INSERT INTO unavailable (region, category, at) VALUES (?1, ?2, ?3)
ON CONFLICT DO UPDATE SET at = max(at, excluded.at);
