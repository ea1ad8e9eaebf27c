-- plain_hold.lua: makes plain reservations at once, as most are: one, or a group of the same buckets,
-- which are charged when they expire or may be too low, under sliding and calendar limits, without a note
-- or a key, with labels that are known, where no other has expired. As plain.lua does, it leaves whatever
-- else it finds to charge.lua before anything is written, and its reply is one text of doubles.

repeat
  local unpacked, numbers = struct.unpack, ARGV[1]
  local calls, many, _, _, _, _, ttl = unpacked('<ddddddd', numbers)
  if ttl <= 0 or #ARGV > 1 + calls then break end
  local call, format, match, pack = redis.call, string.format, string.match, struct.pack
  local t = call('TIME')
  local now = t[1] * 1000000 + t[2]
  local at = format('%d', now)

  -- Of each call: id, code of the labels, run, when it expires, where its next bucket begins in numbers,
  -- the reply.
  local own, fields, pos, keep, longest = {0, 0, 0, 0, 0, 0}, {'s', 'c', 0}, 17, 0, 0
  for c = 1, calls do
    local size, _, kept, _, ttl = unpacked('<ddddd', numbers, pos)
    local id, mark, run = match(ARGV[c + 1], '^([^:]*):([^:]*):?(.*)$')
    local field = 'r:' .. id
    if ttl <= 0 or calls > 1 and fields[field] then many = 0 break end -- or twice in one group
    if calls > 1 then fields[field] = true end
    if kept > keep then keep = kept end
    if ttl > longest then longest = ttl end
    local i = 6 * c
    fields[c + 2], own[i - 5], own[i - 4], own[i - 3], own[i - 2], own[i - 1], own[i] =
      field, id, mark, run, format('%d', now + ttl), pos + 48, pack('<ddddd', 1, now, now, 0, 0)
    pos = pos + size
  end

  local writes = {} -- for each bucket: what is listed, the state's fields, when keys expire
  for n = 1, many do
    local state, log, index = KEYS[3 * n - 1], KEYS[3 * n], KEYS[3 * n + 1]
    local read, newest_entry = call('HMGET', state, unpack(fields)), call('ZREVRANGE', log, '0', '0')[1]
    local s = read[1]
    if not s or #s ~= 64 or not newest_entry then break end

    local total, newest, suspended, holds, oldest, kept, expire, held = unpacked('<dddddddd', s)
    if not (totals(newest_entry) == total and newest >= 0 and newest < now and
        suspended > -1e19 and suspended <= now and holds >= 0 and holds < 9007199254740991 and
        held >= 0 and held <= 9007199254740991 and held % 1 == 0 and (held == 0 or holds > 0) and
        oldest < 9007199254740991 and kept >= keep and kept < 9007199254740991 and
        expire >= now + longest + kept and expire < 1e19) then
      break
    end
    local charges, extra = '0', 0
    if read[2] then charges, extra = match(read[2], '^(%d+):(%d+)$') end
    if holds > 0 then
      local last = format('%d', now + calls)
      if call('ZCOUNT', index, '-' .. last, last) > 0 then break end
    end
    if not charges then break end
    charges, extra = charges + 0, extra + 0

    local before = calls > 1 and {} -- the running total where windows begin, by that time
    local listed, written = {0, 0}, {'s', 0, 0, 0, 'c', 0}
    for c = 1, calls do
      local i = 6 * c
      local units, limits, flags, most, pos = unpacked('<dddd', numbers, own[i - 1])
      if flags < 2 or read[c + 2] or total + units > 9007199254740991 or charges + most > 9007199254740991 or
          extra + most > 9007199254740991 then
        listed = nil
        break
      end
      local room = 4611686018427387904 -- above 2^53: no limit
      local wide, within = 9007199254740991, nil -- as in plain.lua
      for _ = 1, limits do
        local window, from, ends, cap = unpacked('<dddd', numbers, pos)
        pos = pos + 40
        if window > 0 and from == 0 then
          from = now - window + 1
        elseif window >= -1 or now >= ends then
          from = now
        end
        if from >= now then room = nil break end
        if from < wide or cap - within < room then
          local used = before and before[from] or total_before(log, format('%d', from), total)
          if not used then room = nil break end
          if before then before[from] = used end
          if from < wide then wide, within = from, total - used end
          local left = cap - total + used
          if left < room then room = left end
        end
      end
      if not room or room < held + units then listed = nil break end

      local left, by = format('%d', units), own[i - 2]
      own[i - 1], own[i] = pos, own[i] .. pack('<d', room - held - units)
      held, holds, extra = held + units, holds + 1, extra + most - units
      if flags % 4 > 1 then charges = charges + 1 end
      listed[2 * c - 1], listed[2 * c] = by, left .. '+' .. own[i - 5]
      local w = c > 1 and 2 * c + 3 or 3
      written[w], written[w + 1] = fields[c + 2],
        left .. ':' .. by .. ':0:' .. left .. ':' .. at .. format(':%d:%d:', flags, most) ..
          own[i - 4] .. ':' .. own[i - 3] .. ':'
    end
    if not listed then break end
    if newest < now - 1 then newest = now - 1 end -- later decisions are not made at an earlier time
    written[2] = pack('<dddddddd', total, newest, suspended, holds, oldest, kept, expire, held)
    written[6] = format('%d:%d', charges, extra)
    writes[n] = {listed, written, holds == calls and expire} -- then the sorted set is new
  end
  if not writes[many] then break end

  for n = 1, many do
    local w, index = writes[n], KEYS[3 * n + 1]
    call('ZADD', index, unpack(w[1]))
    call('HSET', KEYS[3 * n - 1], unpack(w[2]))
    if w[3] then call('PEXPIREAT', index, format('%d', w[3] / 1000)) end
  end
  local reply = ''
  for i = 6, 6 * calls, 6 do reply = reply .. own[i] .. pack('<d', own[i - 2]) end
  do return reply end
until true
