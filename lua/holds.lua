-- holds.lua: reads and writes reservations. It follows bucket.lua. Most charges need none of it, and
-- making a function takes time, so these are made on demand: local R = reservations().

function reservations()
  local R = {}

  -- units_of is what is left of a reservation, from its member in the sorted set of holds.
  local function units_of(b, member)
    local left = tonumber(match(member, '^(%d+):'))
    if not left or left > EXACT then damaged(b.index, 'what a reservation holds cannot be read') end
    return left
  end

  -- reindex counts the reservations again, and rebuilds the sorted set of holds from their fields. It
  -- is for a state that was lost, or that an earlier version wrote, without the units held. If the
  -- fields were lost too, what they held stays held until it expires.
  function R.reindex(b)
    local fields = call('HGETALL', b.state)
    b.holds, b.held = 0, 0
    if #fields == 0 then
      for _, member in ipairs(call('ZRANGE', b.index, '0', '-1')) do
        b.holds, b.held = b.holds + 1, b.held + units_of(b, member)
      end
      return
    end
    local members = {}
    for i = 1, #fields, 2 do
      if match(fields[i], '^r:') then
        local left, expires = match(fields[i + 1], '^(%d+):(%d+):')
        left, expires = tonumber(left), tonumber(expires)
        if not left or left > EXACT or expires > EXACT then
          damaged(b.state, ' cannot be read', fields[i])
        end
        local score = format('%d', left > 0 and expires or -expires)
        members[#members + 1] = {score, format('%d:', left) .. string.sub(fields[i], 3)}
        b.holds, b.held = b.holds + 1, b.held + left
      end
    end
    call('DEL', b.index)
    for _, m in ipairs(members) do call('ZADD', b.index, m[1], m[2]) end
    call('PEXPIREAT', b.index, format('%d', b.expire / 1000))
    write(b)
  end

  -- hold (for a bucket with reservations) computes what they hold now, b.live, and lists those that
  -- have expired, b.lapsed, until they are deleted with the next entry or reservation.
  function R.hold(b, now)
    if call('ZCARD', b.index) ~= b.holds then
      local what = 'its state counts %.0f reservations, and other ones are listed by expiry'
      damaged(b.index, format(what, b.holds))
    end
    now = format('%d', now)
    b.live, b.lapsed = b.held, call('ZRANGEBYSCORE', b.index, '-' .. now, now)
    for _, member in ipairs(b.lapsed) do b.live = b.live - units_of(b, member) end
    if b.live < 0 then damaged(b.index, 'more units have lapsed than its state counts as held') end
  end

  -- lapsing lists the holds that expire after now and before at, earliest first: the units freed
  -- after each, and when. It stops at need units.
  function R.lapsing(b, now, at, need)
    local lapsed, since, n, page = {[0] = 0}, {[0] = now}, 0, 16
    local before = at < NEVER and format('(%d', at) or '+inf'
    repeat
      local some = call('ZRANGEBYSCORE', b.index, format('(%d', now), before, 'WITHSCORES', 'LIMIT', n, page)
      for i = 1, #some, 2 do
        lapsed[n + 1], since[n + 1] = lapsed[n] + units_of(b, some[i]), time_of(b.index, some[i + 1])
        n = n + 1
      end
      local last = #some < 2 * page
      page = 256
    until last or lapsed[n] >= need
    return lapsed, since, n
  end

  -- forget deletes expired reservations, at most 1000 at a time. Later decisions must not be made at
  -- an earlier time.
  function R.forget(b, except)
    local members, fields = {}, {}
    for i = 1, math.min(1000, #b.lapsed) do
      local left, id = match(b.lapsed[i], '^(%d+):(.*)$')
      if id ~= except then
        members[#members + 1], fields[#fields + 1] = b.lapsed[i], 'r:' .. id
        b.holds, b.held = b.holds - 1, b.held - left
      end
    end
    if #members > 0 then
      call('ZREM', b.index, unpack(members))
      call('HDEL', b.state, unpack(fields))
    end
  end

  -- reserved reads one reservation: units left, when it expires, units drawn, and the rest of its
  -- field; nil if there is none.
  function R.reserved(b, id)
    local value = call('HGET', b.state, 'r:' .. id)
    if not value then return nil end
    local left, expires, drawn, rest = match(value, '^(%d+):(%d+):(%d+):(.*)$')
    left, expires, drawn = tonumber(left), tonumber(expires), tonumber(drawn)
    if not left or left > EXACT or expires > EXACT or drawn > EXACT then
      damaged(b.state, ' cannot be read', 'r:' .. id)
    end
    local score = tonumber(call('ZSCORE', b.index, format('%d:%s', left, id)))
    if score ~= expires and score ~= -expires then
      damaged(b.state, ' is not listed by its expiry', 'r:' .. id)
    end
    return left, expires, drawn, rest
  end

  -- put writes a reservation with left units; was is what was left before, nil if it is new.
  function R.put(b, id, was, left, expires, rest)
    call('HSET', b.state, 'r:' .. id, format('%d:%d:', left, expires) .. rest)
    call('ZADD', b.index, format('%d', left > 0 and expires or -expires), format('%d:', left) .. id)
    if not was then
      was, b.holds = 0, b.holds + 1
      b.fresh = b.fresh or b.holds == 1 -- the sorted set is new
    elseif was ~= left then
      call('ZREM', b.index, format('%d:', was) .. id)
    end
    b.held = b.held + left - was
  end

  -- drop deletes a reservation.
  function R.drop(b, id, left)
    call('HDEL', b.state, 'r:' .. id)
    call('ZREM', b.index, format('%d:', left) .. id)
    b.holds, b.held = b.holds - 1, b.held - left
  end

  return R
end
