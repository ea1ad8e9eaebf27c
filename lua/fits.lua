-- fits.lua: computes when a cost that is denied would fit. It follows windows.lua.

-- fits is the earliest time at which cost more units stay within cap, counting held units until
-- they come free. window, from, ends, before and level are as windows.lua returns them.
local function fits(b, window, from, ends, before, level, cost, cap, held, now)

  -- stamp_at is the stamp of the first entry in the window whose running total is target or more.
  -- If target is near the start, it is among the oldest entries. Otherwise this is an interpolation
  -- search, which from the second probe on also reads a few entries to either side, and which
  -- becomes a binary search if it does not narrow fast.
  local function stamp_at(target)
    local all, entries = b.logged or b.total, b.entries
    for i = 1, target > all and #entries or 0, 2 do -- not written yet
      if entry(b.log, entries[i + 1]) >= target then return entries[i] + 0 end
    end
    if (target - before) * 256 < b.total - before then
      local oldest = call('ZRANGEBYSCORE', b.log, format('%d', from), '+inf', 'WITHSCORES', 'LIMIT', '0', '4')
      for i = 1, #oldest, 2 do
        if entry(b.log, oldest[i]) >= target then return time_of(b.log, oldest[i + 1]) end
      end
    end
    local hi, hi_total = -1, all -- ranks are counted from the newest entry, -1
    local lo, lo_total = -1 - call('ZCOUNT', b.log, format('%d', from), '+inf'), before
    local near = 0
    for try = 1, 64 do -- from the fifth on, each halves the range
      local left, right = lo + 1, hi
      if hi - lo > 7 then
        local rank = math.floor((lo + hi) / 2)
        if try <= 4 and hi_total > lo_total then
          rank = lo + math.max(1, math.floor((target - lo_total) / (hi_total - lo_total) * (hi - lo)))
          rank = math.min(rank, hi)
        end
        left, right = math.max(left, rank - near), math.min(right, rank + near)
      end
      near = 4
      local found = call('ZRANGE', b.log, left, right)
      local i, j = 0, #found + 1 -- found[i] is below target, found[j] is not; either may lie outside
      while j - i > 1 do
        local k = math.floor((i + j) / 2)
        local total = entry(b.log, found[k])
        if total < target then i, lo_total = k, total else j, hi_total = k, total end
      end
      if found[j] and (i > 0 or left == lo + 1) then return time_of(b.log, call('ZSCORE', b.log, found[j])) end
      if j == 1 then hi = left else lo = right end
    end
    damaged(b.log, 'the totals of its entries do not rise by their units')
  end

  -- freed is when need of the used units will have left the window.
  local function freed(need)
    if need <= 0 then return now end
    if need > b.total - before then return NEVER end
    if level then return now + math.ceil((level - (b.total - before - need) * ends) / from) end
    return ends > 0 and ends or stamp_at(before + need) + window
  end

  if cost > cap then return NEVER end
  local need = b.total - before + held + cost - cap
  local at = freed(need)
  if held == 0 or at <= now then return at end
  -- Each hold that comes free leaves fewer units to wait for. As n rises, the time when the first n
  -- holds have come free rises, and freed falls: the answer is where they cross.
  local L = lapses()
  local lapsed, since, n = L.lapsing(b, now, at, need, L.frees(b, window, from, ends, level))
  local lo, hi = 0, n
  while lo < hi do
    local mid = math.floor((lo + hi) / 2)
    if since[mid] >= freed(need - lapsed[mid]) then hi = mid else lo = mid + 1 end
  end
  local best = math.max(since[lo], freed(need - lapsed[lo]))
  return lo == 0 and best or math.min(best, math.max(since[lo - 1], freed(need - lapsed[lo - 1])))
end
