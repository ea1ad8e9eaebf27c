-- ?1 region, ?2 category
DELETE FROM unavailable WHERE region = ?1 AND category = ?2;
