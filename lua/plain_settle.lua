-- plain_settle.lua: settles plain reservations at once, as most are: one, or a group of the same buckets,
-- made as plain_hold.lua makes them and not drawn on, for at least one unit of each bucket, without
-- limits, with labels that are known, where none has expired. As plain.lua does, it leaves whatever else
-- it finds to settle.lua before anything is written, and its reply is one text of doubles.

repeat
  local keys, args, numbers = KEYS, ARGV, ARGV[1]
  local calls, many, keep, how, _, packed, units = unpacked('<ddddddd', numbers)
  local size = 32 + 16 * many -- of what there is of each call
  if #args ~= 1 + 2 * calls or #numbers ~= 16 + calls * size then break end
  local call, format, sub, pack = redis.call, string.format, string.sub, struct.pack
  local t = call('TIME')
  local now = t[1] * 1000000 + t[2]
  -- One call of one bucket, as most are, makes no tables: they would take a tenth of its time.
  local lone, field = calls * many == 1, 'r:' .. args[2]
  local fields = not lone and {'s', field}
  for c = 2, calls do
    local field = 'r:' .. args[2 * c]
    if fields[field] or field == fields[2] then many = 0 break end -- twice in one group
    fields[c + 1], fields[field] = field, true
  end

  local writes = not lone and {} -- for each bucket: what is listed, entries, state
  local replies, longest = not lone and {0}, 0 -- to each call, and how long they are kept
  for n = 1, many do
    local state, log, index = keys[4 * n - 2], keys[4 * n - 1], keys[4 * n]
    local read = lone and call('HMGET', state, 's', field) or call('HMGET', state, unpack(fields))
    local s, last = read[1], call('ZREVRANGE', log, '0', '0')[1]
    if not s or #s < 88 or #s % 48 ~= 40 or not last then break end

    local total, newest, suspended, holds, oldest, kept, expire, held, charges, extra, lapse =
      unpacked('<ddddddddddd', s)
    if not (totals(last) == total and newest >= 0 and newest < now and suspended > -1e19 and
        suspended <= now and holds >= calls and held >= 0 and held % 1 == 0 and kept >= 0 and charges >= 0 and
        extra >= 0 and holds + held + kept + charges + extra < 9007199254740991 and
        oldest >= now - kept * 33 / 32 and oldest < 9007199254740991 and
        expire >= now + kept and expire < 1e19 and lapse > now + calls and lapse <= 9007199254740991) then
      break
    end
    if kept > longest then longest = kept end
    local listed, entries = not lone and {0}, not lone and {0, 0}
    for c = 1, calls do
      if not lone then
        keep, how, _, packed = unpacked('<dddd', numbers, 17 + (c - 1) * size)
        units = unpacked('<d', numbers, 33 + (c - 1) * size + 16 * n)
      end
      local record = read[c + 1]
      if not record or #record < 43 or units < 1 or keep > kept or total + units > 9007199254740991 then
        listed = nil
        break
      end
      local left, expires, drawn, estimate, made, most, flags = unpacked('>I7I7I7I7I7I7B', record)
      local member, over = sub(record, 1, 7) .. '+' .. args[2 * c], most - estimate
      if left > 9007199254740991 or expires > 9007199254740991 or expires <= now + calls or drawn > 0 or
          how % 2 == 1 and units > left or over < 0 or made > 9007199254740991 or most > 9007199254740991 or
          flags < 2 or flags > 7 or
          calls + n > 2 and not call('ZSCORE', index, member) then -- of one in one bucket ZREM says so
        listed = nil
        break
      end
      if flags % 4 > 1 then charges = charges > 0 and charges - 1 or 0 end
      extra = extra > over and extra - over or 0
      total, holds, held = total + units, holds - 1, held - left
      local at = c == 1 and t[1] .. (#t[2] == 6 and t[2] or sub('00000' .. t[2], -6)) or format('%d', now + c - 1)
      local entry = packed == 1 and pack('>I7I4c0', total, units, sub(args[2 * c + 1], 15)) or
        format('%d:%d:', total, units) .. args[2 * c + 1]
      local remaining = 4611686018427387904 -- there is no limit
      if lone then
        if call('ZREM', index, member) == 0 then break end
        call('ZADD', log, at, entry)
        call('HDEL', state, field)
        call('HSET', state, 's', pack('<dddddddddddc0', total, now, suspended, holds, oldest, kept, expire, held,
          charges, extra, lapse, sub(s, 89)))
        local reply = pack('<ddddddd', 1, now, now, units, remaining, 1, 1)
        if how < 2 then
          local id = packed == 1 and sub(args[3], 1, 14) or string.match(args[3], '^[^:]*')
          call('SET', keys[6], reply .. id, 'PX', format('%d', kept / 1000))
        end
        return reply
      end
      listed[c], entries[2 * c - 1], entries[2 * c] = member, at, entry
      replies[c] = many == 1 and pack('<ddddddd', 1, now, now + c - 1, units, remaining, 1, 1) or
        (n == 1 and pack('<ddd', 1, now, now + c - 1) or replies[c]) .. pack('<dd', units, remaining) ..
        (n == many and pack('<dd', 1, 1) or '')
    end
    if not listed then break end
    writes[n] = {listed, entries, pack('<dddddddddddc0', total, now + calls - 1, suspended, holds, oldest, kept,
      expire, held, charges, extra, lapse, sub(s, 89))}
  end
  if lone or not writes[many] or call('ZREM', keys[4], unpack(writes[1][1])) == 0 then break end

  for n = 1, many do
    local w, state = writes[n], keys[4 * n - 2]
    if n > 1 then call('ZREM', keys[4 * n], unpack(w[1])) end
    call('ZADD', keys[4 * n - 1], unpack(w[2]))
    call('HDEL', state, unpack(fields, 2))
    call('HSET', state, 's', w[3])
  end
  for c = 1, calls do
    local how, _, packed = unpacked('<ddd', numbers, 25 + (c - 1) * size)
    if how < 2 then
      local id = args[2 * c + 1]
      id = packed == 1 and sub(id, 1, 14) or string.match(id, '^[^:]*')
      call('SET', keys[4 * many + 1 + c], replies[c] .. id, 'PX', format('%d', longest / 1000))
    end
  end
  do return calls > 1 and table.concat(replies) or replies[1] end
until true

if unpacked('<d', ARGV[1]) > 1 then return {} end -- each alone
