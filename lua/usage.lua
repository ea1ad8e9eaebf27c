-- usage.lua: the standing of buckets and limits at one moment, the same for all of them. It writes nothing.
--
-- KEYS   for each bucket: state, log, holds
-- ARGV   1 N: for each bucket: number of limits, and the limits (bucket.lua)
-- Reply  {clock, for each bucket: held, suspended until (0 = open), for each limit: used, next free at (0 = nothing to free)}
--        or {-1, stamp}: a calendar limit is not of this time, ask again

local now = clock()
local stamp, buckets = now, {}
for k = 1, #KEYS, 3 do
  local b = open(KEYS[k], KEYS[k + 1], KEYS[k + 2])
  buckets[#buckets + 1] = b
  stamp = math.max(stamp, b.newest + 1)
end

local reply, i = {now}, 1
for _, b in ipairs(buckets) do
  local lapses = NEVER -- when the next units that are held come free
  if b.holds > 0 then
    reservations().hold(b, stamp)
    local next = call('ZRANGEBYSCORE', b.index, format('(%d', stamp), '+inf', 'WITHSCORES', 'LIMIT', '0', '1')
    if next[1] then lapses = time_of(b.index, next[2]) end
  end
  reply[#reply + 1] = b.live
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
    local free = math.min(lapses, fits(b, window, from, ends, before, 1, used, 0, stamp)) -- when one unit would fit if no more were allowed
    reply[#reply + 1] = used
    reply[#reply + 1] = free < NEVER and free or 0
    i = i + 5
  end
end
return reply
