-- suspend.lua: closes a bucket until a given time, or opens it again.
--
-- KEYS   1 labels  2 state  3 log  4 holds
-- ARGV   1 until µs (0 = resume), keep µs
-- Reply  1

local b = open(KEYS[2], KEYS[3], KEYS[4])
local keep
b.suspended, keep = unpacked('<dd', ARGV[1])
save(b, clock(), keep)
return 1
