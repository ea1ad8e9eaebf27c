-- lapse.lua: makes entries of the reservations of a bucket that have expired and are charged then
-- (holds.lua), before somebody reads the log.
--
-- KEYS   1 labels  2 state  3 log  4 holds
-- Reply  1

local newest = match(call('HGET', KEYS[2], 's') or '', '^........(........)')
local stamp = math.max(clock(), newest and unpacked('<d', newest) + 1 or 0)
local due = call('ZRANGEBYSCORE', KEYS[4], format('-%d', stamp), format('%d', stamp))
for _, member in ipairs(due) do
  if byte(member, 8) == 43 or match(member, '^%d+%+') then -- the latter by an earlier version
    look(2, 3)
    break
  end
end
return 1
