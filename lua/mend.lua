-- mend.lua: rewrites a bucket after a check, unless it has changed since.
--
-- KEYS   1 labels  2 state  3 log  4 holds  5 sums
-- ARGV   1 total, newest, suspended, µs that entries are kept, expiry of the keys, until when units
--          are held, entries found, members to remove, members to add, reservations to remove
--        2 the state as it was read ('' without one)
--        3… the members to remove, score and member of each to add, fields of the reservations to
--        remove; the caller limits how many
-- Reply  1, or 0: something has changed, nothing was written

local total, newest, suspended, keep, expire, hold_until, found, removed, added, settled =
  unpacked('<dddddddddd', ARGV[1])
if (call('HGET', KEYS[2], 's') or '') ~= ARGV[2] or call('ZCARD', KEYS[3]) ~= found then return 0 end
local gone = 2 + removed
local come = gone + 2 * added
for i = 3, gone do
  if not call('ZSCORE', KEYS[3], ARGV[i]) then return 0 end
end

local b = {
  state = KEYS[2], log = KEYS[3], index = KEYS[4], total = total, newest = newest,
  suspended = suspended, holds = 0, held = 0, charges = 0, extra = 0, next = 0, known = '', oldest = 0,
  keep = keep, expire = expire, fresh = true,
}
save(b, clock(), 0, hold_until)
for i = 3, gone do call('ZREM', b.log, ARGV[i]) end
for i = gone + 1, come, 2 do call('ZADD', b.log, ARGV[i], ARGV[i + 1]) end
for i = come + 1, come + settled do call('HDEL', b.state, ARGV[i]) end
lapses().reindex(b)
call('HDEL', b.state, 'g', 'l') -- who needs the sums and the levels next adds them up again
call('DEL', KEYS[5])
call('PEXPIREAT', b.log, format('%d', b.expire / 1000)) -- a set that was empty for a moment has lost its expiry
return 1
