-- per_unit.lua: a sliding log with one member for each unit, the way it is usually shown; measured beside ours.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local window, limit, units = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
redis.call('ZREMRANGEBYSCORE', KEYS[1], 0, now - window)
local used = redis.call('ZCARD', KEYS[1])
if used + units > limit then
  local oldest = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
  return {0, limit - used, oldest[2]}
end
for i = 1, units do
  redis.call('ZADD', KEYS[1], now, ARGV[4] .. ':' .. i)
end
redis.call('PEXPIRE', KEYS[1], math.floor(window / 1000))
return {1, limit - used - units}
