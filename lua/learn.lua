-- learn.lua: keeps what others used in one window, according to what the upstream says is left, and moves
-- the end of an anchored window. It never frees units, except at the end of such a window.
--
-- KEYS   1 labels  2 state  3 log  4 holds
-- ARGV   1 when the upstream was asked (0 = not known), units that it says are left (-1 = not said), end
--          of the window that it tells (0 = not told), the limit (bucket.lua); the bounds of a calendar
--          window are those of when it was asked
-- Reply  {1, stamp, units left by our own count, units that others used besides (0 = none), end of the
--        anchored window (0 = not known)}, or {-1, clock}: ask again

local asked, left, told, window, from, ends, _, units = unpacked('<dddddddd', ARGV[1])
local now, stamp, buckets = look(2, 3)
local b, W = buckets[1], windows()
if asked == 0 or asked > stamp then asked = stamp end
local stale = told > 0 and told <= stamp

local was -- used by us, and what has left the window since the upstream was asked, which it counted, too
local since = from -- from when on what others used counts now, and when the upstream was asked
local level
if window < 0 then
  if asked < from or asked >= ends then return {-1, stamp} end
  stale = stale or stamp >= ends
  was = b.total - base(b, from, stamp)
elseif window == 0 then
  local _, _, before
  _, _, before, level = W.look(b, window, from, ends, stamp)
  local passed, most = stamp - asked, 1e12
  if passed <= math.floor((EXACT - ends) / from) then most = math.min(most, math.ceil(passed * from / ends)) end
  was = b.total - before + most
elseif from == 0 then
  since = stamp - window + 1
  was = b.total - base(b, asked - window + 1, stamp)
else
  W.look(b, window, from, ends, stamp) -- finds the end that is known
  local ahead, slack = math.min(told, stamp + window), math.floor(window / 60)
  if told > stamp and told <= stamp + 2 * window and (b.reset == 0 or ahead - window >= b.reset - slack) then
    b.reset = ahead
    also(b, 'a', format('%d', ahead))
  end
  stale = stale or told > 0 and told < b.reset - slack
  local _, _, before
  since, _, before = W.look(b, window, from, ends, stamp)
  was = b.total - before
end

local known = not level and others_in(b, window, from, ends, window > 0 and from == 0 and asked - window + 1 or since)
local counted = known and known[4] >= since and known[5] or 0
if known then was = was + known[5] end
local _, extra = lapses().counted(b)
local thought, more = math.max(0, units - was - b.live - extra), 0
if not stale and left >= 0 and left < thought then
  more = thought - left
  if level then counted = W.by_others(b, from, ends, stamp) end
  local all = {{window, from, ends, stamp, counted + more, level and level + more * ends or 0}}
  for _, o in ipairs(b.others or {}) do
    if o[1] ~= window or o[2] ~= from or o[3] ~= ends then all[#all + 1] = o end
  end
  b.others = all
  keep_others(b)
  if b.newest < stamp - 1 then b.newest = stamp - 1 end -- later decisions are not made at an earlier time
end
if b.more then save(b, now, 0) end
return {1, stamp, thought, more, b.reset or 0}
