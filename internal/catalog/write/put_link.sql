-- ?1 slug, ?2 path, ?3 moment
INSERT INTO links (slug, path, at) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING;
