-- search.lua: finds the entry with which units leave a window, for plain.lua, too.

-- stamp_at is the stamp of the first entry in a window whose running total is target or more. from is
-- where the window starts, before the total there; total and newest are those of the log's newest entry;
-- known and at are what start.lua knows of the start, if it does. If they cannot be, it returns nil, and
-- what is wrong.
--
-- It narrows a range of ranks, counted from -1, the newest: lo is below target, hi is not. It looks
-- where target is if all entries of the range are about as large as each other, or, for few units, as
-- the oldest ones; then if they are as large as those that it passed last, or else as the one at the
-- other end, and at last in the middle. The further it guesses, the more entries it reads around there.
local function stamp_at(log, from, before, total, newest, target, known, at)
  local call, floor, format = redis.call, math.floor, string.format
  local since = format('%d', from)
  local below, low, above, _, high = before, 1, total, totals(newest) -- totals and units at lo and hi
  local lo, few = 0, target - before < (total - before) / 100 and 0 -- entries passed, and how many to pass
  if at then
    local _, _, first, after, second, last = unpacked(KNOWN, known, at)
    if from <= first and after > before then
      if target <= after then return first end
      lo = 1
    end
    if last > after then
      if target <= last then return second end
      lo = lo + 1
    end
    if lo > 0 then
      below, low = last, (last - before) / lo
      few = (target - below) / low
    end
  end

  local hi, left, right, slope, up = -1, nil, nil, nil, nil
  local found = few and few < 6 and call('ZRANGEBYSCORE', log, since, '+inf', 'LIMIT', format('%d', lo), '8') or {}
  for try = 0, 70 do
    local was_below, was_above, i, j = below, above, 0, #found + 1
    while j - i > 1 do -- found[i] is below target, found[j] is not; either may lie outside
      local k = try == 0 and i + 1 or floor((i + j) / 2)
      local sum, units = totals(found[k])
      if not sum or sum > 9007199254740991 or units > sum or units < 1 then return nil, 'an entry cannot be read' end
      if sum < target then i, below, low = k, sum, units else j, above, high = k, sum, units end
    end
    if found[j] and (i > 0 or try == 0 or left == lo + 1) then
      local stamp = tonumber(call('ZSCORE', log, found[j]))
      if stamp and stamp >= 0 and stamp < 9007199254740991 and stamp % 1 == 0 then return stamp end
      return nil, 'the time of an entry cannot be read'
    elseif try == 0 then
      lo = lo - 1 - call('ZCOUNT', log, since, '+inf') + #found
    elseif j == 1 then
      slope, up, hi = (was_above - above) / (hi - left), false, left
    else
      slope, up, lo = (below - was_below) / (right - lo), true, right
    end
    if lo >= hi then break end
    left, right = lo + 1, hi
    local gone = hi - lo
    if gone > 9 then
      local rank, near, away = nil, 0, nil
      if try == 0 and few and few < 100 then
        away = floor(few)
        rank = lo + 1 + away
      elseif try == 0 then
        rank = lo + 1 + floor((target - below) / (above - below) * (gone - 1))
      elseif try < 5 then
        local first = (target - below) / (up and try < 3 and slope or low)
        local last = (above - target) / (not up and try < 3 and slope or high)
        away = floor(up and first or last)
        rank = up and lo + away or hi - away
        if rank <= lo or rank > hi then
          away = floor(up and last or first)
          rank = up and hi - away or lo + away
        end
        if rank <= lo or rank > hi then
          away = nil
          rank = up and hi - floor(math.sqrt(gone)) or lo + floor(math.sqrt(gone))
        end
      end
      if away then near = away < 50 and 1 + floor(math.sqrt(away)) or 1 end
      if not rank or rank <= lo or rank > hi or rank ~= rank then rank, near = floor((lo + hi) / 2), 0 end
      if rank - near > left then left = rank - near end
      if rank + near < right then right = rank + near end
    end
    found = call('ZRANGE', log, format('%d', left), format('%d', right))
  end
  return nil, 'the totals of its entries do not rise by their units'
end
