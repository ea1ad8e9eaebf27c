-- suspend.lua: closes a bucket until a moment, or opens it again.
--
-- KEYS   1 state  2 log
-- ARGV   1 until µs (0 = resume)  2 keep µs
-- Reply  1

local b = open(KEYS[1], KEYS[2])
b.suspended = tonumber(ARGV[1])
save(b, clock(), tonumber(ARGV[2]), 'suspended', ARGV[1])
return 1
