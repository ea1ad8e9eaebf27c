-- bucket.lua: what the scripts know of one bucket. It stands before each of them (see lua.go).
--
-- log    sorted set, an entry a member: score = stamp (Unix µs), member = <total after it>:<units>:<id>:<labels>[:<run>]
-- state  hash: s = eight doubles, little-endian: total, newest (stamp; never moves back), suspended (until, µs), holds (how
--        many reservations), oldest (no entry is older), keep (µs that entries are kept), expire (when the keys lapse, µs), held
--        (units left in all reservations, also in those that have expired and are still there);
--        and for each reservation r:<id> = <left>:<expires µs>:<drawn>:<units>:<created µs>:<manual 0|1>:<note>;
--        and g, how far the sums reach (sums.lua)
-- holds  sorted set, a reservation a member, by expiry: member = <left>:<id>, score = <expires µs>, negative when nothing is left,
--        so that who looks for units passes over it
-- Without s, the newest entry says total and stamp, and the reservations what is held. State and log that disagree are an error: QUOTADAMAGED [key] [what is wrong].
-- It denies; quotactl ledger check finds and mends it.
--
-- Numbers come in ARGV[1], as little-endian doubles, and stand in N; a limit takes five of them:
--   window µs (0 for a calendar window, -1 for a pace, which is on one), start µs, end µs, cap (what this charge may bring the
--   window up to), units; of a pace, end and units are the times between which its cap holds, and draws have no cap
-- Whole numbers are formatted with %d: Lua's own way would write 1.7637e+15, and takes longer.

local call, format, match = redis.call, string.format, string.match
local NEVER = 4611686018427387904
local EXACT = 9007199254740991 -- the largest whole number that a double tells from its neighbours
local FAR = 1e19 -- beyond every time that a caller can name, in µs
local KEEP = 259200000000 -- 72 h: no caller keeps entries for less
local GRAIN = 600000000 -- 10 min: quota.Grain
local STATE = '<dddddddd'
local N = {struct.unpack('<' .. string.rep('d', #ARGV[1] / 8), ARGV[1])}
N[#N] = nil -- where the unpacking ended

local function clock()
  local t = call('TIME')
  return t[1] * 1000000 + t[2]
end

-- damaged ends the script, before anything was written. Of a reservation it is given the field: what cannot be read may hold any
-- number of units.
local function damaged(key, what, field)
  if field then
    what = 'the reservation ' .. match(key, '([^:]*):state$') .. '.' .. string.gsub(string.sub(field, 3, 66), '[^%w_-]', '?') .. what
  end
  error('QUOTADAMAGED [' .. key .. '] [' .. what .. ']', 0)
end

-- entry takes a member of a log apart: the running total after it, and its units.
local function entry(log, member)
  local total, units = match(member, '^(%d+):(%d+):')
  total, units = tonumber(total), tonumber(units)
  if not total or total > EXACT or units > total or units < 1 then damaged(log, 'an entry cannot be read') end
  return total, units
end

-- time_of reads the score of an entry.
local function time_of(log, score)
  local stamp = tonumber(score)
  if stamp and stamp >= 0 and stamp < EXACT and stamp % 1 == 0 then return stamp end
  damaged(log, 'the time of an entry cannot be read')
end

local function write(b)
  call('HSET', b.state, 's', struct.pack(STATE, b.total, b.newest, b.suspended, b.holds, b.oldest, b.keep, b.expire, b.held))
end

local reservations -- makes the functions of holds.lua

-- open reads a bucket's state, and holds its total against the newest entry. Without a state (a new bucket, or it was lost) the
-- newest entry says what it must be.
local EMPTY = {}

local function open(state, log, index)
  local s, last = call('HGET', state, 's'), call('ZREVRANGE', log, '0', '0')[1]
  local total, newest, suspended, holds, oldest, keep, expire, held = 0, 0, 0, 0, 0, KEEP, 0, 0
  local sum = last and tonumber(match(last, '^(%d+):%d'))
  local old = s and #s == 56 -- the eighth is missing
  if s then
    if old then s = s .. struct.pack('<d', 0) end
    if #s ~= 64 then damaged(state, 'its state has ' .. #s .. ' bytes instead of 64') end
    total, newest, suspended, holds, oldest, keep, expire, held = struct.unpack(STATE, s)
    if not (total >= 0 and total <= EXACT and total % 1 == 0 and newest >= 0 and newest < EXACT and suspended > -FAR and
        suspended < FAR and holds >= 0 and holds < EXACT and oldest < EXACT and keep >= 0 and keep < EXACT and expire < FAR and
        held >= 0 and held <= EXACT and held % 1 == 0 and (held == 0 or holds > 0)) then
      damaged(state, format('its state cannot be read, with a total of %.17g', total))
    elseif sum ~= total and last then
      damaged(state, format('the total is %.0f in its newest entry, and %.0f in its state', entry(log, last), total))
    elseif not last and total > 0 and newest > clock() - keep then -- older ones may have lapsed
      damaged(log, format('there are no entries, and the total of its state is %.0f', total))
    end
  else
    if last then
      total, newest = entry(log, last), time_of(log, call('ZSCORE', log, last))
    end
    expire = clock() + math.max(0, call('PTTL', log), call('PTTL', state), call('PTTL', index)) * 1000
  end
  local b = { -- all fields at once: a table that grows later costs more than everything else here
    state = state, log = log, index = index, total = total, newest = newest, suspended = suspended, holds = holds,
    oldest = oldest, keep = keep, expire = expire, held = held, live = 0, lapsed = EMPTY, hold_until = 0, units = 0, room = 0,
    fresh = not s or not last, -- a key that is written for the first time lapses with the other
  }
  if not s or old then reservations().reindex(b) end
  return b
end

-- base is the running total just before the oldest entry stamped at from or later.
local function base(b, from)
  local first = call('ZRANGEBYSCORE', b.log, format('%d', from), '+inf', 'LIMIT', '0', '2')
  if not first[1] then return b.total end
  local total, units = match(first[1], '^(%d+):(%d+):')
  local after, more = b.total, 0 -- of the entry after it, which must not begin below it
  if first[2] then after, more = match(first[2], '^(%d+):(%d+):') end
  local before = total and after and total - units
  if before and before >= 0 and before + units <= after - more and b.total - after >= 0 then return before end
  for _, member in ipairs(first) do entry(b.log, member) end
  damaged(b.log, 'the totals of its entries do not rise by their units')
end

-- fits is the earliest moment at which cost more units stay within cap, beside held units until these lapse.
local function fits(b, window, from, ends, before, cost, cap, held, now)

  -- stamp_at is the stamp of the first entry in the window whose running total is target or more. For little of much it looks at
  -- the oldest entries. Otherwise the totals say where that entry should be, so it looks there, and a little to either side from
  -- the second time on; should that not narrow the search fast, it halves it.
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
    for try = 1, 64 do -- from the fifth on, each halves what is left of the search
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
      local i, j = 0, #found + 1 -- found[i] is short of the target, found[j] is not; either may lie outside
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

  -- freed is when need of the units used will have left the window.
  local function freed(need)
    if need <= 0 then return now end
    if need > b.total - before then return NEVER end
    return window == 0 and ends or stamp_at(before + need) + window
  end

  if cost > cap then return NEVER end
  local need = b.total - before + held + cost - cap
  local at = freed(need)
  if held == 0 or at <= now then return at end
  -- When the first n holds have lapsed, less has to leave the window: as n rises, its moment rises and freed falls. The answer is
  -- where the two meet.
  local lapsed, since, n = reservations().lapsing(b, now, at, need)
  local lo, hi = 0, n
  while lo < hi do
    local mid = math.floor((lo + hi) / 2)
    if since[mid] >= freed(need - lapsed[mid]) then hi = mid else lo = mid + 1 end
  end
  local best = math.max(since[lo], freed(need - lapsed[lo]))
  return lo == 0 and best or math.min(best, math.max(since[lo - 1], freed(need - lapsed[lo - 1])))
end

-- save writes the state after a change. The keys outlive their use: they lapse when idle for long, never sooner than entries,
-- holds and suspensions matter. That is put off only once half of the time is gone. The labels, which all buckets of a credential
-- share, last as long as the log, at least.
local told = 0 -- 1 when this call came with a line of labels, 2 when their key is new

local function save(b, now, keep, labels)
  if keep > b.keep then b.keep = keep end
  local needed = math.max(b.suspended, b.hold_until, now) + b.keep
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

-- intern keeps the line of labels under its code, once for all entries that carry it, and returns what stands for it in an
-- entry: the code, or the line itself where the code is taken or a credential has used very many different lines. A caller
-- that has lately sent the line with the code leaves it out.
local function intern(labels, code, line)
  if line == '' then return code end
  told = 1
  if call('HSETNX', labels, code, line) == 0 then
    return call('HGET', labels, code) == line and code or '=' .. line -- codes are short: two lines may share one
  end
  local lines = call('HLEN', labels)
  if lines == 1 then told = 2 end
  if lines <= 10000 then return code end
  call('HDEL', labels, code)
  return '=' .. line
end

-- append writes an entry of units, to be kept for keep µs. tail is <id>:<labels>[:<run>]. In passing it forgets reservations that
-- have expired, and entries that are older than any caller wanted kept, once a thirty-second part of that time has piled up, at
-- most 64.
local function append(b, stamp, units, tail, keep)
  b.total, b.newest = b.total + units, stamp
  if keep > b.keep then b.keep = keep end
  call('ZADD', b.log, format('%d', stamp), format('%d:%d:%s', b.total, units, tail))
  if #b.lapsed > 0 then reservations().forget(b) end
  if b.oldest < stamp - b.keep * 33 / 32 then
    local old = math.min(64, call('ZCOUNT', b.log, '-inf', format('%d', stamp - b.keep)))
    if old > 0 then call('ZREMRANGEBYRANK', b.log, 0, old - 1) end
    b.oldest = tonumber(call('ZRANGE', b.log, 0, 0, 'WITHSCORES')[2])
  end
end
