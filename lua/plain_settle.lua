-- plain_settle.lua: settles a plain reservation at once, as most are: of one bucket, made as
-- plain_hold.lua makes them and not drawn on, for at least one unit, under sliding and calendar limits,
-- with labels that are known, where none has expired. As plain.lua does, it leaves whatever else it finds
-- to settle.lua before anything is written, and its reply is one text of doubles.

repeat
  local call, format, match, unpacked, pack =
    redis.call, string.format, string.match, struct.unpack, struct.pack
  local numbers, id, state, log, index = ARGV[1], ARGV[2], KEYS[3], KEYS[4], KEYS[5]
  if #KEYS > 6 or #ARGV > 3 then break end
  local keep, within, _, units, limits, pos = unpacked('<ddddd', numbers)
  local t = call('TIME')
  local read, last = call('HMGET', state, 's', 'r:' .. id, 'c'), call('ZREVRANGE', log, '0', '0')[1]
  local s, hold, c = read[1], read[2], read[3]
  if not s or #s ~= 64 or not hold or not c or not last or units < 1 then break end

  local now = t[1] * 1000000 + t[2]
  local at = format('%d', now)
  local total, newest, suspended, holds, oldest, kept, expire, held = unpacked('<dddddddd', s)
  local sum = match(last, '^(%d+):%d')
  if not (sum and sum - total == 0 and total + units <= 9007199254740991 and newest >= 0 and newest < now and
      suspended > -1e19 and suspended <= now and holds > 0 and holds < 9007199254740991 and
      held >= 0 and held <= 9007199254740991 and held % 1 == 0 and oldest >= now - kept * 33 / 32 and
      oldest < 9007199254740991 and kept >= keep and kept < 9007199254740991 and expire >= now + kept and
      expire < 1e19) then
    break
  end
  local set, by, estimate, flags, most = match(hold, '^(%d+):(%d+):0:(%d+):%d+:([2-7]):(%d+):[^:]*:[^:]*:')
  local charges, extra = match(c, '^(%d+):(%d+)$')
  if not set or not charges then break end
  local left, expires, over, counts = set + 0, by + 0, most - estimate, flags % 4 > 1 and 1 or 0
  charges, extra = charges - counts, extra - over
  if left > 9007199254740991 or expires > 9007199254740991 or expires <= now or within == 1 and units > left or
      over < 0 or over > 9007199254740991 or charges < 0 or charges >= 9007199254740991 or
      extra + over > 9007199254740991 or counts + over == 0 or call('ZCOUNT', index, '-' .. at, at) > 0 then
    break
  end

  local room = 4611686018427387904 -- above 2^53: no limit
  for _ = 1, limits do
    local window, from, ends, cap = unpacked('<dddd', numbers, pos)
    pos = pos + 40
    if window > 0 and from == 0 then
      from = now - window + 1
    elseif window >= -1 or now >= ends then
      from = now
    end
    if from >= now then room = nil break end
    local before = total
    local first = call('ZRANGEBYSCORE', log, format('%d', from), '+inf', 'LIMIT', '0', '2')
    if first[1] then
      local all, of = match(first[1], '^(%d+):(%d+):')
      all = all and all + 0
      before = all and all - of
      if not before or before < 0 then room = nil break end
      local rest = total - all -- of what comes later, which must not begin below it
      if first[2] then
        local next, more = match(first[2], '^(%d+):(%d+):')
        next = next and next + 0
        rest = next and next <= total and next - more - all or -1
      end
      if rest < 0 then room = nil break end
    end
    local spare = cap - total + before
    if spare < room then room = spare end
  end
  if not room or call('ZREM', index, set .. '+' .. id) == 0 then break end

  total = total + units
  room = room - units - held + left
  if room < 0 then room = 0 end
  call('ZADD', log, at, format('%d:%d:', total, units) .. ARGV[3])
  call('HDEL', state, 'r:' .. id)
  call('HSET', state,
    's', pack('<dddddddd', total, now, suspended, holds - 1, oldest, kept, expire, held - left),
    'c', format('%d:%d', charges, extra > 0 and extra or 0))
  local entry = match(ARGV[3], '^[^:]*')
  call('SET', KEYS[2], format('%d\n%s - - 1 %s %s %d %d 1 1', units, entry, at, at, units, room),
    'PX', format('%d', kept / 1000))
  do return pack('<ddddddd', 1, now, now, units, room, 1, 1) end
until true
