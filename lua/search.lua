-- search.lua: finds the entry with which units leave a window, for plain.lua, too.

-- stamp_at is the stamp of the first entry in a window whose running total is target or more. from is
-- the start of the window, as text, before the total there, and oldest its first two entries; total and
-- newest are those of the log's newest entry. If they cannot be, it returns nil, and what is wrong.
--
-- It narrows a range of ranks, counted from -1, the newest: lo is below target, hi is not. It looks
-- where target is if all entries of the range are about as large as each other, then if they are as
-- large as those that it passed last, or else as the one at the other end, and at last in the middle.
local function stamp_at(log, from, before, oldest, total, newest, target)
  local call, floor = redis.call, math.floor
  local below, low, above, _, high = before, 1, total, totals(newest) -- totals and units at lo and hi
  local lo, hi, left, right, slope, up = nil, -1, nil, nil, nil, nil
  local found = oldest
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
      lo = -1 - call('ZCOUNT', log, from, '+inf') + #found
    elseif j == 1 then
      slope, up, hi = (was_above - above) / (hi - left), false, left
    else
      slope, up, lo = (below - was_below) / (right - lo), true, right
    end
    if lo >= hi then break end
    left, right = lo + 1, hi
    local gone = hi - lo
    if gone > 9 then
      local rank, near = nil, 1
      if try == 0 then
        rank = lo + 1 + floor((target - below) / (above - below) * (gone - 1))
        near = rank - lo < 5 and 1 or 0
      elseif try < 5 and up then
        rank = lo + floor((target - below) / (try < 3 and slope or low))
        if rank > hi then rank = hi - floor((above - target) / high) end
        if rank <= lo then rank = hi - floor(math.sqrt(gone)) end
      elseif try < 5 then
        rank = hi - floor((above - target) / (try < 3 and slope or high))
        if rank <= lo then rank = lo + floor((target - below) / low) end
        if rank > hi then rank = lo + floor(math.sqrt(gone)) end
      end
      if not rank or rank <= lo or rank > hi then rank, near = floor((lo + hi) / 2), 0 end -- or no number
      if rank - near > left then left = rank - near end
      if rank + near < right then right = rank + near end
    end
    found = call('ZRANGE', log, left, right)
  end
  return nil, 'the totals of its entries do not rise by their units'
end
