-- usage.lua: reports the use of buckets and limits, all at the same time. It writes nothing but what
-- has lapsed (holds.lua).
--
-- KEYS   1 labels  then for each bucket: state, log, holds
-- ARGV   1 for each bucket: number of limits, the limits (bucket.lua)
-- Reply  {clock, for each bucket: held, what that can turn out to be at most, suspended until (0 =
--        open), the last known end of an anchored window (0 = none), for each limit: used, by others
--        of that, next free at (0 = nothing to free)} or {-1, stamp}: a calendar limit has the wrong window, ask again

local now, stamp, buckets = look(2, 3)
local L, W = lapses(), windows()

local reply, pos = {now}, 1
for _, b in ipairs(buckets) do
  local expires -- of the next hold
  if b.holds > 0 then
    L.listed(b)
    local next = call('ZRANGEBYSCORE', b.index, format('(%d', stamp), '+inf', 'WITHSCORES', 'LIMIT', '0', '1')
    if next[1] then expires = time_of(b.index, next[2]) end
  end
  local _, extra = L.counted(b)
  reply[#reply + 1] = b.live
  reply[#reply + 1] = b.live + extra
  reply[#reply + 1] = b.suspended > stamp and b.suspended or 0
  reply[#reply + 1] = W.reset(b)
  local limits
  limits, pos = unpacked('<d', ARGV[1], pos)
  for _ = 1, limits do
    local window, from, ends, before, level, _
    window, from, ends, _, _, pos = unpacked('<ddddd', ARGV[1], pos)
    local first, last = from, ends
    from, ends, before, level = W.look(b, window, from, ends, stamp)
    if not from then return {-1, stamp} end
    local others = not level and others_in(b, window, first, last, from)
    local more = others and others[5] or level and W.by_others(b, first, last, stamp) or 0
    local used = b.total - before + (others and more or 0)
    -- When one unit would fit, if no more than what is used were allowed.
    local free = fits(b, window, from, ends, before, level, others, 1, used, 0, stamp)
    if expires then free = math.min(free, L.frees(b, window, from, ends, level)(expires)) end
    reply[#reply + 1] = used
    reply[#reply + 1] = more
    reply[#reply + 1] = free < NEVER and free or 0
  end
end
return reply
