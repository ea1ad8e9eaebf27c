-- limit.lua: one decision of the limiter, over all policies of a request: all are charged or none.
-- Version 1 of the contract; lua/README.md explains it with examples.
--
-- KEYS   one for each policy, all in one slot, then former keys, whose charges are moved. Names say
--        policy, algorithm, window and who asks, so that a changed policy begins empty.
-- ARGV   six for each policy: algorithm (log, counter or fixed), units (1 to 2^32), window in µs,
--        cost in units (0 charges nothing), 1 if denied calls are charged too, else 0, and the
--        number of the former key in KEYS, or 0. For counter the window is whole milliseconds, and
--        units * milliseconds at most 2^53.
-- Reply  integers: 1 allowed or 0 denied, the server's time in µs, then four for each policy:
--        1 it allows, 0 it denies or -1 the cost exceeds the units; units remaining; µs until the
--        cost fits, if nobody else charges; µs until all is free again
--
-- Keys expire when they are idle. A denial writes nothing, except where denied calls are charged. A
-- caller that loses the reply may have been charged: asking again charges again.

local call, floor, ceil, max, min = redis.call, math.floor, math.ceil, math.max, math.min
local pack, unpack_, format = struct.pack, struct.unpack, string.format
local time = call('TIME')
local clock = time[1] * 1000000 + time[2]
local SAFE = 9007199254740992

-- counter and fixed are a string of three doubles: the start of the clock's window, the units of
-- the previous one, and the units of this one.
local function read_counter(s, raw)
  if raw then s.begin, s.previous, s.current = unpack_('<ddd', raw) end
  s.stored = s.begin
  local begin = max(clock - clock % s.window, s.begin) -- a clock that was set back frees nothing
  s.gone = clock - begin
  if begin ~= s.begin then
    s.previous = begin - s.begin == s.window and s.kind == 'counter' and s.current or 0
    s.begin, s.current = begin, 0
  end
end

-- fades is how far into a window the units of the previous one have faded to this many.
local function fades(s, units, to)
  if units <= to then return 0 end
  return 1000 * ceil((units - to) * (s.window / 1000) / units)
end

local function decide_counter(s, cost)
  local left = s.units - s.current
  if s.previous > 0 then
    local ms = s.window / 1000
    left = left - ceil(s.previous * (ms - max(0, floor(s.gone / 1000))) / ms)
  end
  local allowed, current, retry, reset = cost == 0 or cost <= left, s.current, 0, 0
  left = max(0, left)
  if allowed then
    left, current = left - cost, current + cost
  else
    local room = s.units - cost
    if current <= room then
      retry = fades(s, s.previous, room - current) - s.gone
    else
      retry = s.window - s.gone
      if s.kind == 'counter' then retry = retry + fades(s, current, room) end
    end
  end
  if current > 0 and s.kind == 'counter' then
    reset = 2 * s.window - s.gone
  elseif current > 0 or s.previous > 0 then
    reset = s.window - s.gone
  end
  return allowed, left, retry, reset
end

local function record_counter(s, cost)
  s.current = min(s.current + cost, floor(SAFE / (s.window / 1000)))
  if s.begin == s.stored then
    call('SETRANGE', s.key, 16, pack('<d', s.current)) -- it expires when it did before
    return
  end
  call('SET', s.key, pack('<ddd', s.begin, s.previous, s.current),
    'PX', ceil((2 * s.window - s.gone) / 1000))
  s.stored = s.begin
end

-- log is a sorted set of charges: score µs, member <running total>:<units>. The total has 16
-- digits, so that charges of the same µs are in order. Its functions are made only if they are
-- needed: making them takes as long as a counter's whole decision.
local function make_log()
  local function parse(member)
    local total, units = string.match(member, '^(%d+):(%d+)$')
    return tonumber(total), tonumber(units)
  end

  -- total_before is the running total before the entry of that rank.
  local function total_before(s, rank)
    local total, units = parse(call('ZRANGE', s.key, rank, rank)[1])
    return total - units
  end

  -- read_log counts the entries that have left the window, which are still there, and what the
  -- others have taken.
  local function read_log(s)
    s.now, s.total, s.before, s.left = clock, 0, 0, 0
    local newest = call('ZRANGE', s.key, -1, -1, 'WITHSCORES')
    if not newest[1] then return end
    local at = tonumber(newest[2])
    s.now = max(clock, at) -- a clock that was set back reorders nothing
    s.total = parse(newest[1])
    s.left = call('ZCOUNT', s.key, '-inf', format('%.0f', clock - s.window))
    s.before = s.total
    if at > clock - s.window then s.newest, s.before = at, total_before(s, s.left) end
  end

  -- first is the rank of the first entry whose running total is at least this much.
  local function first(s, total)
    local low, high = s.left, call('ZCARD', s.key) - 1
    while low < high do
      local middle = floor((low + high) / 2)
      if parse(call('ZRANGE', s.key, middle, middle)[1]) >= total then
        high = middle
      else
        low = middle + 1
      end
    end
    return low
  end

  local function decide_log(s, cost)
    local used = s.total - s.before
    local allowed, left = cost == 0 or cost <= s.units - used, max(0, s.units - used)
    local retry, reset = 0, s.newest and s.newest + s.window - clock or 0
    if allowed then
      left = left - cost
      if cost > 0 then reset = s.now + s.window - clock end
    else
      local rank = first(s, s.before + used + cost - s.units)
      retry = tonumber(call('ZRANGE', s.key, rank, rank, 'WITHSCORES')[2]) + s.window - clock
    end
    return allowed, left, retry, reset
  end

  local function record_log(s, cost)
    s.total, s.newest = s.total + cost, s.now
    call('ZADD', s.key, format('%.0f', s.now), format('%016.0f:%.0f', s.total, cost))
    if s.left > 0 then call('ZREMRANGEBYRANK', s.key, 0, s.left - 1) end
    s.left = 0
    if s.total - s.before > 2 * s.units then -- denied calls: the newest are enough
      call('ZREMRANGEBYRANK', s.key, 0, first(s, s.total - s.units + 1) - 1)
      s.before = total_before(s, 0)
    end
    call('PEXPIRE', s.key, ceil((s.now + s.window - clock) / 1000) + 1)
  end

  return {read = read_log, decide = decide_log, record = record_log}
end

local n, log, raws = #ARGV / 6, nil, nil
if #KEYS > n then
  for i = 1, n do
    local former = KEYS[tonumber(ARGV[6 * i])]
    if former and call('EXISTS', former) == 1 then call('RENAMENX', former, KEYS[i]) end
  end
end
if n > 1 then raws = call('MGET', unpack(KEYS, 1, n)) end -- of a log it is false

local function decide(s, cost)
  if s.kind == 'log' then return log.decide(s, cost) end
  return decide_counter(s, cost)
end

local all, reply, states = true, {1, clock}, {}
for i = 1, n do
  local a = 6 * i - 5
  local s = {key = KEYS[i], kind = ARGV[a], units = ARGV[a + 1] + 0, window = ARGV[a + 2] + 0,
    cost = ARGV[a + 3] + 0, count_denied = ARGV[a + 4] == '1',
    begin = 0, stored = 0, previous = 0, current = 0, gone = 0} -- room for all of a counter
  if s.kind == 'log' then
    log = log or make_log()
    log.read(s)
  else
    read_counter(s, raws and raws[i] or not raws and call('GET', s.key))
  end
  local never = s.cost > s.units
  local ok, left, retry, reset = decide(s, never and 0 or s.cost)
  local allowed = never and -1 or ok and 1 or 0
  all = all and allowed == 1
  local r = 4 * i - 1
  reply[r], reply[r + 1], reply[r + 2], reply[r + 3], states[i] = allowed, left, retry, reset, s
end
if not all then reply[1] = 0 end
for i = 1, n do
  local s, r, _ = states[i], 4 * i - 1, nil
  local counted = all or s.count_denied and reply[r] >= 0
  if counted and s.cost > 0 then
    if s.kind == 'log' then log.record(s, s.cost) else record_counter(s, s.cost) end
  end
  if not all and (reply[r] == 1 or counted) then -- another denies it, or the wait is longer now
    local cost = reply[r] == 1 and 0 or s.cost
    _, reply[r + 1], reply[r + 2], reply[r + 3] = decide(s, cost)
  end
end
return reply
