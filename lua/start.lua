-- start.lua: finds what a log has before a window starts. It follows entry.lua, in all scripts.
--
-- known  what was found before, which the state keeps (bucket.lua): for up to four windows six
--        little-endian doubles, of a start and the next two entries: the start, the total before it,
--        their stamps and the totals after them. A window that starts up to the stamp of the first of
--        them has the same total before it, one that starts after that and up to the second has the next
--        one. That stays so, since newer entries change nothing of it; whatever changes or adds older
--        ones has the bucket forget it all

local KNOWN = '<dddddd'

-- start_of is the running total before the first entry stamped from or later; known, with that in it;
-- up to when a later start has the same total before it; and where that is known. total is that of the
-- newest entry in the log, next the earliest stamp that a newer one can have. nil: the totals do not
-- rise by their units.
local function start_of(log, known, from, total, next)
  local at, near = #known + 1, -1 -- what is found replaces what is known of times shortly before it
  for i = 1, #known, 48 do
    local since, before, first, after, second, last = unpacked(KNOWN, known, i)
    if from >= since and from <= second and before >= 0 and before <= after and after <= last and last <= total then
      if from > first then return after, known, second, i end
      return before, known, first, i
    end
    if second < from and since > near then at, near = i, since end
  end
  local found = redis.call('ZRANGEBYSCORE', log, string.format('%d', from), '+inf', 'WITHSCORES', 'LIMIT', '0', '2')
  local before, first, after, second, last = total, next, total, next, total
  if found[1] then
    local sum, units = totals(found[1])
    before, first, after = sum and sum - units, tonumber(found[2]), sum
    if not before or before < 0 or after > total then return nil end
    if found[3] then
      last, units = totals(found[3])
      if not last or last > total or last - units < after then return nil end
      second = tonumber(found[4])
    end
    if not (second and second < 9007199254740991 and first < second and first % 1 + second % 1 == 0) then
      return before, known, from
    end
  end
  if at > 145 then at = 145 end
  known = string.sub(known, 1, at - 1) .. struct.pack(KNOWN, from, before, first, after, second, last) ..
    string.sub(known, at + 48)
  return before, known, first, at
end
