-- plain_hold.lua: makes plain reservations at once, as most are: one, or a group of the same buckets,
-- which are charged when they expire or may be too low, under sliding and calendar limits, without a note
-- or a key, with labels that are known, where no other has expired. As plain.lua does, it leaves whatever
-- else it finds to charge.lua before anything is written, and its reply is one text of doubles.

repeat
  local keys, args, numbers = KEYS, ARGV, ARGV[1]
  local calls, many, _, _, keep, _, longest, _, units, limits, flags, most, slack = unpacked('<ddddddddddddd', numbers)
  if #args > 1 + calls then break end
  local call, format, sub, match, pack = redis.call, string.format, string.sub, string.match, struct.pack
  local t = call('TIME')
  local now = t[1] * 1000000 + t[2]

  -- One call of one bucket, as most are, makes no tables: they would take a tenth of its time.
  local lone = calls * many == 1
  local id, tail = match(args[2], '^([^:]*):([^:]*:.*)$')
  local field, pos = 'r:' .. id, 105
  -- Of each call: the end of what it is listed as, labels and run, when it expires, that as text, where
  -- its next bucket begins in numbers, the reply. Then of each bucket: what is listed, the state's fields.
  local own, fields, writes
  if not lone then
    own, fields, writes, pos = {0, 0, 0, 0, 0, 0}, {'s', 'o', 0}, {}, 17
    local full
    for c = 1, calls do
      local size = unpacked('<d', numbers, pos)
      if size > 8 then full = pos end -- else its numbers are those of the call before
      local _, _, kept, _, ttl = unpacked('<ddddd', numbers, full)
      if c > 1 then
        id, tail = match(args[c + 1], '^([^:]*):([^:]*:.*)$')
        field = 'r:' .. id
      end
      if ttl <= 0 or calls > 1 and fields[field] then many = 0 break end -- or twice in one group
      if calls > 1 then fields[field] = true end
      if kept > keep then keep = kept end
      if ttl > longest then longest = ttl end
      local i = 6 * c
      fields[c + 2], own[i - 5], own[i - 4], own[i - 3], own[i - 2], own[i - 1], own[i] =
        field, '+' .. id, tail .. ':', now + ttl, format('%d', now + ttl), full + 48, false
      pos = pos + size
    end
  end

  for n = 1, many do
    local state, log = keys[3 * n - 1], keys[3 * n]
    local read = lone and call('HMGET', state, 's', 'o', field) or call('HMGET', state, unpack(fields))
    local s, last = read[1], call('ZREVRANGE', log, '0', '0')[1]
    if not s or #s < 88 or #s % 48 ~= 40 or not last or read[2] then break end

    local total, newest, suspended, holds, oldest, kept, expire, held, charges, extra, lapse =
      unpacked('<ddddddddddd', s)
    if holds == 0 then charges, extra, lapse = 0, 0, 9007199254740991 end
    if not (totals(last) == total and newest >= 0 and newest < now and suspended > -1e19 and
        suspended <= now and holds >= 0 and held >= 0 and held % 1 == 0 and (held == 0 or holds > 0) and
        kept >= keep and charges >= 0 and extra >= 0 and
        holds + held + kept + charges + extra < 9007199254740991 and oldest < 9007199254740991 and
        expire >= now + longest + kept and expire < 1e19 and
        lapse > now + calls and lapse <= 9007199254740991) then
      break
    end

    local known = sub(s, 89)
    local listed, written = not lone and {0, 0}, not lone and {'s', 0, 0, 0}
    for c = 1, calls do
      local i = 6 * c
      if not lone then units, limits, flags, most, slack, pos = unpacked('<ddddd', numbers, own[i - 1]) end
      if flags < 2 or read[c + 2] or total + units > 9007199254740991 or charges + most > 9007199254740991 or
          extra + most > 9007199254740991 or extra + most - units > slack then
        listed = nil
        break
      end
      local room = 4611686018427387904 -- above 2^53: no limit
      for _ = 1, limits do
        local window, from, ends, cap = unpacked('<dddd', numbers, pos)
        local before
        pos = pos + 40
        if window > 0 and from == 0 then
          from = now - window + 1
        elseif window >= -1 or now >= ends then
          from = now
        end
        if from >= now then room = nil break end
        before, known = start_of(log, known, from, total, now)
        if not before then room = nil break end
        local left = cap - total + before
        if left < room then room = left end
      end
      if not room or room < held + units then listed = nil break end

      local expires = lone and now + longest or own[i - 3]
      local record = pack('>I7I7I7I7I7I7B', units, expires, 0, units, now, most, flags)
      held, holds, room, extra = held + units, holds + 1, room - held - units, extra + most - units
      if flags % 4 > 1 then charges = charges + 1 end
      if expires < lapse then lapse = expires end
      if lone then
        if newest < now - 1 then newest = now - 1 end -- later decisions are not made at an earlier time
        call('ZADD', keys[4], format('%d', expires), sub(record, 1, 7) .. '+' .. id)
        call('HSET', state, 's', pack('<dddddddddddc0', total, newest, suspended, holds, oldest, kept, expire, held,
          charges, extra, lapse, known), field, record .. tail .. ':')
        return pack('<ddddddd', 1, now, now, 0, 0, room, expires)
      end
      own[i - 1] = pos
      own[i] = n == 1 and pack('<dddddd', 1, now, now, 0, 0, room) or own[i] .. pack('<d', room)
      listed[2 * c - 1], listed[2 * c] = own[i - 2], sub(record, 1, 7) .. own[i - 5]
      written[2 * c + 1], written[2 * c + 2] = fields[c + 2], record .. own[i - 4]
    end
    if not listed then break end
    if newest < now - 1 then newest = now - 1 end
    written[2] = pack('<dddddddddddc0', total, newest, suspended, holds, oldest, kept, expire, held, charges,
      extra, lapse, known)
    writes[2 * n - 1], writes[2 * n] = listed, written
  end
  if lone or not writes[2 * many] then break end

  for n = 1, many do
    call('ZADD', keys[3 * n + 1], unpack(writes[2 * n - 1]))
    call('HSET', keys[3 * n - 1], unpack(writes[2 * n]))
  end
  local reply = ''
  for i = 6, 6 * calls, 6 do reply = reply .. own[i] .. pack('<d', own[i - 3]) end
  do return reply end
until true
