-- limit.lua decides one request of the limiter over all of its policies: all are charged, or none.
-- It is version 1 of the contract, which lua/README.md explains with examples.
--
-- KEYS   one for each policy, all in one slot. A key names policy, algorithm, window and client. A
--        policy that was changed has another key, and begins empty.
-- ARGV   five for each policy: algorithm (log, counter or fixed), units (1 to 2^32), window in µs,
--        cost in units (0 charges nothing), and 1 if denied calls are charged too, else 0. With
--        counter, the window is whole milliseconds, and units * milliseconds are at most 2^53.
-- Reply  integers: 1 if the request is allowed, else 0; the server's time in µs; then four for each
--        policy: 1 if it allows the request, 0 if it denies it, -1 if the cost exceeds the units;
--        units remaining; µs until something fits that does not fit now, if nobody charges: the cost
--        if it is denied, else one unit more than remain (0 if all units are free); µs until all
--        units are free, if nobody charges
--
-- Keys expire a minute after they are idle, so a clock that is set back by up to a minute frees
-- nothing. A denial writes nothing, unless denied calls are charged. After a lost reply, the request
-- may have been charged: calling again charges again.

local call, floor, ceil, pack, unpack_ =
  redis.call, math.floor, math.ceil, struct.pack, struct.unpack
local time = call('TIME')
local clock = time[1] * 1000000 + time[2]
local SAFE = 9007199254740992
local MINUTE = 60000 -- ms that a key is kept after it is idle

-- decide_counter decides by the algorithms counter and fixed. Their key is a string of three doubles:
-- the start of the clock's window, the units of the previous window, and the units of this one.
-- state is that string, or false if there is none. It returns whether the cost is allowed, and the
-- last three integers of the policy's reply; then the string after a charge, false if nothing is
-- charged, and the ms after which it expires, nil to keep its expiry. It has only local variables: a
-- table and helper functions would take as long as the two commands.
local function decide_counter(a, state, cost)
  local sliding, units, window = ARGV[a] == 'counter', ARGV[a + 1] + 0, ARGV[a + 2] + 0
  local begin, previous, current, new = clock - clock % window, 0, 0, true
  if state then
    local stored, earlier, latest = unpack_('<ddd', state)
    if begin <= stored then -- begin is earlier if the clock was set back, which frees nothing
      begin, previous, current, new = stored, earlier, latest, false
    elseif sliding and begin - stored == window then
      previous = latest
    end
  end
  local elapsed, left = clock - begin, units - current
  if previous > 0 then -- its units count less with each millisecond
    local ms = window / 1000
    left = left - ceil(previous * (ms - (elapsed > 0 and floor(elapsed / 1000) or 0)) / ms)
  end
  local allowed, after, wait, reset = cost == 0 or cost <= left, current + cost, 0, 0
  if left < 0 then left = 0 end
  local wanted = cost -- units whose time to fit is computed
  if allowed then
    left, current = left - cost, after
    wanted = left + 1
  else
    after = math.min(after, sliding and floor(SAFE / (window / 1000)) or SAFE)
  end
  if wanted <= units then
    local fading, room = previous, units - wanted - current
    wait = -elapsed
    if room < 0 then -- this window's units must fade, too: in the next window
      fading, room, wait = sliding and current or 0, units - wanted, window - elapsed
    end
    if fading > room then
      wait = wait + 1000 * ceil((fading - room) * (window / 1000) / fading)
    end
  end
  if current > 0 and sliding then
    reset = 2 * window - elapsed
  elseif current > 0 or previous > 0 then
    reset = window - elapsed
  end
  local keep = new and ceil(((sliding and 2 or 1) * window - elapsed) / 1000) + MINUTE or nil
  return allowed, left, wait, reset, cost > 0 and pack('<ddd', begin, previous, after), keep
end

-- make_log returns the functions of the algorithm log. Its key is a sorted set of charges, with the
-- time in µs as score and <running total>:<units> as member. The total has 16 digits, so that
-- charges of the same µs sort in order. The functions are created on demand, because creating them
-- takes as long as a counter's decision.
local function make_log()
  local format, sub, max = string.format, string.sub, math.max

  local function total_of(member) return sub(member, 1, 16) + 0 end

  -- total_before returns the running total before the entry at a rank.
  local function total_before(s, rank)
    local member = call('ZRANGE', s.key, rank, rank)[1]
    return total_of(member) - sub(member, 18)
  end

  -- read counts the stored entries outside the window, and adds up the units of the others.
  local function read(key, a)
    local s = {key = key, units = ARGV[a + 1] + 0, window = ARGV[a + 2] + 0,
      now = clock, total = 0, before = 0, outside = 0, newest = nil}
    local newest = call('ZRANGE', key, '-1', '-1', 'WITHSCORES')
    if not newest[1] then return s end
    local at, since = newest[2] + 0, clock - s.window
    s.now = max(clock, at) -- entries stay in order when the clock is set back
    s.total = total_of(newest[1])
    s.outside = call('ZCOUNT', key, '-inf', format('%d', since))
    s.before = s.total
    if at > since then
      local oldest = call('ZRANGE', key, s.outside, s.outside, 'WITHSCORES')
      s.newest, s.oldest, s.leaves = at, total_of(oldest[1]), oldest[2] + 0
      s.before = s.oldest - sub(oldest[1], 18)
    end
    return s
  end

  -- first returns the rank of the first entry whose running total is at least total.
  local function first(s, total)
    local low, high = s.outside, call('ZCARD', s.key) - 1
    while low < high do
      local middle = floor((low + high) / 2)
      if total_of(call('ZRANGE', s.key, middle, middle)[1]) >= total then
        high = middle
      else
        low = middle + 1
      end
    end
    return low
  end

  local function decide(_, s, cost)
    local used = s.total - s.before
    local allowed, left = cost == 0 or cost <= s.units - used, max(0, s.units - used)
    local wait, reset = 0, s.newest and s.newest + s.window - clock or 0
    local wanted = cost -- units whose time to fit is computed
    if allowed then
      left, used = left - cost, used + cost
      wanted = left + 1
      if cost > 0 then reset = s.now + s.window - clock end
    end
    if wanted <= s.units then
      local missing = s.before + used + wanted - s.units
      wait = reset -- until the units of this charge leave the window
      if s.oldest and missing <= s.oldest then
        wait = s.leaves + s.window - clock
      elseif missing <= s.total then
        local rank = first(s, missing)
        wait = call('ZRANGE', s.key, rank, rank, 'WITHSCORES')[2] + s.window - clock
      end
    end
    return allowed, left, wait, reset, cost > 0 and cost
  end

  local function record(s, cost)
    s.total, s.newest = s.total + cost, s.now
    call('ZADD', s.key, format('%d', s.now), format('%016d:%d', s.total, cost))
    if s.outside > 0 then call('ZREMRANGEBYRANK', s.key, '0', s.outside - 1) end
    s.outside = 0
    if s.total - s.before > 2 * s.units then -- only if denied calls are charged
      call('ZREMRANGEBYRANK', s.key, '0', first(s, s.total - s.units + 1) - 1)
      s.before = total_before(s, 0)
    end
    call('PEXPIRE', s.key, ceil((s.now + s.window - clock) / 1000) + MINUTE)
  end

  return {read = read, decide = decide, record = record}
end

local n, log = #KEYS, nil

-- The nils reserve room for three policies, because Lua copies a table each time it grows.
local reply = {1, clock, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil}
local states, afters, keeps = {nil, nil, nil}, {nil, nil, nil}, {nil, nil, nil}
for i = 1, n do
  local a, r, key = 5 * i - 4, 4 * i - 1, KEYS[i]
  local cost, decide, state = ARGV[a + 3] + 0, decide_counter, nil
  if ARGV[a] == 'log' then
    log = log or make_log()
    decide, state = log.decide, log.read(key, a)
  else
    state = call('GET', key)
  end
  local never, allowed = cost > ARGV[a + 1] + 0, nil
  allowed, reply[r + 1], reply[r + 2], reply[r + 3], afters[i], keeps[i] =
    decide(a, state, never and 0 or cost)
  allowed = never and -1 or allowed and 1 or 0
  if allowed ~= 1 then reply[1] = 0 end
  reply[r], states[i] = allowed, state
end

local all = reply[1] == 1
for i = 1, n do
  local a, r, key, after = 5 * i - 4, 4 * i - 1, KEYS[i], afters[i]
  local allowed, kind = reply[r], ARGV[a]
  local counted = all or ARGV[a + 4] == '1' and allowed >= 0
  if counted and after then
    if kind == 'log' then
      log.record(states[i], after)
    else
      states[i] = after
      if keeps[i] then
        call('SET', key, after, 'PX', keeps[i])
      else
        call('SETRANGE', key, '0', after)
      end
    end
  end
  -- another policy denied the request, or the charge made the wait longer
  if not all and (allowed == 1 or counted) then
    local decide, _ = kind == 'log' and log.decide or decide_counter, nil
    _, reply[r + 1], reply[r + 2], reply[r + 3] =
      decide(a, states[i], allowed == 1 and 0 or ARGV[a + 3] + 0)
  end
end
return reply
