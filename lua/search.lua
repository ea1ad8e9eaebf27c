-- search.lua looks something up in a log. It writes nothing.
--
-- KEYS   the log
-- ARGV   before and a stamp, or reached and a running total
-- Reply  before: the last member stamped earlier, and the first two of the others, each with its stamp;
--        reached: the stamp of the first entry of at least this total, nil if one cannot be read
local call = redis.call
local log = KEYS[1]
if ARGV[1] == 'before' then
  return {
    call('ZREVRANGEBYSCORE', log, '(' .. ARGV[2], '-inf', 'WITHSCORES', 'LIMIT', 0, 1),
    call('ZRANGEBYSCORE', log, ARGV[2], '+inf', 'WITHSCORES', 'LIMIT', 0, 2),
  }
end
local wanted, low, high = tonumber(ARGV[2]), 0, call('ZCARD', log)
while low < high do
  local middle = math.floor((low + high) / 2)
  local total = string.match(call('ZRANGE', log, middle, middle)[1], '^(%d+):')
  if not total then return false end
  if tonumber(total) >= wanted then high = middle else low = middle + 1 end
end
return call('ZRANGE', log, low, low, 'WITHSCORES')[2] or false
