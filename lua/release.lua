-- release.lua: gives back what is left of a reservation.
--
-- KEYS   1 labels  2 state  3 log
-- ARGV   1 N: nothing  2 reservation
-- Reply  the units given back, or -3: no such reservation

local b = open(KEYS[2], KEYS[3])
local now = clock()
local left, expires = reserved(b, ARGV[2])
if not left or expires <= math.max(now, b.newest + 1) then return -3 end
b.holds = math.max(0, b.holds - 1)
save(b, now, 0, KEYS[1])
call('HDEL', b.state, 'r:' .. ARGV[2])
return left
