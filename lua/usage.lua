-- usage.lua: the standing of buckets and limits at one moment. It writes nothing.
--
-- KEYS   for each bucket: state, log
-- ARGV   for each bucket: number of limits, and the limits (bucket.lua)
-- Reply  {clock, for each bucket: held, suspended until (0 = open), for each limit: used, next free at (0 = nothing to free)}
--        or {-1, clock}: a calendar limit is not of this time, ask again

local now = clock()
local reply, i = {now}, 1
for k = 1, #KEYS, 2 do
  local b = open(KEYS[k], KEYS[k + 1])
  local stamp = max(now, b.newest + 1)
  held(b, stamp)
  reply[#reply + 1] = b.held
  reply[#reply + 1] = b.suspended > stamp and b.suspended or 0
  local last = i + ARGV[i] * LIMIT_ARGS
  i = i + 1
  while i <= last do
    local l = limit(i, stamp)
    if l.stale then return {-1, stamp} end
    l.base = base(b, l.from)
    l.used = b.total - l.base
    local free = l.used > 0 and freed(b, l, 1, stamp) or NEVER
    for _, hold in ipairs(b.list) do
      if hold.left > 0 then free = min(free, hold.expires) end
    end
    reply[#reply + 1] = l.used
    reply[#reply + 1] = free < NEVER and free or 0
    i = i + LIMIT_ARGS
  end
end
return reply
