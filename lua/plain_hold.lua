-- plain_hold.lua: makes a plain reservation at once, as most are: alone, of one bucket, one that is
-- charged when it expires or may be too low, under sliding and calendar limits, without a note or a
-- key, with labels that are known, where no other has expired. As plain.lua does, it leaves whatever
-- else it finds to charge.lua before anything is written, and its reply is seven doubles as one text:
-- the last is when the reservation expires.

repeat
  if #ARGV > 2 then break end -- there are more calls, too
  local unpacked, numbers = struct.unpack, ARGV[1]
  local ttl = unpacked('<d', numbers, 49) -- of the first call
  if ttl <= 0 then break end
  local call, format, match = redis.call, string.format, string.match
  local state, log, index = KEYS[2], KEYS[3], KEYS[4]
  local _, many, _, _, keep, _, _, units, limits, flags, most, pos = unpacked('<ddddddddddd', numbers)
  if many > 1 or flags < 2 then break end
  local id, mark, run = match(ARGV[2], '^([^:]*):([^:]*):?(.*)$')
  local t = call('TIME')
  local read, last = call('HMGET', state, 's', 'r:' .. id, 'c'), call('ZREVRANGE', log, '0', '0')[1]
  local s = read[1]
  if not s or #s ~= 64 or read[2] or not last then break end

  local now = t[1] * 1000000 + t[2]
  local at = format('%d', now)
  local total, newest, suspended, holds, oldest, kept, expire, held = unpacked('<dddddddd', s)
  local sum = match(last, '^(%d+):%d')
  if not (sum and sum - total == 0 and total + units <= 9007199254740991 and newest >= 0 and newest < now and
      suspended > -1e19 and suspended <= now and holds >= 0 and holds < 9007199254740991 and
      held >= 0 and held <= 9007199254740991 and held % 1 == 0 and (held == 0 or holds > 0) and
      oldest < 9007199254740991 and kept >= keep and kept < 9007199254740991 and
      expire >= now + ttl + kept and expire < 1e19) then
    break
  end
  local charges, extra = '0', 0
  if read[3] then charges, extra = match(read[3], '^(%d+):(%d+)$') end
  if not charges or charges + most > 9007199254740991 or extra + most > 9007199254740991 then break end
  if holds > 0 and call('ZCOUNT', index, '-' .. at, at) > 0 then break end

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
    local left = cap - total + before
    if left < room then room = left end
  end
  if not room or room < held + units then break end

  local left, expires = format('%d', units), now + ttl
  local by = format('%d', expires)
  call('ZADD', index, by, left .. '+' .. id)
  if newest < now - 1 then newest = now - 1 end -- later decisions are not made at an earlier time
  call('HSET', state,
    's', struct.pack('<dddddddd', total, newest, suspended, holds + 1, oldest, kept, expire, held + units),
    'r:' .. id, left .. ':' .. by .. ':0:' .. left .. ':' .. at .. format(':%d:%d:', flags, most) ..
      mark .. ':' .. run .. ':',
    'c', format('%d:%d', charges + (flags % 4 > 1 and 1 or 0), extra + most - units))
  if holds == 0 then call('PEXPIREAT', index, format('%d', expire / 1000)) end -- the sorted set is new
  do return struct.pack('<ddddddd', 1, now, now, 0, 0, room - held - units, expires) end
until true
