-- release.lua: gives back what is left of a reservation.
--
-- KEYS   1 state  2 log
-- ARGV   1 reservation id
-- Reply  the units given back, or -3: no such reservation

local b = open(KEYS[1], KEYS[2])
local field = 'r:' .. ARGV[1]
local left, expires = match(call('HGET', b.state, field) or '', '^(%d+):(%d+)')
if not left or tonumber(expires) <= max(clock(), b.newest + 1) then return -3 end
call('HDEL', b.state, field)
call('HSET', b.state, 'holds', max(0, b.holds - 1))
return tonumber(left)
