-- suspend.lua: closes a bucket until a moment, or opens it again.
--
-- KEYS   1 state  2 log
-- ARGV   1 N: until µs (0 = resume), keep µs
-- Reply  1

local b = open(KEYS[1], KEYS[2])
b.suspended = N[1]
save(b, clock(), N[2])
return 1
