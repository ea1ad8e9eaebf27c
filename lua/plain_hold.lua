-- plain_hold.lua: makes a plain reservation at once, as most are: alone, one that is charged when it
-- expires or may be too low, under sliding and calendar limits, without a note or a key, with labels
-- that are known, where no other has expired. As plain.lua does, it leaves whatever else it finds to
-- charge.lua before anything is written, and its reply is one text of doubles.

repeat
  if #ARGV > 2 then break end -- there are more calls, too
  local unpacked, numbers = struct.unpack, ARGV[1]
  local _, many, _, _, keep, _, ttl, pos = unpacked('<ddddddd', numbers)
  if ttl <= 0 then break end
  local call, format, match, pack = redis.call, string.format, string.match, struct.pack
  local id, mark, run = match(ARGV[2], '^([^:]*):([^:]*):?(.*)$')
  local t = call('TIME')
  local now = t[1] * 1000000 + t[2]
  local at, by, field = format('%d', now), format('%d', now + ttl), 'r:' .. id

  local writes = {} -- for each bucket: what is listed, state, reservation, counts, room, when keys expire
  for n = 1, many do
    local units, limits, flags, most
    units, limits, flags, most, pos = unpacked('<dddd', numbers, pos)
    local state, log, index = KEYS[3 * n - 1], KEYS[3 * n], KEYS[3 * n + 1]
    local read, last = call('HMGET', state, 's', field, 'c'), call('ZREVRANGE', log, '0', '0')[1]
    local s = read[1]
    if flags < 2 or not s or #s ~= 64 or read[2] or not last then break end

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
      local before = from < now and total_before(log, format('%d', from), total)
      if not before then room = nil break end
      local left = cap - total + before
      if left < room then room = left end
    end
    if not room or room < held + units then break end

    local left = format('%d', units)
    if newest < now - 1 then newest = now - 1 end -- later decisions are not made at an earlier time
    writes[n] = {
      left .. '+' .. id, pack('<dddddddd', total, newest, suspended, holds + 1, oldest, kept, expire, held + units),
      left .. ':' .. by .. ':0:' .. left .. ':' .. at .. format(':%d:%d:', flags, most) .. mark .. ':' .. run .. ':',
      format('%d:%d', charges + (flags % 4 > 1 and 1 or 0), extra + most - units), room - held - units,
      holds == 0 and expire, -- the sorted set is new
    }
  end
  if not writes[many] then break end

  local remaining = ''
  for n = 1, many do
    local w, state, index = writes[n], KEYS[3 * n - 1], KEYS[3 * n + 1]
    call('ZADD', index, by, w[1])
    call('HSET', state, 's', w[2], field, w[3], 'c', w[4])
    if w[6] then call('PEXPIREAT', index, format('%d', w[6] / 1000)) end
    remaining = remaining .. pack('<d', w[5])
  end
  do return pack('<ddddd', 1, now, now, 0, 0) .. remaining .. pack('<d', now + ttl) end
until true
