-- bucket.lua: reads and writes one bucket. lua.go puts it at the head of the other scripts.
--
-- log    sorted set, one member per entry: score = stamp (Unix µs),
--        member = <total after it>:<units>:<id>:<labels>[:<run>]
-- state  hash: s = eight little-endian doubles: total, newest (stamp; never moves back), suspended
--        (until, µs), holds (number of reservations), oldest (no entry is older), keep (µs that
--        entries are kept), expire (when the keys expire, µs), held (units left in all
--        reservations, including expired ones that are not deleted yet);
--        for each reservation r:<id> (holds.lua); and, where they are needed: g, how far the sums
--        reach (sums.lua), c, counts of reservations (holds.lua), a, when the anchored window ends
--        (µs), l, levels of restoring windows (windows.lua)
-- holds  sorted set, one member per reservation (holds.lua)
-- If s is missing, total and stamp are read from the newest entry, and held from the reservations.
-- If state and log disagree, the script fails with QUOTADAMAGED [key] [what is wrong]: nothing is
-- allowed until quotactl ledger check --repair.
--
-- ARGV[1] holds the numbers, as little-endian doubles. A limit takes five: three for its window, cap
-- (the most that this charge may bring the window up to), units. The three are
--   sliding     length µs, 0, 0            calendar    -(longest it can be, µs), start µs, end µs
--   anchored    length µs, 1, 0            restoring   0, units that come back, in so many µs
--   pace        -1, start µs, end µs       concurrent  0, 0, 0
-- For a pace, end and units are the times between which its cap is valid, and a draw has no cap.
-- Whole numbers are formatted with %d: tostring would write 1.7637e+15, and is slower.
--
-- A charge pays for all that is made here: each function, each table field beyond sixteen.

local call, format, match, unpacked = redis.call, string.format, string.match, struct.unpack
local NEVER = 4611686018427387904
local EXACT = 9007199254740991 -- 2^53 - 1: a double holds every whole number up to it
local FAR = 1e19 -- µs, later than any time a caller can pass
local KEEP = 259200000000 -- 72 h, the shortest time that entries are kept
local GRAIN = 600000000 -- 10 min: quota.Grain
local STATE = '<dddddddd'
local SLACK = 1000 -- µs: quota.LapseSlack

local function clock()
  local t = call('TIME')
  return t[1] * 1000000 + t[2]
end

-- damaged ends the script, before anything is written. field names the reservation, if it is one.
local function damaged(key, what, field)
  if field then
    what = 'the reservation ' .. match(key, '([^:]*):state$') .. '.' .. string.gsub(string.sub(field, 3, 66), '[^%w_./+-]', '?') .. what
  end
  error('QUOTADAMAGED [' .. key .. '] [' .. what .. ']', 0)
end

-- entry parses a member of a log: the running total after it, and its units.
local function entry(log, member)
  local total, units = match(member, '^(%d+):(%d+):')
  total, units = tonumber(total), tonumber(units)
  if not total or total > EXACT or units > total or units < 1 then damaged(log, 'an entry cannot be read') end
  return total, units
end

-- time_of parses the score of an entry.
local function time_of(log, score)
  local stamp = tonumber(score)
  if stamp and stamp >= 0 and stamp < EXACT and stamp % 1 == 0 then return stamp end
  damaged(log, 'the time of an entry cannot be read')
end

-- write writes the numbers, and more fields (holds.lua).
local function write(b)
  local s = struct.pack(STATE, b.total, b.newest, b.suspended, b.holds, b.oldest, b.keep, b.expire, b.held)
  if b.more then
    call('HSET', b.state, 's', s, unpack(b.more))
    b.more = nil
  else
    call('HSET', b.state, 's', s)
  end
end

local reservations -- in holds.lua
local EMPTY = {}

-- open reads a bucket's state, and compares its total with the newest entry. If there is no state
-- (a new bucket, or it was lost), it is rebuilt.
local function open(state, log, index)
  local s, last = call('HGET', state, 's'), call('ZREVRANGE', log, '0', '0')[1]
  local total, newest, suspended, holds, oldest, keep, expire, held = 0, 0, 0, 0, 0, KEEP, 0, 0
  local sum = last and tonumber(match(last, '^(%d+):%d'))
  local old = s and #s == 56 -- written before held was added
  if s then
    if old then s = s .. struct.pack('<d', 0) end
    if #s ~= 64 then damaged(state, 'its state has ' .. #s .. ' bytes instead of 64') end
    total, newest, suspended, holds, oldest, keep, expire, held = unpacked(STATE, s)
    if not (total >= 0 and total <= EXACT and total % 1 == 0 and newest >= 0 and newest < EXACT and suspended > -FAR and
        suspended < FAR and holds >= 0 and holds < EXACT and oldest < EXACT and keep >= 0 and keep < EXACT and expire < FAR and
        held >= 0 and held <= EXACT and held % 1 == 0 and (held == 0 or holds > 0)) then
      damaged(state, format('its state cannot be read, with a total of %.17g', total))
    elseif sum ~= total and last then
      damaged(state, format('the total is %.0f in its newest entry, and %.0f in its state', entry(log, last), total))
    elseif not last and total > 0 and newest > clock() - keep then -- the log may have expired
      damaged(log, format('there are no entries, and the total of its state is %.0f', total))
    end
  else
    if last then
      total, newest = entry(log, last), time_of(log, call('ZSCORE', log, last))
    end
    expire = clock() + math.max(0, call('PTTL', log), call('PTTL', state), call('PTTL', index)) * 1000
  end
  local b = { -- all sixteen fields at once: growing the table later is slow
    state = state, log = log, index = index, total = total, newest = newest, suspended = suspended,
    holds = holds, oldest = oldest, keep = keep, expire = expire, held = held, live = 0,
    lapsed = EMPTY, units = 0, room = 0,
    fresh = not s or not last, -- a new key needs its expiry set
  }
  if not s or old then reservations().reindex(b) end
  return b
end

-- base is the running total before the first entry stamped at from or later.
local function base(b, from)
  local first = call('ZRANGEBYSCORE', b.log, format('%d', from), '+inf', 'LIMIT', '0', '2')
  if not first[1] then return b.total end
  local total, units = match(first[1], '^(%d+):(%d+):')
  local after, more = b.total, 0 -- of the next entry, which must not start below it
  if first[2] then after, more = match(first[2], '^(%d+):(%d+):') end
  local before = total and after and total - units
  if before and before >= 0 and before + units <= after - more and b.total - after >= 0 then return before end
  for _, member in ipairs(first) do entry(b.log, member) end
  damaged(b.log, 'the totals of its entries do not rise by their units')
end

-- fits is the earliest time at which cost more units stay within cap, counting held units until
-- they come free. window, from, ends, before and level are as windows.lua returns them.
local function fits(b, window, from, ends, before, level, cost, cap, held, now)

  -- stamp_at is the stamp of the first entry in the window whose running total is target or more.
  -- If target is near the start, it is among the oldest entries. Otherwise this is an interpolation
  -- search, which from the second probe on also reads a few entries to either side, and which
  -- becomes a binary search if it does not narrow fast.
  local function stamp_at(target)
    if (target - before) * 256 < b.total - before then
      local oldest = call('ZRANGEBYSCORE', b.log, format('%d', from), '+inf', 'WITHSCORES', 'LIMIT', '0', '4')
      for i = 1, #oldest, 2 do
        if entry(b.log, oldest[i]) >= target then return time_of(b.log, oldest[i + 1]) end
      end
    end
    local hi, hi_total = -1, b.total -- ranks are counted from the newest entry, -1
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
  local R = reservations()
  local lapsed, since, n = R.lapsing(b, now, at, need, R.frees(b, window, from, ends, level))
  local lo, hi = 0, n
  while lo < hi do
    local mid = math.floor((lo + hi) / 2)
    if since[mid] >= freed(need - lapsed[mid]) then hi = mid else lo = mid + 1 end
  end
  local best = math.max(since[lo], freed(need - lapsed[lo]))
  return lo == 0 and best or math.min(best, math.max(since[lo - 1], freed(need - lapsed[lo - 1])))
end

-- save writes the state after a change. The keys expire when they have been idle for long, and never
-- while entries, holds (the last expires at hold_until) or a suspension matter. The expiry is
-- extended only once half of it has passed. The labels, which all buckets of a credential share,
-- last at least as long as the log.
local told = 0 -- 1 if this call brought a line of labels, 2 if it made their key

local function save(b, now, keep, labels, hold_until)
  if keep > b.keep then b.keep = keep end
  local needed = math.max(b.suspended, hold_until or now, now) + b.keep
  local renew = b.expire < needed
  if renew then b.expire = needed + b.keep end
  write(b)
  if renew or b.fresh then
    call('PEXPIREAT', b.state, format('%d', b.expire / 1000))
    call('PEXPIREAT', b.log, format('%d', b.expire / 1000))
    call('PEXPIREAT', b.index, format('%d', b.expire / 1000))
  end
  if renew or b.fresh or told > 0 then
    local ttl = call('PTTL', labels) -- -1: for ever
    if told == 2 or ttl >= 0 and now + ttl * 1000 < b.expire then
      call('PEXPIREAT', labels, format('%d', b.expire / 1000))
      told = 1
    end
  end
end

-- intern stores a line of labels under its code, once for all entries that have it, and returns what
-- to write in an entry: the code, or the line itself if the code is taken or the credential has very
-- many different lines. A caller that sent the line lately sends the code alone.
local function intern(labels, code, line)
  if line == '' then return code end
  told = 1
  if call('HSETNX', labels, code, line) == 0 then
    return call('HGET', labels, code) == line and code or '=' .. line -- two lines may have the same short code
  end
  local lines = call('HLEN', labels)
  if lines == 1 then told = 2 end
  if lines <= 10000 then return code end
  call('HDEL', labels, code)
  return '=' .. line
end

-- append writes an entry of units, to be kept for keep µs. tail is <id>:<labels>[:<run>]. It also
-- deletes expired reservations, and up to 64 entries that nobody needs any more, once they span a
-- thirty-second of the time that entries are kept.
local function append(b, stamp, units, tail, keep)
  b.total, b.newest = b.total + units, stamp
  if keep > b.keep then b.keep = keep end
  call('ZADD', b.log, format('%d', stamp), format('%d:%d:%s', b.total, units, tail))
  if b.due or #b.lapsed > 0 then reservations().forget(b) end
  if b.oldest < stamp - b.keep * 33 / 32 then
    local old = math.min(64, call('ZCOUNT', b.log, '-inf', format('%d', stamp - b.keep)))
    if old > 0 then call('ZREMRANGEBYRANK', b.log, 0, old - 1) end
    b.oldest = tonumber(call('ZRANGE', b.log, 0, 0, 'WITHSCORES')[2])
  end
end
