-- plain.lua: decides plain charges at once, as most are: a call alone or a group, of one bucket, under
-- sliding and calendar limits, with labels that are known; beside reservations if it is allowed, and
-- none expires, where others have used nothing. In straight lines, without the tables and functions of what follows, that takes half
-- the time. Whatever else it finds, or cannot read, it leaves to charge.lua, before anything is
-- written: it has no errors of its own, and what it replies is what that would, but as one text: the
-- six doubles of each reply one after the other, since Redis takes four times as long to convert a
-- list of lists.

repeat
  local numbers = ARGV[1]
  local calls, many, _, _, _, _, ttl = unpacked('<ddddddd', numbers) -- ttl is the first call's
  if many > 1 or ttl > 0 or #ARGV > 1 + calls then break end
  local call, format, sub, pack = redis.call, string.format, string.sub, struct.pack
  local state, log = KEYS[2], KEYS[3]
  local t = call('TIME')
  local read, last = call('HMGET', state, 's', 'o'), call('ZREVRANGE', log, '0', '0')[1]
  local s = read[1]
  if not s or #s < 64 or not last or read[2] then break end
  local reserved = #s % 48 == 40 -- whether there ever was a reservation
  if not reserved and #s % 48 ~= 16 then break end

  local now = t[1] * 1000000 + t[2]
  local total, newest, suspended, holds, oldest, kept, expire, held = unpacked('<dddddddd', s)
  local sum
  if #last > 20 then sum = unpacked('>I7', last) end
  if not sum or sum > 9007199254740991 then sum = totals(last) end
  if not (sum == total and newest >= 0 and newest < now and suspended > -1e19 and suspended <= now and
      holds >= 0 and holds < 9007199254740991 and held >= 0 and held <= 9007199254740991 and held % 1 == 0 and
      (holds > 0 or held == 0) and oldest >= now - kept * 33 / 32 and oldest < 9007199254740991 and
      kept < 9007199254740991 and expire >= now + kept and expire < 1e19) then
    break
  end

  if holds > 0 then
    if not reserved then break end
    local charges, extra, lapse = unpacked('<ddd', s, 65)
    if not (lapse > now + calls and lapse <= 9007199254740991 and charges >= 0 and charges <= 9007199254740991 and
        extra >= 0 and extra <= 9007199254740991) then
      break
    end
  end

  local pos, stamp, logged, entries = 17, now, total, nil
  local room, lasts -- what the limits leave, and until when that is known
  local known, replies, r, reply = sub(s, reserved and 89 or 65), calls > 1 and {}, 1, nil
  local packed, units, limits, first = 0, 0, 0, 0
  for c = 1, calls do
    local size, retry, denying = c > 1 and unpacked('<d', numbers, pos), 0, 0
    if size ~= 8 + packed then -- else its numbers are those of the call before
      local _, keep, draws, ttl
      size, _, keep, draws, ttl, packed, units, limits = unpacked('<dddddddd', numbers, pos)
      if draws > 0 or ttl ~= 0 or keep > kept then room = nil break end
      first, lasts = pos + 24, 0
    end
    pos = pos + size
    if total + units > 9007199254740991 then room = nil break end
    if lasts < stamp or room < units then
      room, lasts = 4611686018427387904, limits > 0 and 9007199254740991 or 0 -- above 2^53: no limit
      for n = 1, limits do
        local window, from, ends, cap = unpacked('<dddd', numbers, first + 40 * n)
        local before, till, at
        if window > 0 and from == 0 then
          from = stamp - window + 1
        elseif window >= -1 or stamp >= ends then
          from = now
        end
        if from >= now or units > cap then room = nil break end
        before, known, till, at = start_of(log, known, from, logged, now)
        if not before then room = nil break end
        till = window < 0 and ends - 1 or till + window - 1
        if till < lasts then lasts = till end
        local left = cap - total + before - held
        if left < room then room = left end
        if left < units then
          if held > 0 then room = nil break end
          local target = before + units - left
          at = window < 0 and ends or stamp_at(log, from, before, logged, last, target, known, at)
          if not at then room = nil break end
          if window > 0 then at = at + window end
          if at > retry then retry, denying = at, n end
        end
      end
      if not room then break end
    end
    local at, left = stamp, room
    if denying == 0 then
      room, total, stamp = room - units, total + units, stamp + 1
      left = room
      local member = packed > 0 and pack('>I7I4c0', total, units, sub(numbers, pos - packed, pos - 1)) or
        format('%d:%d:', total, units) .. ARGV[c + 1]
      if entries then
        entries[#entries + 1], entries[#entries + 2] = format('%d', at), member
      else
        entries = {t[1] .. (#t[2] == 6 and t[2] or sub('00000' .. t[2], -6)), member}
      end
    elseif left < 0 then
      left = 0
    end
    if replies then
      replies[r], replies[r + 1], replies[r + 2], replies[r + 3], replies[r + 4], replies[r + 5] =
        denying > 0 and 0 or 1, now, at, denying, retry, left
      r = r + 6
    else
      reply = pack('<dddddd', denying > 0 and 0 or 1, now, at, denying, retry, left)
    end
  end
  if not room then break end
  if entries then
    call('ZADD', log, unpack(entries))
    call('HSET', state, 's', pack('<ddddddddc0c0', total, stamp - 1, suspended, holds, oldest, kept, expire, held,
      reserved and sub(s, 65, 88) or '', known))
  end
  do return reply or pack('<' .. string.rep('d', 6 * calls), unpack(replies)) end
until true
