-- release.lua: gives back what is left of a reservation.
--
-- KEYS   1 state  2 log
-- ARGV   1 N: nothing  2 reservation
-- Reply  the units given back, or -3: no such reservation

local b = open(KEYS[1], KEYS[2])
local now = clock()
local left, expires = match(call('HGET', b.state, 'r:' .. ARGV[2]) or '', '^(%d+):(%d+):')
if not left or tonumber(expires) <= math.max(now, b.newest + 1) then return -3 end
b.holds = math.max(0, b.holds - 1)
save(b, now, 0)
call('HDEL', b.state, 'r:' .. ARGV[2])
return tonumber(left)
