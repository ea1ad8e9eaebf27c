-- commit.lua writes what was decided on a snapshot (read.lua), if the snapshot still holds.
--
-- KEYS   the lock, then the keys that guards and commands name by number
-- ARGV   the caller's name in the lock; the snapshot's time in µs, 0 if it does not matter; the
--        number of guards; for each guard what must be unchanged (newest or oldest member of a log,
--        or string), the key, and the value, '' for none; then the commands: name, key, number of
--        arguments, arguments
-- Reply  done; or why nothing was written: locked (by another caller), late or changed
--
-- The commit of a caller that was stopped since its snapshot is late, so nothing stale is written.
-- The first command needs memory if any does, so that a server without memory refuses the script
-- before it has written anything.
local call = redis.call
local lock = call('GET', KEYS[1])
if lock and lock ~= ARGV[1] then return 'locked' end
local time, was = call('TIME'), tonumber(ARGV[2])
if was > 0 and math.abs(time[1] * 1000000 + time[2] - was) > 1000000 then return 'late' end

local next, seen = 4, {}
for _ = 1, ARGV[3] do
  local what, key, value = ARGV[next], ARGV[next + 1]
  seen[key] = true
  key = KEYS[tonumber(key)]
  if what == 'string' then
    value = call('GET', key)
  else
    value = call(what == 'newest' and 'ZREVRANGE' or 'ZRANGE', key, '0', '0')[1]
  end
  if (value or '') ~= ARGV[next + 2] then return 'changed' end
  next = next + 3
end
local counts = {HSET = 'HLEN', HINCRBY = 'HLEN', HDEL = 'HLEN', ZADD = 'ZCARD', ZREM = 'ZCARD'}
local first = next
while next <= #ARGV do -- a key of another type must fail the script before it has written
  local count, key = counts[ARGV[next]], ARGV[next + 1]
  if count and not seen[key] then
    call(count, KEYS[tonumber(key)])
    seen[key] = true
  end
  next = next + 3 + ARGV[next + 2]
end
next = first
if lock then call('DEL', KEYS[1]) end
while next <= #ARGV do
  local last = next + 2 + ARGV[next + 2]
  call(ARGV[next], KEYS[tonumber(ARGV[next + 1])], unpack(ARGV, next + 3, last))
  next = last + 1
end
return 'done'
