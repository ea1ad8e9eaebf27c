-- commit.lua writes the decisions on a snapshot (read.lua) if the snapshot is still valid.
--
-- KEYS   the lock; strings that must be unchanged; then the keys named by number
-- ARGV   the caller's name in the lock; the snapshot's time in µs, 0 if it does not matter; the
--        number of strings, and the value of each, '' for none; the number of logs to compare, and
--        for each: ZREVRANGE (its newest member) or ZRANGE (its oldest), the key, and the member,
--        '' for none; the number of keys whose type to check, and for each: a command that fails on
--        another type, and the key; then for each command to run: its name, the key, the number of
--        arguments, and the arguments
-- Reply  done; or why nothing was written: locked (by another caller), late or changed
--
-- If the caller was stopped since its snapshot, the commit is late, so that it writes no stale
-- decision. If any command needs memory, the first does, so that a server without memory refuses
-- the script before it has written anything.
local call = redis.call
local strings = call('MGET', unpack(KEYS, 1, ARGV[3] + 1))
local lock = strings[1]
if lock and lock ~= ARGV[1] then return 'locked' end
local time, was = call('TIME'), tonumber(ARGV[2])
if was > 0 and math.abs(time[1] * 1000000 + time[2] - was) > 1000000 then return 'late' end
for n = 2, ARGV[3] + 1 do
  if (strings[n] or '') ~= ARGV[n + 2] then return 'changed' end
end

local next = ARGV[3] + 5
for _ = 1, ARGV[next - 1] do
  local member = call(ARGV[next], KEYS[tonumber(ARGV[next + 1])], '0', '0')[1]
  if (member or '') ~= ARGV[next + 2] then return 'changed' end
  next = next + 3
end
next = next + 1
for _ = 1, ARGV[next - 1] do -- a key of another type must fail the script before it has written
  call(ARGV[next], KEYS[tonumber(ARGV[next + 1])])
  next = next + 2
end
if lock then call('DEL', KEYS[1]) end
while next <= #ARGV do
  local last = next + 2 + ARGV[next + 2]
  call(ARGV[next], KEYS[tonumber(ARGV[next + 1])], unpack(ARGV, next + 3, last))
  next = last + 1
end
return 'done'
