-- mend.lua: writes a bucket anew after a check, if it is still what was checked.
--
-- KEYS   1 labels  2 state  3 log  4 holds  5 sums
-- ARGV   1 N: total, newest, suspended, µs that entries are kept, expiry of the keys, until when units are held, entries that were
--          there, members that go, members that come, reservations that go
--        2 the state as it was read ('' without one)  3… the members that go, score and member of each that comes, and the fields
--        of the reservations that go; the caller bounds how many
-- Reply  1, or 0: something has changed meanwhile, and nothing was written

if (call('HGET', KEYS[2], 's') or '') ~= ARGV[2] or call('ZCARD', KEYS[3]) ~= N[7] then return 0 end
local gone = 2 + N[8]
local come = gone + 2 * N[9]
for i = 3, gone do
  if not call('ZSCORE', KEYS[3], ARGV[i]) then return 0 end
end

local b = {
  state = KEYS[2], log = KEYS[3], index = KEYS[4], total = N[1], newest = N[2], suspended = N[3], holds = 0, held = 0, oldest = 0,
  keep = N[4], expire = N[5], hold_until = N[6], fresh = true,
}
save(b, clock(), 0, KEYS[1])
for i = 3, gone do call('ZREM', b.log, ARGV[i]) end
for i = gone + 1, come, 2 do call('ZADD', b.log, ARGV[i], ARGV[i + 1]) end
for i = come + 1, come + N[10] do call('HDEL', b.state, ARGV[i]) end
reservations().reindex(b)
call('HDEL', b.state, 'g') -- the sums are added up again by who needs them
call('DEL', KEYS[5])
call('PEXPIREAT', b.log, format('%d', b.expire / 1000)) -- a set that was empty for a moment has lost its time to live
return 1
