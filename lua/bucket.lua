-- bucket.lua: reads and writes one bucket. lua.go puts it at the head of the other scripts.
--
-- log    sorted set, one member per entry: score = stamp (Unix µs),
--        member as entry.lua has it
-- state  hash: s = eight little-endian doubles: total, newest (stamp; never moves back), suspended
--        (until, µs), holds (number of reservations), oldest (no entry is older), keep (µs that
--        entries are kept), expire (when the keys expire, µs), held (units left in all
--        reservations, including expired ones that are not deleted yet); and three more, once there
--        was a reservation: charges (how many become entries), extra (units by which the estimates
--        may be too low), next (none expires before, µs); and then what is known of where windows start
--        (start.lua);
--        for each reservation r:<id> (holds.lua); and, where they are needed: g, how far the sums
--        reach (sums.lua), a, when the anchored window ends (µs), l, levels of restoring windows
--        (windows.lua), o, what others used, by window: six doubles for each, the three of the window
--        (below), the time of the report, units, and the level of a restoring window then
-- holds  sorted set, one member per reservation (holds.lua), and one of score -inf that is none: so the
--        key and its expiry stay when there are no reservations
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
-- A charge pays for all that is made here: each function, each table field beyond sixteen. format
-- takes longer than most commands of Redis take for themselves.

local call, format, match, byte = redis.call, string.format, string.match, string.byte
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

-- entry reads a member of a log: the running total after it, and its units.
local function entry(log, member)
  local total, units = totals(member)
  if not total or total > EXACT or units > total or units < 1 then damaged(log, 'an entry cannot be read') end
  return total, units
end

-- mark is the labels of a member that entry can read, as it has them; nil if they cannot be read.
local function mark(member)
  if byte(member) > 31 then return match(member, '^%d+:%d+:[^:]*:([^:]*)') end
  return #member % 5 == 0 and string.sub(member, -4) or ''
end

-- with is a member with another total and, perhaps, fewer units.
local function with(member, total, units)
  if byte(member) < 32 then
    if not units then return struct.pack('>I7', total) .. string.sub(member, 8) end
    return struct.pack('>I7I4', total, units) .. string.sub(member, 12)
  end
  if not units then return format('%d', total) .. match(member, '^%d+(:.*)$') end
  return format('%d:%d', total, units) .. match(member, '^%d+:%d+(:.*)$')
end

-- time_of parses the score of an entry.
local function time_of(log, score)
  local stamp = tonumber(score)
  if stamp and stamp >= 0 and stamp < EXACT and stamp % 1 == 0 then return stamp end
  damaged(log, 'the time of an entry cannot be read')
end

-- write writes the numbers, and more fields (also).
local function write(b)
  local s = struct.pack(STATE, b.total, b.newest, b.suspended, b.holds, b.oldest, b.keep, b.expire, b.held)
  s = s .. (b.next and struct.pack('<ddd', b.charges, b.extra, b.next) or '') .. b.known
  if b.others and #b.others == 0 then call('HDEL', b.state, 'o') end
  if b.more then
    call('HSET', b.state, 's', s, unpack(b.more))
    b.more = nil
  else
    call('HSET', b.state, 's', s)
  end
end

-- also has the next write of the state write another field, too.
local function also(b, field, value)
  local more = b.more
  if not more then
    b.more = {field, value}
  else
    more[#more + 1], more[#more + 2] = field, value
  end
end

-- others_in is what others used in a window, of those whose report counts from the time since on; nil for
-- nothing. It is a list of the six numbers.
local function others_in(b, window, from, ends, since)
  for _, o in ipairs(b.others or {}) do
    if o[1] == window and o[2] == from and o[3] == ends and o[4] >= since then return o end
  end
end

-- read_others reads what others used, without what has left its window by the newest entry: time never
-- runs back behind that.
local function read_others(b, text)
  if #text % 48 > 0 then damaged(b.state, 'what others used cannot be read') end
  for pos = 1, #text, 48 do
    local o = {unpacked('<dddddd', text, pos)}
    if not (o[4] >= 0 and o[4] <= EXACT and o[5] > 0 and o[5] <= EXACT and o[6] >= 0) then
      damaged(b.state, 'what others used cannot be read')
    end
    local gone = o[1] > 0 and o[4] + o[1] or o[1] < 0 and o[3] or FAR
    b.others = b.others or {}
    if gone > b.newest + 1 then b.others[#b.others + 1] = o end
  end
end

-- keep_others has the next write of the state keep what others used.
local function keep_others(b)
  local text = {}
  for i, o in ipairs(b.others) do text[i] = struct.pack('<dddddd', unpack(o)) end
  also(b, 'o', table.concat(text))
end

local lapses -- in lapses.lua

-- open reads a bucket's state, and compares its total with the newest entry. If there is no state
-- (a new bucket, or it was lost), it is rebuilt. With an id it reads that reservation, too.
local function open(state, log, index, id)
  local read = id and call('HMGET', state, 's', 'o', 'r:' .. id) or call('HMGET', state, 's', 'o')
  local s, last = read[1], call('ZREVRANGE', log, '0', '0')[1]
  local total, newest, suspended, holds, oldest, keep, expire, held = 0, 0, 0, 0, 0, KEEP, 0, 0
  local sum, charges, extra, next, old, known = last and totals(last), nil, nil, nil, false, ''
  if s then
    if #s == 56 then s, old = s .. struct.pack('<d', 0), true end -- written before held was added
    local more = #s % 48 -- 40 once there was a reservation
    if #s < 64 or more ~= 40 and more ~= 16 then damaged(state, 'its state has ' .. #s .. ' bytes') end
    total, newest, suspended, holds, oldest, keep, expire, held = unpacked(STATE, s)
    if more == 40 then charges, extra, next = unpacked('<ddd', s, 65) end
    known = string.sub(s, more == 40 and 89 or 65)
    old = old or holds > 0 and not next -- before charges was added
    if not (total >= 0 and total <= EXACT and total % 1 == 0 and newest >= 0 and newest < EXACT and suspended > -FAR and
        suspended < FAR and holds >= 0 and holds < EXACT and oldest < EXACT and keep >= 0 and keep < EXACT and expire < FAR and
        held >= 0 and held <= EXACT and held % 1 == 0 and (held == 0 or holds > 0) and (holds == 0 or old or charges >= 0 and
        charges <= EXACT and extra >= 0 and extra <= EXACT and next >= 0 and next <= EXACT)) then
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
  local b = { -- all fields at once: growing the table later is slow
    state = state, log = log, index = index, total = total, newest = newest, suspended = suspended,
    holds = holds, oldest = oldest, keep = keep, expire = expire, held = held, live = held,
    entries = nil, -- to be written (append)
    fresh = not s or not last, -- a new key needs its expiry set
    charges = charges, extra = extra, next = next, -- nil before the first reservation
    known = known, found = nil, -- of where windows start, and with what was found in this run
    since = nil, logged = nil, -- stamp of the first of entries, and the total before it
    field = id and read[3], -- of the reservation
    others = nil,
    more = nil,
  }
  if read[2] then read_others(b, read[2]) end
  if not s or old then
    lapses().reindex(b)
    if id then b.field = call('HGET', state, 'r:' .. id) end -- in today's form
  end
  return b
end

-- expiring is whether a reservation expires after since, and by stamp.
local function expiring(b, since, stamp)
  if b.holds == 0 or b.next > stamp then return false end
  local since, by = format('%d', since), format('%d', stamp)
  return call('ZCOUNT', b.index, '(' .. since, by) + call('ZCOUNT', b.index, '-' .. by, '(-' .. since) > 0
end

-- look opens buckets, whose keys begin at KEYS[first], one each so many. It returns the time, the time
-- at which to decide, which is after every entry, and the buckets; with an id they have read that
-- reservation. last is where the keys of the last one begin.
-- Reservations that expired by then have become entries, where they do; b.live is what the others
-- hold.
local function look(first, step, id, last)
  local now = clock()
  local stamp, buckets = now, {open(KEYS[first], KEYS[first + 1], KEYS[first + 2], id)}
  for k = first + step, last or #KEYS - 2, step do
    buckets[#buckets + 1] = open(KEYS[k], KEYS[k + 1], KEYS[k + 2], id)
  end
  for n = 1, #buckets do
    local b = buckets[n]
    if b.newest >= stamp then stamp = b.newest + 1 end
  end
  for n = 1, #buckets do
    if expiring(buckets[n], 0, stamp) then return now, lapses().lapse(buckets, stamp, id), buckets end
  end
  return now, stamp, buckets
end

-- base is the running total before the first entry stamped from or later, at the time stamp. nil:
-- entries that are still to be written (append) matter.
local function base(b, from, stamp)
  if b.entries and from > b.since then return nil end
  local before
  before, b.found = start_of(b.log, b.found or b.known, from, b.logged or b.total, b.since or stamp)
  if before then return before end
  for _, member in ipairs(call('ZRANGEBYSCORE', b.log, format('%d', from), '+inf', 'LIMIT', '0', '2')) do
    entry(b.log, member)
  end
  damaged(b.log, 'the totals of its entries do not rise by their units')
end

-- save writes the entries that were appended, and the state after a change. It also deletes expired
-- reservations, and up to 64 entries for each new one that nobody needs any more, once they span a
-- thirty-second of the time that entries are kept. The keys expire when they have been idle for long,
-- and never while entries, holds (the last expires at hold_until) or a suspension matter. The expiry is
-- extended only once half of it has passed. The labels, which all buckets of a credential share,
-- last at least as long as the log.
local told = 0 -- 1 if this call brought a line of labels, 2 if it made their key

local function save(b, now, keep, hold_until)
  if keep > b.keep then b.keep = keep end
  local entries = b.entries
  if entries then
    call('ZADD', b.log, unpack(entries))
    b.entries, b.since, b.logged = nil, nil, nil
    b.known = b.found or b.known
    if b.lapsed then lapses().forget(b) end
    if b.oldest < b.newest - b.keep * 33 / 32 then
      local old = math.min(32 * #entries, call('ZCOUNT', b.log, '-inf', format('%d', b.newest - b.keep)))
      if old > 0 then call('ZREMRANGEBYRANK', b.log, 0, old - 1) end
      b.oldest = tonumber(call('ZRANGE', b.log, 0, 0, 'WITHSCORES')[2])
    end
  end
  local needed = hold_until and hold_until > now and hold_until or now
  needed = (b.suspended > needed and b.suspended or needed) + b.keep
  if b.holds > 0 and b.next <= b.newest then lapses().soonest(b) end
  local renew = b.expire < needed
  if renew then b.expire = needed + b.keep end
  write(b)
  if b.fresh == 'holds' and not renew then
    call('PEXPIREAT', b.index, format('%d', b.expire / 1000))
    b.fresh = false
  elseif renew or b.fresh then
    call('PEXPIREAT', b.state, format('%d', b.expire / 1000))
    call('PEXPIREAT', b.log, format('%d', b.expire / 1000))
    call('PEXPIREAT', b.index, format('%d', b.expire / 1000))
  end
  if renew or b.fresh or told > 0 then
    local ttl = call('PTTL', KEYS[1]) -- -1: for ever
    if told == 2 or ttl >= 0 and now + ttl * 1000 < b.expire then
      call('PEXPIREAT', KEYS[1], format('%d', b.expire / 1000))
      told = 1
    end
  end
end

-- intern stores a line of labels under its code, once for all entries that have it, and returns what
-- to write in an entry: the code, or the line itself if the code is taken or the credential has very
-- many different lines. A caller that sent the line lately sends the code alone.
local function intern(code, line)
  if line == '' then return code end
  if told == 0 then told = 1 end
  if call('HSETNX', KEYS[1], code, line) == 0 then
    return call('HGET', KEYS[1], code) == line and code or '=' .. line -- two lines may have the same short code
  end
  local lines = call('HLEN', KEYS[1])
  if lines == 1 then told = 2 end
  if lines <= 10000 then return code end
  call('HDEL', KEYS[1], code)
  return '=' .. line
end

-- append adds an entry of units, to be kept for keep µs, which save writes. tail is
-- what follows in the member, packed or <id>:<labels>[:<run>]; at is the stamp as text, if that is known.
local function append(b, stamp, units, tail, keep, at, packed)
  local entries = b.entries
  if not entries then b.since, b.logged = stamp, b.total end
  b.total, b.newest = b.total + units, stamp
  if keep > b.keep then b.keep = keep end
  at = at or format('%d', stamp)
  local member = packed and struct.pack('>I7I4', b.total, units) .. tail or format('%d:%d:%s', b.total, units, tail)
  if entries then
    entries[#entries + 1], entries[#entries + 2] = at, member
  else
    b.entries = {at, member}
  end
end
