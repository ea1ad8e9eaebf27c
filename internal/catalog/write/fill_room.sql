-- ?1 bytes
INSERT OR REPLACE INTO room (id, filler) VALUES (1, zeroblob(?1));
