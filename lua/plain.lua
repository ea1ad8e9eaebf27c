-- plain.lua: decides a plain charge at once, as most are: a call alone, of one bucket, under sliding and
-- calendar limits, with labels that are known, beside no reservations. In straight lines, without the
-- tables and functions of what follows, that takes two thirds of the time. Whatever else it finds, or
-- cannot read, it leaves to charge.lua, before anything is written: it has no errors of its own, and
-- what it replies (charge.lua) is what that would.

repeat
  local call, format, match, unpacked = redis.call, string.format, string.match, struct.unpack
  local state, log, numbers = KEYS[2], KEYS[3], ARGV[1]
  local calls, many, _, keep, draws, ttl, _, units, limits, pos = unpacked('<ddddddddd', numbers)
  if calls > 1 or many > 1 or draws > 0 or ttl ~= 0 or #ARGV > 4 then break end
  local t = call('TIME')
  local s = call('HGET', state, 's')
  local last = call('ZREVRANGE', log, '0', '0')[1]
  if not s or #s ~= 64 or not last then break end

  local now = t[1] * 1000000 + t[2]
  local total, newest, suspended, holds, oldest, kept, expire, held = unpacked('<dddddddd', s)
  local sum = match(last, '^(%d+):%d')
  if not (sum and sum - total == 0 and total + units <= 9007199254740991 and newest >= 0 and newest < now and
      suspended > -1e19 and suspended <= now and holds == 0 and held == 0 and oldest >= now - kept * 33 / 32 and
      oldest < 9007199254740991 and kept >= keep and kept < 9007199254740991 and expire >= now + kept and
      expire < 1e19) then
    break
  end

  local room, retry, denying = 4611686018427387904, 0, 0 -- room above 2^53: no limit
  for n = 1, limits do
    local window, from, ends, cap, of
    window, from, ends, cap, of, pos = unpacked('<ddddd', numbers, pos)
    if window > 0 and from == 0 then
      from = now - window + 1
    elseif window >= -1 or now < from or now >= ends then
      room = nil
    end
    if not room or units > cap then room = nil break end
    local since, before = format('%d', from), total
    local first = call('ZRANGEBYSCORE', log, since, '+inf', 'LIMIT', '0', '2')
    if first[1] then
      local after, more = total, 0
      local of
      sum, of = match(first[1], '^(%d+):(%d+):')
      if first[2] then after, more = match(first[2], '^(%d+):(%d+):') end
      before = sum and after and sum - of
      if not before or before < 0 or before + of > after - more or total - after < 0 then room = nil break end
    end
    local left = cap - total + before
    if left < room then room = left end
    if left < units then
      local at = window < 0 and ends or stamp_at(log, since, before, first, total, last, before + units - left)
      if not at then room = nil break end
      if window > 0 then at = at + window end
      if at > retry then retry, denying = at, n end
    end
  end
  if not room then break end
  if denying > 0 then return {{0, now, now, denying, retry, room > 0 and room or 0}} end

  total = total + units
  local member = format('%d:%d:', total, units) .. ARGV[2] .. ':' .. (ARGV[3] or '') .. (ARGV[4] and ':' .. ARGV[4] or '')
  call('ZADD', log, format('%d', now), member)
  call('HSET', state, 's', struct.pack('<dddddddd', total, now, suspended, holds, oldest, kept, expire, held))
  do return {{1, now, now, 0, 0, room - units}} end
until true
