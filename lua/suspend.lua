-- suspend.lua: closes a bucket until a moment, or opens it again.
--
-- KEYS   1 labels  2 state  3 log  4 holds
-- ARGV   1 N: until µs (0 = resume), keep µs
-- Reply  1

local b = open(KEYS[2], KEYS[3], KEYS[4])
b.suspended = N[1]
save(b, clock(), N[2], KEYS[1])
return 1
