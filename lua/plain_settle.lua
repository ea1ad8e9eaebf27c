-- plain_settle.lua: settles plain reservations at once, as most are: one, or a group of the same buckets,
-- made as plain_hold.lua makes them and not drawn on, for at least one unit of each bucket, without
-- limits, with labels that are known, where none has expired. As plain.lua does, it leaves whatever else
-- it finds to settle.lua before anything is written, and its reply is one text of doubles.

repeat
  local call, format, match, sub, unpacked, pack =
    redis.call, string.format, string.match, string.sub, struct.unpack, struct.pack
  local numbers = ARGV[1]
  local calls, many = unpacked('<dd', numbers)
  local size = 32 + 16 * many -- of what there is of each call
  if #ARGV ~= 1 + 2 * calls or #numbers ~= 16 + calls * size then break end
  local t = call('TIME')
  local now = t[1] * 1000000 + t[2]
  local last, fields = format('%d', now + calls), {'s', 'c', 'r:' .. ARGV[2]}
  for c = 2, calls do
    local field = 'r:' .. ARGV[2 * c]
    fields[c + 2], fields[field] = field, (fields[field] or 0) + 1
    if fields[field] > 1 or field == fields[3] then many = 0 break end -- twice in one group
  end

  local writes = {} -- for each bucket: what is listed, entries, state, counts
  local used, longest = {0}, 0 -- the units, by bucket and call, and how long an answer is kept
  for n = 1, many do
    local state, log, index = KEYS[4 * n - 2], KEYS[4 * n - 1], KEYS[4 * n]
    local read, newest_entry = call('HMGET', state, unpack(fields)), call('ZREVRANGE', log, '0', '0')[1]
    local s, charges = read[1], read[2]
    if not s or #s ~= 64 or not charges or not newest_entry then break end

    local total, newest, suspended, holds, oldest, kept, expire, held = unpacked('<dddddddd', s)
    local extra
    charges, extra = match(charges, '^(%d+):(%d+)$')
    if not (totals(newest_entry) == total and newest >= 0 and newest < now and suspended > -1e19 and
        suspended <= now and holds >= calls and holds < 9007199254740991 and held >= 0 and
        held <= 9007199254740991 and held % 1 == 0 and oldest >= now - kept * 33 / 32 and
        oldest < 9007199254740991 and kept < 9007199254740991 and expire >= now + kept and
        expire < 1e19 and charges) or call('ZCOUNT', index, '-' .. last, last) > 0 then
      break
    end
    if kept > longest then longest = kept end
    charges, extra = charges + 0, extra + 0
    local listed, entries = {0}, {0, 0}
    for c = 1, calls do
      local keep, within, _, packed = unpacked('<dddd', numbers, 17 + (c - 1) * size)
      local units = unpacked('<d', numbers, 33 + (c - 1) * size + 16 * n)
      local set, by, estimate, flags, most =
        match(read[c + 2] or '', '^(%d+):(%d+):0:(%d+):%d+:([2-7]):(%d+):[^:]*:[^:]*:')
      if not set or units < 1 or keep > kept or total + units > 9007199254740991 then listed = nil break end
      local left, expires, over, counts = set + 0, by + 0, most - estimate, flags % 4 > 1 and 1 or 0
      local member = set .. '+' .. ARGV[2 * c]
      if left > 9007199254740991 or expires > 9007199254740991 or expires <= now + calls or
          within == 1 and units > left or over < 0 or over > 9007199254740991 or counts + over == 0 or
          calls + n > 2 and not call('ZSCORE', index, member) then -- of one in one bucket ZREM says so
        listed = nil
        break
      end
      charges, extra = charges - counts, extra - over
      if charges < 0 or charges >= 9007199254740991 or extra + over > 9007199254740991 then listed = nil break end
      if extra < 0 then extra = 0 end
      total, holds, held = total + units, holds - 1, held - left
      local text = format('%d', units)
      used[(n - 1) * calls + c], listed[c] = text, member
      entries[2 * c - 1], entries[2 * c] = format('%d', now + c - 1),
        packed == 1 and pack('>I7I4', total, units) .. sub(ARGV[2 * c + 1], 15) or
        format('%d:', total) .. text .. ':' .. ARGV[2 * c + 1]
    end
    if not listed then break end
    writes[n] = {
      listed, entries, pack('<dddddddd', total, now + calls - 1, suspended, holds, oldest, kept, expire, held),
      format('%d:%d', charges, extra),
    }
  end
  if not writes[many] or call('ZREM', KEYS[4], unpack(writes[1][1])) == 0 then break end

  for n = 1, many do
    local w, state = writes[n], KEYS[4 * n - 2]
    if n > 1 then call('ZREM', KEYS[4 * n], unpack(w[1])) end
    call('ZADD', KEYS[4 * n - 1], unpack(w[2]))
    call('HDEL', state, unpack(fields, 3))
    call('HSET', state, 's', w[3], 'c', w[4])
  end
  local replies, ms = calls > 1 and {}, format('%d', longest / 1000)
  for c = 1, calls do
    local asked, units, at = used[c], ' 4611686018427387904', writes[1][2][2 * c - 1] -- there is no limit
    local reply = pack('<ddddd', 1, now, now + c - 1, asked, 4611686018427387904)
    units = ' ' .. asked .. units
    for n = 2, many do
      local text = used[(n - 1) * calls + c]
      asked, units = asked .. ',' .. text, units .. ' ' .. text .. ' 4611686018427387904'
      reply = reply .. pack('<dd', text, 4611686018427387904)
    end
    local id = ARGV[2 * c + 1]
    id = unpacked('<d', numbers, 41 + (c - 1) * size) == 1 and sub(id, 1, 14) or match(id, '^[^:]*')
    call('SET', KEYS[4 * many + 1 + c], asked .. '\n' .. id .. ' - - 1 ' ..
      writes[1][2][1] .. ' ' .. at .. units .. ' 1 1', 'PX', ms)
    reply = reply .. pack('<dd', 1, 1)
    if replies then replies[c] = reply else return reply end
  end
  do return table.concat(replies) end
until true

if struct.unpack('<d', ARGV[1]) > 1 then return {} end -- each alone
