-- release.lua: gives back what is left of a reservation.
--
-- KEYS   1 labels  2 state  3 log  4 holds
-- ARGV   1 reservation
-- Reply  the units given back, or -3: no such reservation

local b = open(KEYS[2], KEYS[3], KEYS[4])
local now = clock()
local R = reservations()
local left, expires = R.reserved(b, ARGV[1])
if not left or expires <= math.max(now, b.newest + 1) then return -3 end
R.drop(b, ARGV[1], left)
save(b, now, 0, KEYS[1])
return left
