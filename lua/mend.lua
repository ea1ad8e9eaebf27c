-- mend.lua: writes a bucket anew after a check, if it is still what was checked.
--
-- KEYS   1 labels  2 state  3 log
-- ARGV   1 N: total, newest, suspended, reservations, µs that entries are kept, expiry of the keys, until when units are held,
--          entries that were there, members that go, members that come, reservations that go
--        2 the state as it was read ('' without one)  3… the members that go, score and member of each that comes, and the fields
--        of the reservations that go; the caller bounds how many
-- Reply  1, or 0: something has changed meanwhile, and nothing was written

if (call('HGET', KEYS[2], 's') or '') ~= ARGV[2] or call('ZCARD', KEYS[3]) ~= N[8] then return 0 end
local gone = 2 + N[9]
local come = gone + 2 * N[10]
for i = 3, gone do
  if not call('ZSCORE', KEYS[3], ARGV[i]) then return 0 end
end

local b = {
  state = KEYS[2], log = KEYS[3], total = N[1], newest = N[2], suspended = N[3], holds = N[4], oldest = 0, keep = N[5],
  expire = N[6], hold_until = N[7], fresh = true,
}
save(b, clock(), 0, KEYS[1])
for i = 3, gone do call('ZREM', b.log, ARGV[i]) end
for i = gone + 1, come, 2 do call('ZADD', b.log, ARGV[i], ARGV[i + 1]) end
for i = come + 1, come + N[11] do call('HDEL', b.state, ARGV[i]) end
call('PEXPIREAT', b.log, format('%d', b.expire / 1000)) -- a set that was empty for a moment has lost its time to live
return 1
