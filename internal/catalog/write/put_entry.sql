-- ?1 chart, ?2 rank, ?3 video. The first rank stays.
INSERT INTO chart_entries (chart, rank, video) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING;
