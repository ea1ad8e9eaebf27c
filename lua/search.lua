-- search.lua finds the entry at which the running total of a log reached a sum. It writes nothing.
--
-- KEYS   the log
-- ARGV   the sum
-- Reply  the stamp of the first entry with at least this total, nil if an entry cannot be read
local call = redis.call
local log = KEYS[1]
local wanted, low, high = tonumber(ARGV[1]), 0, call('ZCARD', log)
while low < high do
  local middle = math.floor((low + high) / 2)
  local total = string.match(call('ZRANGE', log, middle, middle)[1], '^(%d+):')
  if not total then return false end
  if tonumber(total) >= wanted then high = middle else low = middle + 1 end
end
return call('ZRANGE', log, low, low, 'WITHSCORES')[2] or false
