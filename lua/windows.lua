-- windows.lua: what windows hold. It follows lapses.lua, and is made on demand, too: local W = windows().
--
-- The level of a restoring window is what was charged less what came back since, never below 0: each
-- unit charged adds as many as the µs of the rate (in lowest terms), each µs takes off its units. So it
-- follows from the log alone, and is kept so that only new entries are to be read:
-- state  l = for each rate, five doubles: units, µs, the level, its time, the bucket's total then

local function windows()
  local W = {}

  local RATE = '<ddddd'

  -- read_levels reads the levels that are kept.
  function W.read_levels(b)
    local list, text = {}, call('HGET', b.state, 'l') or ''
    for pos = 1, #text - 39, 40 do
      local num, den, level, at, total = unpacked(RATE, text, pos)
      list[#list + 1] = {num = num, den = den, level = level, at = at, total = total}
    end
    return list
  end

  -- keep_levels has the next write of the state keep a few levels.
  function W.keep_levels(b, list)
    local text = {}
    for i = 1, math.min(4, #list) do
      local r = list[i]
      text[i] = struct.pack(RATE, r.num, r.den, r.level, r.at, r.total)
    end
    also(b, 'l', table.concat(text))
  end

  -- fill takes a level on to the time at, and adds units charged then.
  function W.fill(r, at, units)
    r.level, r.at = math.max(0, r.level - r.num * (at - r.at)) + units * r.den, at
  end

  -- level_at finds the level of a rate at the time now. It is in b.levels then. nil: entries that are
  -- still to be written matter.
  local function level_at(b, num, den, now)
    b.levels = b.levels or W.read_levels(b)
    local r
    for i, known in ipairs(b.levels) do
      if known.num == num and known.den == den then r = table.remove(b.levels, i) break end
    end
    if b.logged and not (r and r.total == b.total) then
      table.insert(b.levels, r)
      return nil
    end

    -- follow adds the entries that came since; false if they do not follow from what is kept.
    local function follow()
      while r.total ~= b.total do
        local some = call('ZRANGEBYSCORE', b.log, format('(%d', r.at), '+inf', 'WITHSCORES', 'LIMIT', '0', '1000')
        for i = 1, #some, 2 do
          local total, units = entry(b.log, some[i])
          if total - units ~= r.total then return false end
          W.fill(r, time_of(b.log, some[i + 1]), units)
          r.total = total
        end
        if #some == 0 then return false end
      end
      return true
    end

    -- all_over reads the log from its newest entry, until what is older cannot matter: the level is the
    -- most of what was charged from any entry on, less what came back since.
    local function all_over()
      local oldest, rank = call('ZRANGE', b.log, '0', '0')[1], 0
      r = {num = num, den = den, level = 0, at = b.newest, total = b.total}
      if not oldest then return end
      local total, units = entry(b.log, oldest)
      local all, at = b.total - total + units, nil
      repeat
        local some = call('ZREVRANGE', b.log, rank, rank + 499, 'WITHSCORES')
        for i = 1, #some, 2 do
          total, units = entry(b.log, some[i])
          at = time_of(b.log, some[i + 1])
          r.level = math.max(r.level, (b.total - total + units) * den - num * (r.at - at))
        end
        rank = rank + 500
      until #some < 1000 or all * den - num * (r.at - at) <= r.level
    end

    if not r or not follow() then all_over() end
    table.insert(b.levels, 1, r)
    return math.max(0, r.level - num * (now - r.at))
  end

  -- charged takes on the levels that were looked at, after units were charged at the time stamp.
  function W.charged(b, units, stamp)
    for _, r in ipairs(b.levels) do
      if r.total == b.total - units then
        W.fill(r, stamp, units)
        r.total = b.total
      end
    end
  end

  -- reset is the last known end of an anchored window, 0 for none.
  function W.reset(b)
    b.reset = b.reset or tonumber(call('HGET', b.state, 'a') or 0) or damaged(b.state, 'when its window ends cannot be read')
    return b.reset
  end

  -- look is what a limit's window holds at the time now: from which stamp on (inclusive) and until when,
  -- 0 if it slides, the running total before it, and the level of a restoring window, of which from and
  -- until are the rate. The total is nil if a calendar window is not the one of now, or if entries that
  -- are still to be written matter.
  function W.look(b, window, from, ends, now)
    if window < 0 then
      if now < from or now >= ends then return nil end
      return from, ends, base(b, from, now)
    elseif window > 0 and from == 0 then
      from = now - window + 1
      return from, 0, base(b, from, now)
    elseif window > 0 then
      local reset = W.reset(b)
      from = math.max(now - window + 1, reset > now and reset - window or reset)
      return from, reset > now and reset or 0, base(b, from, now)
    elseif from == 0 then
      return 0, 0, b.total
    end
    local level = level_at(b, from, ends, now)
    if not level then return nil end
    local o = others_in(b, window, from, ends, 0)
    if o then -- the level by what was reported, if that is higher
      local charged = b.total - base(b, o[4], now)
      level = math.max(level, o[6] + charged * ends - from * (now - o[4]))
    end
    return from, ends, b.total - math.ceil(level / ends), level
  end

  -- by_others is how many units of what a restoring window has used others used.
  function W.by_others(b, num, den, now)
    local own = level_at(b, num, den, now)
    local _, _, _, level = W.look(b, 0, num, den, now)
    return math.ceil(level / den) - math.ceil(own / den)
  end

  return W
end
