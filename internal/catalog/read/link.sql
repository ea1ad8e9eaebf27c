-- ?1 slug
SELECT path FROM links WHERE slug = ?1;
