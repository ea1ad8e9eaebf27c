-- lapses.lua: what becomes of reservations that expire, when they free their units, and what is drawn
-- from them. It follows holds.lua, and is made on demand, too: local L = lapses(). Most calls need
-- none of it.
--
-- Whatever decides or reads first has those that expired become entries, where they do. The others
-- are deleted with the next entry or reservation.

local made

function lapses()
  if made then return made end
  local L = {}
  local parse, _, uncount = reservations()

  -- each calls a command with some arguments at a time.
  local function each(command, key, args)
    for i = 1, #args, 1000 do call(command, key, unpack(args, i, math.min(#args, i + 999))) end
  end

  -- units_of is what is left of a reservation, from its member in the sorted set of holds.
  local function units_of(b, member)
    local left = #member > 8 and unpacked('>I7', member)
    if not left or left > EXACT then damaged(b.index, 'what a reservation holds cannot be read') end
    return left
  end

  -- packed is the field of a reservation as an earlier version wrote it, <left>:<expires>:<drawn>:<units>:
  -- <made>:<flags>:<note>, or with flags above 1 …:<flags>:<most>:<labels>:<run>:<note>, in today's form;
  -- empty if it cannot be read.
  local function packed(value)
    local left, expires, drawn, units, made, flags, tail = match(value, '^(%d+):(%d+):(%d+):(%d+):(%d+):([0-7]):(.*)$')
    local most = units
    if left and flags + 0 > 1 then
      most, tail = match(tail, '^(%d+):([^:]*:[^:]*:.*)$')
    elseif left then
      tail = '::' .. tail
    end
    if not tail then return '' end
    for _, number in ipairs({left, expires, drawn, units, made, most}) do
      if number + 0 > EXACT then return '' end
    end
    return struct.pack(RECORD, left, expires, drawn, units, made, most, flags) .. tail
  end

  -- relist has the sorted set list what an earlier version did, <left>:<id> or <left>+<id>, in today's
  -- form.
  local function relist(b)
    for _, member in ipairs(call('ZRANGEBYSCORE', b.index, '(-inf', '+inf')) do
      local left, id = match(member, '^(%d+)([:+].*)$')
      if left and left + 0 <= EXACT then
        call('ZADD', b.index, call('ZSCORE', b.index, member), struct.pack('>I7', left) .. id)
        call('ZREM', b.index, member)
      end
    end
  end

  -- reindex counts the reservations again, and rebuilds the sorted set of holds from their fields. It
  -- is for a state that was lost, or that an earlier version wrote; what that counted as held stays
  -- held, even if the fields hold less. If the fields were lost too, what they held stays held until
  -- it expires.
  function L.reindex(b)
    local fields = call('HGETALL', b.state)
    local holds, held = b.holds, b.held
    b.holds, b.held, b.charges, b.extra, b.next = 0, 0, 0, 0, nil
    if #fields == 0 then
      relist(b)
      for _, member in ipairs(call('ZRANGEBYSCORE', b.index, '(-inf', '+inf')) do
        b.holds, b.held, b.next = b.holds + 1, b.held + units_of(b, member), 0
      end
      b.live = b.held
      return
    end
    local members, old = {}, {}
    for i = 1, #fields, 2 do
      if match(fields[i], '^r:') then
        local value = fields[i + 1]
        if match(value, '^%d') then
          value = packed(value)
          old[#old + 1], old[#old + 2] = fields[i], value
        end
        local r = parse(b, string.sub(fields[i], 3), value)
        members[#members + 1] = format('%d', r.left > 0 and r.expires or -r.expires)
        members[#members + 1] = r.member
        b.holds, b.held = b.holds + 1, b.held + r.left
        b.charges, b.extra = b.charges + (r.flags % 4 > 1 and 1 or 0), b.extra + r.extra
      end
    end
    b.holds, b.held = math.max(b.holds, holds), math.max(b.held, held)
    b.live = b.held
    each('HSET', b.state, old)
    call('HDEL', b.state, 'c') -- in which an earlier version counted
    call('DEL', b.index)
    if b.holds > 0 then
      call('ZADD', b.index, '-inf', '-')
      each('ZADD', b.index, members)
      call('PEXPIREAT', b.index, format('%d', b.expire / 1000))
      L.soonest(b)
    end
    write(b)
  end

  -- soonest has b.next say when the first of those that are listed expires.
  function L.soonest(b)
    local first = call('ZRANGEBYSCORE', b.index, '(0', '+inf', 'WITHSCORES', 'LIMIT', '0', '1')[2]
    local empty = call('ZREVRANGEBYSCORE', b.index, '(0', '(-inf', 'WITHSCORES', 'LIMIT', '0', '1')[2]
    b.next = math.min(tonumber(first) or EXACT, empty and -empty or EXACT)
  end

  -- listed makes sure that as many reservations are listed by expiry as there are.
  function L.listed(b)
    if call('ZCOUNT', b.index, '(-inf', '+inf') ~= b.holds then
      local what = 'its state counts %.0f reservations, and other ones are listed by expiry'
      damaged(b.index, format(what, b.holds))
    end
  end

  -- hold (for a bucket with reservations) computes what they hold now, b.live, and lists those that
  -- have expired until they are deleted, b.lapsed; true if any of these has a +.
  local function hold(b, now)
    L.listed(b)
    now = format('%d', now)
    b.live, b.lapsed, b.due = b.held, call('ZRANGEBYSCORE', b.index, '-' .. now, now), nil
    local due = false
    for _, member in ipairs(b.lapsed) do
      b.live = b.live - units_of(b, member)
      due = due or byte(member, 8) == 43
    end
    if b.live < 0 then damaged(b.index, 'more units have lapsed than its state counts as held') end
    return due
  end

  -- read_due moves those of b.lapsed that have a + to b.due, in the order in which they become entries.
  local function read_due(b)
    local due, plain, listed = {}, {}, {}
    for _, member in ipairs(b.lapsed) do
      listed[member] = true
      if byte(member, 8) == 43 then due[#due + 1] = string.sub(member, 9) else plain[#plain + 1] = member end
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
        local r = parse(b, id, values[j] or '')
        if not listed[r.member] then damaged(b.state, ' is not listed by its expiry', fields[j]) end
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

  -- convert writes the entries of those that have expired, each stamped when it did, but after every
  -- entry that there is.
  local function convert(b, now)
    local entries, stones, index, members, fields, others = {}, {}, {}, {}, {}, {}
    read_due(b)
    for _, r in ipairs(b.due) do
      if r.flags % 4 < 2 or r.left == 0 then
        others[#others + 1] = r
      else
        members[#members + 1], fields[#fields + 1] = r.member, 'r:' .. r.id
        uncount(b, r)
        local at, units = math.max(r.expires, b.newest + 1), r.left + r.extra -- the most it can have taken
        b.newest, b.total = at, b.total + units
        local mark, run = match(r.tail, '^([^:]*):([^:]*):')
        if not mark then damaged(b.state, ' cannot be read', 'r:' .. r.id) end
        if run ~= '' then mark = mark .. ':' .. run end
        entries[#entries + 1] = format('%d', at)
        entries[#entries + 1] = format('%d:%d:%s:%s', b.total, units, match(r.id, '[^.]*$'), mark)
        if r.stone then
          b.holds = b.holds + 1
          stones[#stones + 1] = 'r:' .. r.id .. r.stone
          stones[#stones + 1] = struct.pack(RECORD, 0, at + b.keep, 0, 0, at, 0, 0) .. '::'
          index[#index + 1] = format('-%d', at + b.keep)
          index[#index + 1] = string.rep('\0', 7) .. ':' .. r.id .. r.stone
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
    save(b, now, 0)
  end

  -- lapse finds what is held in buckets and the time at which to decide: not before stamp, and after
  -- every entry. Reservations that expired by then have become entries. One that was read with the
  -- buckets is read again.
  function L.lapse(buckets, stamp, id)
    repeat
      local n = stamp
      for _, b in ipairs(buckets) do
        if b.holds > 0 and hold(b, n) then convert(b, n) end
        if b.newest >= stamp then stamp = b.newest + 1 end
      end
    until stamp == n
    for _, b in ipairs(buckets) do
      if id then b.field = call('HGET', b.state, 'r:' .. id) end
    end
    return stamp
  end

  -- counted is the number of reservations that become entries, and the units by which the estimates
  -- may be too low, without those that have expired.
  function L.counted(b)
    if b.holds == 0 then return 0, 0 end
    local charges, extra = b.charges, b.extra
    for _, r in ipairs(b.due or {}) do charges, extra = charges - (r.flags % 4 > 1 and 1 or 0), extra - r.extra end
    return charges, extra
  end

  -- frees makes a function that says when the units of a hold come free that nobody settles. If some
  -- become entries, all are taken to, and the time is one that is surely late enough.
  function L.frees(b, window, from, ends, level)
    if window == 0 and not level or L.counted(b) == 0 then return function(expires) return expires end end
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
  function L.lapsing(b, now, at, need, frees)
    L.listed(b)
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
  function L.forget(b, except)
    local members, fields = {}, {}
    for i = 1, math.min(1000, #b.lapsed) do
      local id = string.sub(b.lapsed[i], 9)
      if id ~= except then
        members[#members + 1], fields[#fields + 1] = b.lapsed[i], 'r:' .. id
        b.holds, b.held = b.holds - 1, b.held - units_of(b, b.lapsed[i])
      end
    end
    for i = 1, math.min(1000, b.due and #b.due or 0) do
      local r = b.due[i]
      if r.id ~= except then
        members[#members + 1], fields[#fields + 1] = r.member, 'r:' .. r.id
        uncount(b, r)
      end
    end
    if #members > 0 then
      call('ZREM', b.index, unpack(members))
      call('HDEL', b.state, unpack(fields))
    end
    b.lapsed, b.due = nil, nil
  end

  -- became is the entry that a reservation became, its stamp, and the id of what was left behind: of the
  -- first of those that are still there.
  function L.became(b, id)
    local field = 'r:' .. id .. '~'
    local first, own, stone
    for n, value in ipairs(call('HMGET', b.state, field, field .. '~', field .. '~~')) do
      local at = value and #value > 42 and unpacked('>I7', value, 29)
      if at and (not first or at < first) then
        local found = call('ZRANGEBYSCORE', b.log, format('%d', at), format('%d', at))[1]
        local same = found and match(found, '^%d+:%d+:([^:]*)') == match(id, '[^.]*$') -- not one that was added since
        if same then first, own, stone = at, found, id .. string.rep('~', n) end
      end
    end
    return own, first, stone
  end

  -- unlisted ends the script if a reservation is not listed by its expiry as it is.
  function L.unlisted(b, r) damaged(b.state, ' is not listed by its expiry', 'r:' .. r.id) end

  -- found makes sure of that.
  function L.found(b, r)
    local score = tonumber(call('ZSCORE', b.index, r.member))
    if score ~= r.expires and score ~= -r.expires then L.unlisted(b, r) end
  end

  -- put writes what is left of a reservation, and when it expires.
  function L.put(b, r)
    local was = r.member
    r.member = struct.pack('>I7', r.left) .. string.sub(was, 8)
    call('ZADD', b.index, format('%d', r.left > 0 and r.expires or -r.expires), r.member)
    local record = struct.pack(RECORD, r.left, r.expires, r.drawn, r.units, r.made, r.most, r.flags)
    also(b, 'r:' .. r.id, record .. r.tail)
    if was ~= r.member then call('ZREM', b.index, was) end
  end

  -- draw takes units out of a reservation, or puts those that are negative back.
  function L.draw(b, r, units)
    r.left, r.drawn, b.held = r.left - units, r.drawn + units, b.held - units
    L.put(b, r)
  end

  made = L
  return L
end
