-- bucket.lua: what the scripts know of one bucket. It stands before each of them (see lua.go).
--
-- log    sorted set, an entry a member: score = stamp (Unix µs), member = <total after it>:<units>:<id>:<labels>[:<run>]
-- state  hash: total, newest (stamp, never moves back), oldest (no entry is older), suspended (until, µs), holds (how many),
--        keep (µs that entries are kept), expire (when both keys lapse, µs), and for each reservation a field r:<id> =
--        <left>:<expires µs>:<drawn>:<units>:<created µs>:<manual 0|1>:<note>
-- Whatever of the two keys is lost, the other still gives a consistent, stricter or equal picture.

local call, floor, format = redis.call, math.floor, string.format
local match, max, min = string.match, math.max, math.min
local NEVER = 4611686018427387904
local PROBE = 8 -- entries read to either side of where an entry should be

-- int writes a whole number in full; Lua would write 1.7637e+15.
local function int(n) return format('%.0f', n) end

local function clock()
  local t = call('TIME')
  return t[1] * 1000000 + t[2]
end

local function parse(member)
  local total, units = match(member, '^(%d+):(%d+)')
  return tonumber(total), tonumber(units)
end

-- open reads a bucket's state. Without one (a new bucket, or the hash was lost) the newest entry says what it must be.
local function open(state, log)
  local s = call('HMGET', state, 'total', 'newest', 'suspended', 'holds', 'oldest', 'keep', 'expire')
  local b = {
    state = state, log = log, total = tonumber(s[1]), newest = tonumber(s[2] or 0), suspended = tonumber(s[3] or 0),
    holds = tonumber(s[4] or 0), oldest = tonumber(s[5] or 0), keep = tonumber(s[6] or 0), expire = tonumber(s[7] or 0),
  }
  if not b.total then
    local newest = call('ZREVRANGE', log, 0, 0, 'WITHSCORES')
    b.total = newest[1] and parse(newest[1]) or 0
    b.newest = max(b.newest, tonumber(newest[2] or 0))
  end
  return b
end

-- held lists the reservations that hold units at now, the first to expire first, and adds them up in b.held. b.lapsed names the
-- fields of those that hold nothing any more.
local function held(b, now)
  local list, lapsed = {}, {}
  b.held = 0
  if b.holds > 0 then
    local fields = call('HGETALL', b.state)
    for i = 1, #fields, 2 do
      if fields[i]:sub(1, 2) == 'r:' then
        local left, expires = match(fields[i + 1], '^(%d+):(%d+)')
        left, expires = tonumber(left), tonumber(expires)
        if expires > now then
          list[#list + 1] = {left = left, expires = expires}
          b.held = b.held + left
        else
          lapsed[#lapsed + 1] = fields[i]
        end
      end
    end
    table.sort(list, function(x, y) return x.expires < y.expires end)
  end
  b.list, b.lapsed = list, lapsed
end

-- base is the running total just before the oldest entry stamped at from or later.
local function base(b, from)
  local first = call('ZRANGEBYSCORE', b.log, from, '+inf', 'LIMIT', 0, 1)[1]
  if not first then return b.total end
  local total, units = parse(first)
  return total - units
end

-- stamp_at is the stamp of the first entry whose running total is target or more, among those stamped at from or later.
-- The totals say where it should be, so it probes there, halving instead whenever that does not narrow the search fast.
local function stamp_at(b, from, before, target)
  local lo, lo_total = -call('ZCOUNT', b.log, from, '+inf') - 1, before -- ranks from the newest: -1
  local hi, hi_total = -1, b.total
  local tries = 0
  while true do
    local left, right = lo + 1, hi
    if hi - lo > 2 * PROBE then
      local at = lo + floor((target - lo_total) / (hi_total - lo_total) * (hi - lo))
      if tries > 3 then at = floor((lo + hi) / 2) end
      local reach = tries == 0 and 0 or PROBE
      left, right = max(lo + 1, at - reach), min(hi, at + reach)
      if right < left then left, right = lo + 1, lo + 1 end
    end
    tries = tries + 1
    local found = call('ZRANGE', b.log, left, right, 'WITHSCORES')
    for i = 1, #found, 2 do
      local total = parse(found[i])
      if total >= target then
        if i > 1 or left == lo + 1 then return tonumber(found[i + 1]) end
        hi, hi_total = left, total
        break
      end
      lo, lo_total = left + (i - 1) / 2, total
    end
  end
end

-- The limits of a call, as the caller passes them: five arguments each.
--   <window µs, 0 for a calendar window> <start µs> <end µs> <cap> <units>
-- cap is what this charge may bring the window up to, units the limit itself.
local LIMIT_ARGS = 5

local function limit(i, now)
  local window = tonumber(ARGV[i])
  local l = {cap = tonumber(ARGV[i + 3]), units = tonumber(ARGV[i + 4])}
  if window > 0 then
    l.window, l.from = window, now - window + 1
  else
    l.from, l.ends = tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2])
    l.stale = now < l.from or now >= l.ends
  end
  return l
end

-- freed is when need of the units used under the limit will have left its window.
local function freed(b, l, need, now)
  if need <= 0 then return now end
  if need > l.used then return NEVER end
  if l.ends then return l.ends end
  return stamp_at(b, l.from, l.base, l.base + need) + l.window
end

-- fits is the earliest moment at which cost more units stay within cap, counting the holds in list as they lapse.
local function fits(b, l, cost, cap, list, held_units, now)
  if cost > cap then return NEVER end
  local best, from = NEVER, now
  for i = 1, #list + 1 do
    if from >= best then break end
    best = min(best, max(from, freed(b, l, l.used + held_units + cost - cap, now)))
    if list[i] then
      held_units = held_units - list[i].left
      from = max(from, list[i].expires)
    end
  end
  return best
end

-- save writes the state after a change, and makes both keys outlive their use: they lapse when idle for long, never sooner
-- than entries, holds and suspensions matter. Refreshed only once half of that time is gone.
local function save(b, now, keep, ...)
  b.keep = max(b.keep, keep)
  local until_at = max(b.suspended, b.hold_until or 0, now) + b.keep
  if b.expire < until_at then
    b.expire = until_at + b.keep
    call('HSET', b.state, 'total', int(b.total), 'newest', int(b.newest), 'keep', int(b.keep), 'expire', int(b.expire), ...)
    call('PEXPIREAT', b.state, int(floor(b.expire / 1000)))
    call('PEXPIREAT', b.log, int(floor(b.expire / 1000)))
    return true
  end
  call('HSET', b.state, 'total', int(b.total), 'newest', int(b.newest), ...)
  return false
end

-- trim forgets entries older than keep, at most 64 a time, once a thirty-second part of keep has piled up.
local function trim(b, now)
  if b.oldest > now - b.keep - b.keep / 32 then return end
  local old = call('ZCOUNT', b.log, '-inf', now - b.keep)
  if old > 0 then call('ZREMRANGEBYRANK', b.log, 0, min(old, 64) - 1) end
  local first = call('ZRANGE', b.log, 0, 0, 'WITHSCORES')
  call('HSET', b.state, 'oldest', first[2] or int(now))
end

-- intern keeps the line of labels under its code, once for all entries that carry it, and returns what stands for it in an entry:
-- the code, or the line itself once a credential has used very many different ones.
local LABEL_SETS = 10000

local function intern(labels, code, line)
  if code ~= '' and call('HSETNX', labels, code, line) == 1 and call('HLEN', labels) > LABEL_SETS then
    call('HDEL', labels, code)
    return '=' .. line
  end
  return code
end

-- append writes an entry of units. tail is <id>:<labels>[:<run>].
local function append(b, stamp, units, tail)
  b.total = b.total + units
  b.newest = stamp
  call('ZADD', b.log, stamp, int(b.total) .. ':' .. int(units) .. ':' .. tail)
end
