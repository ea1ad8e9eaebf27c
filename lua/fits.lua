-- fits.lua: computes when a cost that is denied would fit. It follows windows.lua.

-- fits is the earliest time at which cost more units stay within cap, counting held units until
-- they come free. window, from, ends, before and level are as windows.lua returns them; others is what
-- others used in a window that is not restoring (bucket.lua).
local function fits(b, window, from, ends, before, level, others, cost, cap, held, now)
  local more = others and others[5] or 0

  -- leaves is when the first entry leaves the window whose running total is target or more.
  local function leaves(target)
    local all, entries = b.logged or b.total, b.entries
    for i = 1, target > all and #entries or 0, 2 do -- not written yet
      if entry(b.log, entries[i + 1]) >= target then return entries[i] + window end
    end
    local at, wrong = stamp_at(b.log, from, before, all, call('ZREVRANGE', b.log, '0', '0')[1], target)
    return (at or damaged(b.log, wrong)) + window
  end

  -- freed is when need of the used units will have left the window.
  local function freed(need)
    if need <= 0 then return now end
    if need > b.total - before + more then return NEVER end
    if level then return now + math.ceil((level - (b.total - before - need) * ends) / from) end
    if ends > 0 then return ends end
    if others then -- they leave among our own entries
      local earlier = base(b, others[4], now) - before
      if need > earlier and need <= earlier + more then return others[4] + window end
      if need > earlier then need = need - more end
    end
    return leaves(before + need)
  end

  if cost > cap then return NEVER end
  local need = b.total - before + more + held + cost - cap
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
