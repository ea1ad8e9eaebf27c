-- usage.lua: the standing of buckets and limits at one moment, the same for all of them. It writes nothing.
--
-- KEYS   for each bucket: state, log
-- ARGV   1 N: for each bucket: number of limits, and the limits (bucket.lua)
-- Reply  {clock, for each bucket: held, suspended until (0 = open), for each limit: used, next free at (0 = nothing to free)}
--        or {-1, stamp}: a calendar limit is not of this time, ask again

local now = clock()
local stamp, buckets = now, {}
for k = 1, #KEYS, 2 do
  local b = open(KEYS[k], KEYS[k + 1])
  buckets[#buckets + 1] = b
  stamp = math.max(stamp, b.newest + 1)
end

local reply, i = {now}, 1
for _, b in ipairs(buckets) do
  if b.holds > 0 then hold(b, stamp) end
  reply[#reply + 1] = b.held
  reply[#reply + 1] = b.suspended > stamp and b.suspended or 0
  local last = i + 5 * N[i]
  i = i + 1
  while i <= last do
    local window, from, ends = N[i], N[i + 1], N[i + 2]
    if window > 0 then
      from = stamp - window + 1
    elseif stamp < from or stamp >= ends then
      return {-1, stamp}
    end
    local before = base(b, from)
    local used = b.total - before
    local free = fits(b, window, from, ends, before, 1, used, 0, EMPTY, stamp) -- when one unit would fit if no more were allowed
    for _, h in ipairs(b.list) do
      if h.left > 0 then free = math.min(free, h.expires) end
    end
    reply[#reply + 1] = used
    reply[#reply + 1] = free < NEVER and free or 0
    i = i + 5
  end
end
return reply
