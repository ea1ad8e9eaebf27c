-- ?1 region
DELETE FROM unavailable WHERE region = ?1;
