-- plain_settle.lua: settles a plain reservation at once, as most are: made as plain_hold.lua makes them
-- and not drawn on, for at least one unit of each bucket, under sliding and calendar limits, with labels
-- that are known, where none has expired. As plain.lua does, it leaves whatever else it finds to
-- settle.lua before anything is written, and its reply is one text of doubles.

repeat
  if #ARGV > 3 then break end
  local call, format, match, unpacked, pack =
    redis.call, string.format, string.match, struct.unpack, struct.pack
  local numbers, id, many = ARGV[1], ARGV[2], (#KEYS - 2) / 4
  local keep, within, _, pos = unpacked('<ddd', numbers)
  local t = call('TIME')
  local now = t[1] * 1000000 + t[2]
  local at, field = format('%d', now), 'r:' .. id

  local writes = {} -- for each bucket: what is listed, entry, state, counts, units, room
  local longest, asked = keep, nil
  for n = 1, many do
    local units, limits
    units, limits, pos = unpacked('<dd', numbers, pos)
    local state, log, index = KEYS[4 * n - 1], KEYS[4 * n], KEYS[4 * n + 1]
    local read, last = call('HMGET', state, 's', field, 'c'), call('ZREVRANGE', log, '0', '0')[1]
    local s, hold, c = read[1], read[2], read[3]
    if not s or #s ~= 64 or not hold or not c or not last or units < 1 then break end

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
      local before = from < now and total_before(log, format('%d', from), total)
      if not before then room = nil break end
      local spare = cap - total + before
      if spare < room then room = spare end
    end
    local listed = set .. '+' .. id
    if not room or n > 1 and not call('ZSCORE', index, listed) then break end

    room = room - units - held + left
    if kept > longest then longest = kept end
    asked = asked and asked .. format(',%d', units) or format('%d', units)
    writes[n] = {
      listed, format('%d:%d:', total + units, units) .. ARGV[3],
      pack('<dddddddd', total + units, now, suspended, holds - 1, oldest, kept, expire, held - left),
      format('%d:%d', charges, extra > 0 and extra or 0), units, room > 0 and room or 0,
    }
  end
  if not writes[many] or call('ZREM', KEYS[5], writes[1][1]) == 0 then break end

  local answer = asked .. '\n' .. match(ARGV[3], '^[^:]*') .. ' - - 1 ' .. at .. ' ' .. at
  local reply = pack('<ddd', 1, now, now)
  for n = 1, many do
    local w, state = writes[n], KEYS[4 * n - 1]
    if n > 1 then call('ZREM', KEYS[4 * n + 1], w[1]) end
    call('ZADD', KEYS[4 * n], at, w[2])
    call('HDEL', state, field)
    call('HSET', state, 's', w[3], 'c', w[4])
    answer, reply = answer .. format(' %d %d', w[5], w[6]), reply .. pack('<dd', w[5], w[6])
  end
  call('SET', KEYS[2], answer .. ' 1 1', 'PX', format('%d', longest / 1000))
  do return reply .. pack('<dd', 1, 1) end
until true
