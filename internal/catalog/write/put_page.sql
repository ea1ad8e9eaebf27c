-- ?1 chart, ?2 page token
INSERT INTO chart_pages (chart, token) VALUES (?1, ?2);
