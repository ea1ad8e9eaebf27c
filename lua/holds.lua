-- holds.lua: reads and writes reservations. It follows bucket.lua. Most charges need none of it, and
-- making a function takes time, so these are made on demand: local R = reservations().
--
-- state  r:<id> = <left>:<expires µs>:<drawn>:<units>:<created µs>:<flags>:<note>; flags is the sum of
--        1 made by a person, 2 becomes an entry when it expires, 4 an estimate; above 1, it is
--        …:<flags>:<most>:<labels>:<run>:<note>
--        r:<id>~ = 0:<until µs>:0:0:<stamp>:0: of one that became the entry with that stamp, which a
--        late settlement looks for, until the entry may be deleted; ~~ and ~~~ of others with that id
--        c = <number of those that become entries>:<units by which the estimates may be too low>; absent
--        for 0:0
--        The id of a reservation of several buckets is whole, with their names.
-- holds  sorted set, one member per reservation: <left>:<id>, or <left>+<id> where flags is above 1;
--        score = <expires µs>, negative when nothing is left, so that a search for units skips it
-- Whatever decides or reads first has those that expired become entries, where they do. The others
-- are deleted with the next entry or reservation.

function reservations()
  local R = {}

  -- also has the next write of the state write another field, too.
  local function also(b, field, value)
    b.more = b.more or {}
    b.more[#b.more + 1], b.more[#b.more + 2] = field, value
  end
  R.also = also

  -- units_of is what is left of a reservation, from its member in the sorted set of holds.
  local function units_of(b, member)
    local left = tonumber(match(member, '^(%d+)[:+]'))
    if not left or left > EXACT then damaged(b.index, 'what a reservation holds cannot be read') end
    return left
  end

  -- parse reads the field of a reservation: units left, when it expires, units drawn, the rest of the
  -- field, the sign that follows the units in the list, by how many units the estimate may be too low,
  -- and whether it becomes an entry; nil if it cannot be read.
  local function parse(id, value)
    local left, expires, drawn, rest, units, flags = match(value, '^(%d+):(%d+):(%d+):((%d+):%d+:(%d):.*)$')
    left, expires, drawn, flags = tonumber(left), tonumber(expires), tonumber(drawn), tonumber(flags)
    if not left or left > EXACT or expires > EXACT or drawn > EXACT then return nil end
    local r = {id = id, left = left, expires = expires, drawn = drawn, rest = rest, sign = ':', extra = 0}
    if flags > 1 then
      local most = tonumber(match(rest, '^%d+:%d+:%d:(%d+):[^:]*:[^:]*:'))
      if not most or most > EXACT then return nil end
      r.sign, r.extra, r.charges = '+', most - units, flags % 4 > 1
    end
    return r
  end

  -- member is a reservation as it is listed by expiry.
  local function member_of(r) return format('%d', r.left) .. r.sign .. r.id end

  local function set_counts(b, c)
    local charges, extra = match(c or '0:0', '^(%d+):(%d+)$')
    b.charges, b.extra = tonumber(charges), tonumber(extra)
    if not charges or b.charges > EXACT or b.extra > EXACT then damaged(b.state, 'what it counts cannot be read') end
  end

  -- counted is the number of reservations that become entries, and the units by which the estimates
  -- may be too low, with those that have expired.
  local function counted(b)
    if not b.charges then set_counts(b, call('HGET', b.state, 'c')) end
    return b.charges, b.extra
  end

  -- count adds reservations to what is counted, or takes them off; the next write of the state keeps it.
  local function count(b, charges, extra)
    local c, e = counted(b)
    b.charges, b.extra = c + charges, math.max(0, e + extra)
    also(b, 'c', format('%d:%d', b.charges, b.extra))
  end

  -- reindex counts the reservations again, and rebuilds the sorted set of holds from their fields. It
  -- is for a state that was lost, or that an earlier version wrote, without the units held. If the
  -- fields were lost too, what they held stays held until it expires.
  function R.reindex(b)
    local fields = call('HGETALL', b.state)
    b.holds, b.held, b.charges, b.extra = 0, 0, 0, 0
    if #fields == 0 then
      for _, member in ipairs(call('ZRANGE', b.index, '0', '-1')) do
        b.holds, b.held = b.holds + 1, b.held + units_of(b, member)
      end
      return
    end
    local members, counts = {}, false
    for i = 1, #fields, 2 do
      if match(fields[i], '^r:') then
        local r = parse(string.sub(fields[i], 3), fields[i + 1])
        if not r then damaged(b.state, ' cannot be read', fields[i]) end
        members[#members + 1] = {format('%d', r.left > 0 and r.expires or -r.expires), member_of(r)}
        b.holds, b.held = b.holds + 1, b.held + r.left
        b.charges, b.extra = b.charges + (r.charges and 1 or 0), b.extra + r.extra
      end
      counts = counts or fields[i] == 'c'
    end
    if counts or b.charges + b.extra > 0 then also(b, 'c', format('%d:%d', b.charges, b.extra)) end
    call('DEL', b.index)
    for _, m in ipairs(members) do call('ZADD', b.index, m[1], m[2]) end
    call('PEXPIREAT', b.index, format('%d', b.expire / 1000))
    write(b)
  end

  -- hold (for a bucket with reservations) computes what they hold now, b.live, and lists those that
  -- have expired until they are deleted, b.lapsed; true if any of these has a +.
  local function hold(b, now)
    if call('ZCARD', b.index) ~= b.holds then
      local what = 'its state counts %.0f reservations, and other ones are listed by expiry'
      damaged(b.index, format(what, b.holds))
    end
    now = format('%d', now)
    b.live, b.lapsed, b.due = b.held, call('ZRANGEBYSCORE', b.index, '-' .. now, now), nil
    local due = false
    for _, member in ipairs(b.lapsed) do
      b.live = b.live - units_of(b, member)
      due = due or match(member, '^%d+%+')
    end
    if b.live < 0 then damaged(b.index, 'more units have lapsed than its state counts as held') end
    return due
  end

  -- read_due moves those of b.lapsed that have a + to b.due, in the order in which they become entries.
  local function read_due(b)
    local due, plain, listed = {}, {}, {}
    for _, member in ipairs(b.lapsed) do
      listed[member] = true
      local id = match(member, '^%d+%+(.*)$')
      if id then due[#due + 1] = id else plain[#plain + 1] = member end
    end
    b.lapsed, b.due = plain, due
    local bucket = match(b.state, '([^:]*):state$')
    for i = 1, #due, 200 do
      local fields = {}
      for j = i, math.min(#due, i + 199) do
        for k = 0, 3 do fields[#fields + 1] = 'r:' .. due[j] .. string.rep('~', k) end
      end
      local values = call('HMGET', b.state, unpack(fields))
      for j = 1, #fields, 4 do
        local n = i + (j - 1) / 4
        local id = due[n]
        local r = parse(id, values[j] or '')
        if not r or r.sign ~= '+' then damaged(b.state, ' cannot be read', fields[j]) end
        if not listed[member_of(r)] then damaged(b.state, ' is not listed by its expiry', fields[j]) end
        r.stone = not values[j + 1] and '~' or not values[j + 2] and '~~' or not values[j + 3] and '~~~'
        r.order = match(id, '%.') and id or bucket .. '.' .. id
        due[n] = r
      end
    end
    table.sort(due, function(x, y)
      if x.expires ~= y.expires then return x.expires < y.expires end
      return x.order < y.order
    end)
  end

  -- each calls a command with some arguments at a time.
  local function each(command, key, args)
    for i = 1, #args, 1000 do call(command, key, unpack(args, i, math.min(#args, i + 999))) end
  end

  -- convert writes the entries of those that have expired, each stamped when it did, but after every
  -- entry that there is.
  local function convert(b, now, labels)
    local entries, stones, index, members, fields, others = {}, {}, {}, {}, {}, {}
    local extra = 0
    read_due(b)
    for _, r in ipairs(b.due) do
      if not r.charges or r.left == 0 then
        others[#others + 1] = r
      else
        members[#members + 1], fields[#fields + 1] = member_of(r), 'r:' .. r.id
        b.holds, b.held, extra = b.holds - 1, b.held - r.left, extra + r.extra
        local at = math.max(r.expires, b.newest + 1)
        b.newest, b.total = at, b.total + r.left
        local mark, run = match(r.rest, '^%d+:%d+:%d:%d+:([^:]*):([^:]*):')
        if run ~= '' then mark = mark .. ':' .. run end
        entries[#entries + 1] = format('%d', at)
        entries[#entries + 1] = format('%d:%d:%s:%s', b.total, r.left, match(r.id, '[^.]*$'), mark)
        if r.stone then
          b.holds = b.holds + 1
          stones[#stones + 1] = 'r:' .. r.id .. r.stone
          stones[#stones + 1] = format('0:%d:0:0:%d:0:', at + b.keep, at)
          index[#index + 1] = format('-%d', at + b.keep)
          index[#index + 1] = '0:' .. r.id .. r.stone
        end
      end
    end
    b.due = others
    if #members == 0 then return end
    if b.total > EXACT then damaged(b.log, 'its total is at its maximum') end
    each('ZADD', b.log, entries) -- a server out of memory refuses here, before any change
    each('HSET', b.state, stones)
    each('ZADD', b.index, index)
    each('ZREM', b.index, members)
    each('HDEL', b.state, fields)
    count(b, -#members, -extra)
    save(b, now, 0, labels)
  end

  -- lapse finds what is held in buckets and the time at which to decide: not before stamp, and after
  -- every entry. Reservations that expired by then have become entries.
  function R.lapse(buckets, stamp, labels)
    repeat
      local n = stamp
      for _, b in ipairs(buckets) do
        if b.holds > 0 and hold(b, n) then convert(b, n, labels) end
        if b.newest >= stamp then stamp = b.newest + 1 end
      end
    until stamp == n
    return stamp
  end

  -- counted is the number of reservations that become entries, and the units by which the estimates
  -- may be too low.
  function R.counted(b)
    local charges, extra = counted(b)
    for _, r in ipairs(b.due or EMPTY) do charges, extra = charges - (r.charges and 1 or 0), extra - r.extra end
    return charges, extra
  end

  -- frees makes a function that says when the units of a hold come free that nobody settles. If some
  -- become entries, all are taken to, and the time is one that is surely late enough.
  function R.frees(b, window, from, ends, level)
    if window == 0 and not level or R.counted(b) == 0 then return function(expires) return expires end end
    local length = math.abs(window)
    if level then -- when all that is held is used, the bucket is restored by then
      length, ends = math.floor((level + b.live * ends) / from) + 1, 0
    end
    return function(expires)
      expires = expires + SLACK
      return expires < ends and ends or expires + length
    end
  end

  -- lapsing lists the holds that expire after now and before at, earliest first: the units freed
  -- after each, and when, by frees. It stops at need units.
  function R.lapsing(b, now, at, need, frees)
    local lapsed, since, n, page = {[0] = 0}, {[0] = now}, 0, 16
    local before = at < NEVER and format('(%d', at) or '+inf'
    repeat
      local some = call('ZRANGEBYSCORE', b.index, format('(%d', now), before, 'WITHSCORES', 'LIMIT', n, page)
      for i = 1, #some, 2 do
        lapsed[n + 1], since[n + 1] = lapsed[n] + units_of(b, some[i]), frees(time_of(b.index, some[i + 1]))
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
    local charges, extra = 0, 0
    for i = 1, math.min(1000, b.due and #b.due or 0) do
      local r = b.due[i]
      if r.id ~= except then
        members[#members + 1], fields[#fields + 1] = member_of(r), 'r:' .. r.id
        b.holds, b.held = b.holds - 1, b.held - r.left
        charges, extra = charges + (r.charges and 1 or 0), extra + r.extra
      end
    end
    if charges + extra > 0 then count(b, -charges, -extra) end
    if #members > 0 then
      call('ZREM', b.index, unpack(members))
      call('HDEL', b.state, unpack(fields))
    end
    b.lapsed, b.due = EMPTY, nil
  end

  -- reserved reads one reservation, as parse does; nil if there is none.
  function R.reserved(b, id)
    local both = call('HMGET', b.state, 'r:' .. id, 'c')
    set_counts(b, both[2])
    if not both[1] then return nil end
    return parse(id, both[1]) or damaged(b.state, ' cannot be read', 'r:' .. id)
  end

  -- unlisted ends the script if a reservation is not listed by its expiry as it is.
  local function unlisted(b, r) damaged(b.state, ' is not listed by its expiry', 'r:' .. r.id) end

  -- listed makes sure of that.
  function R.listed(b, r)
    local score = tonumber(call('ZSCORE', b.index, member_of(r)))
    if score ~= r.expires and score ~= -r.expires then unlisted(b, r) end
  end

  -- became is the entry that a reservation became, and its stamp: the first of those that are still
  -- there.
  function R.became(b, id)
    local field = 'r:' .. id .. '~'
    local first, own
    for _, value in ipairs(call('HMGET', b.state, field, field .. '~', field .. '~~')) do
      local at = value and tonumber(match(value, '^0:%d+:0:0:(%d+):'))
      if at and (not first or at < first) then
        local found = call('ZRANGEBYSCORE', b.log, format('%d', at), format('%d', at))[1]
        local same = found and match(found, '^%d+:%d+:([^:]*)') == match(id, '[^.]*$') -- not one that was added since
        if same then first, own = at, found end
      end
    end
    return own, first
  end

  -- add writes a new reservation, whose note and what comes before it is note.
  function R.add(b, id, now, expires, note)
    local units, flags = b.units, b.flags
    call('ZADD', b.index, format('%d', expires), format(flags > 1 and '%d+' or '%d:', units) .. id)
    also(b, 'r:' .. id, format('%d:%d:0:%d:%d:%d:', units, expires, units, now, flags) .. note)
    b.holds, b.held = b.holds + 1, b.held + units
    b.fresh = b.fresh or b.holds == 1 -- the sorted set is new
    if flags > 1 then count(b, flags % 4 > 1 and 1 or 0, b.most - units) end
  end

  -- draw takes units out of a reservation, or puts those that are negative back.
  function R.draw(b, r, units)
    local was = member_of(r)
    r.left, r.drawn = r.left - units, r.drawn + units
    call('ZADD', b.index, format('%d', r.left > 0 and r.expires or -r.expires), member_of(r))
    also(b, 'r:' .. r.id, format('%d:%d:%d:', r.left, r.expires, r.drawn) .. r.rest)
    call('ZREM', b.index, was)
    b.held = b.held - units
  end

  -- extend has a reservation expire later.
  function R.extend(b, r, expires)
    r.expires = expires
    call('ZADD', b.index, format('%d', r.left > 0 and expires or -expires), member_of(r))
    also(b, 'r:' .. r.id, format('%d:%d:%d:', r.left, expires, r.drawn) .. r.rest)
  end

  -- unlist begins to delete a reservation: nothing else was written yet.
  function R.unlist(b, r)
    if call('ZREM', b.index, member_of(r)) == 0 then unlisted(b, r) end
  end

  -- drop deletes a reservation that is not listed any more.
  function R.drop(b, r)
    call('HDEL', b.state, 'r:' .. r.id)
    b.holds, b.held = b.holds - 1, b.held - r.left
    if r.sign == '+' then count(b, r.charges and -1 or 0, -r.extra) end
  end

  return R
end
