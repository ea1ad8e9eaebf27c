-- learn.lua: books what others have used, according to what the upstream says is left, and moves the
-- end of an anchored window. It never frees units, except at the end of such a window.
--
-- KEYS   1 labels  2 state  3 log  4 holds
-- ARGV   1 keep µs, when the upstream was asked (0 = not known), units that it says are left (-1 = not
--          said), end of the window that it tells (0 = not told), the limit (bucket.lua); the bounds of
--          a calendar window are those of when it was asked
--        2 entry id  3 code of the labels  4 their line  5 run
-- Reply  {1, stamp, units left by our own count, units of the entry (0 = none), end of the anchored
--        window (0 = not known)}, or {-1, clock}: ask again

local keep, asked, left, told, window, from, ends, _, units = unpacked('<ddddddddd', ARGV[1])
local now, stamp, buckets = look(2, 3)
local b, W = buckets[1], windows()
if asked == 0 or asked > stamp then asked = stamp end
local stale = told > 0 and told <= stamp

local was -- used, and what has left the window since the upstream was asked, which it counted, too
if window < 0 then
  if asked < from or asked >= ends then return {-1, stamp} end
  stale = stale or stamp >= ends
  was = b.total - base(b, from, stamp)
elseif window == 0 then
  local _, _, before = W.look(b, window, from, ends, stamp)
  local since, most = stamp - asked, 1e12
  if since <= math.floor((EXACT - ends) / from) then most = math.min(most, math.ceil(since * from / ends)) end
  was = b.total - before + most
elseif from == 0 then
  was = b.total - base(b, asked - window + 1, stamp)
else
  W.look(b, window, from, ends, stamp) -- finds the end that is known
  local ahead, slack = math.min(told, stamp + window), math.floor(window / 60)
  if told > stamp and told <= stamp + 2 * window and (b.reset == 0 or ahead - window >= b.reset - slack) then
    b.reset = ahead
    also(b, 'a', format('%d', ahead))
  end
  stale = stale or told > 0 and told < b.reset - slack
  local _, _, before = W.look(b, window, from, ends, stamp)
  was = b.total - before
end

local _, extra = lapses().counted(b)
local thought, booked = math.max(0, units - was - b.live - extra), 0
if not stale and left >= 0 and left < thought then
  booked = thought - left
  if b.total + booked > EXACT then return {err = 'QUOTATOTAL ' .. b.log} end
  append(b, stamp, booked, ARGV[2] .. ':' .. intern(ARGV[3], ARGV[4]) .. (ARGV[5] == '' and '' or ':' .. ARGV[5]), keep)
end
if booked > 0 or b.more then save(b, now, booked > 0 and keep or 0) end
return {1, stamp, thought, booked, b.reset or 0}
