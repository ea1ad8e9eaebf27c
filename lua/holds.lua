-- holds.lua: reads and writes reservations. It follows bucket.lua. Making a function takes time, so
-- these are made on demand: local parse, count, drop = reservations(). What is needed less often is in
-- lapses.lua.
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

local function reservations()

  -- parse reads the field of a reservation of the bucket: units left, when it expires, units drawn, the
  -- rest of the field, the flags, by how many units the estimate may be too low, and the member by
  -- which it is listed.
  local function parse(b, id, value)
    local left, expires, drawn, rest, units, flags, most =
      match(value, '^(%d+):(%d+):(%d+):((%d+):%d+:(%d):(%d*).*)$')
    local r = left and { -- + 0 is faster than tonumber
      id = id, left = left + 0, expires = expires + 0, drawn = drawn + 0, rest = rest, flags = flags + 0, extra = 0,
      member = left .. ':' .. id,
    }
    if r and r.flags > 1 then
      r.extra, r.member = (tonumber(most) or FAR) - units, left .. '+' .. id
      if not string.find(rest, '^%d+:%d+:%d:%d+:[^:]*:[^:]*:') then r = nil end
    end
    if r and r.left <= EXACT and r.expires <= EXACT and r.drawn <= EXACT and r.extra <= EXACT then return r end
    damaged(b.state, ' cannot be read', 'r:' .. id)
  end

  -- count adds to the number of reservations that become entries, and to the units by which the
  -- estimates may be too low, and returns them; the next write of the state keeps them.
  local function count(b, charges, extra)
    local read = b.read
    if not read then
      read = {false, false, call('HGET', b.state, 'c')}
      b.read = read
    end
    local c, e = 0, 0
    if read[3] then
      c, e = match(read[3], '^(%d+):(%d+)$')
      c, e = c and c + 0 or FAR, e and e + 0
      if c > EXACT or e > EXACT then damaged(b.state, 'what it counts cannot be read') end
    end
    if charges ~= 0 or extra ~= 0 then
      c, e = c + charges, e + extra
      if e < 0 then e = 0 end
      read[3] = format('%d:%d', c, e)
      also(b, 'c', read[3])
    end
    return c, e
  end

  -- drop deletes a reservation that is not listed any more.
  local function drop(b, r)
    call('HDEL', b.state, 'r:' .. r.id)
    b.holds, b.held = b.holds - 1, b.held - r.left
    if r.flags > 1 then count(b, r.flags % 4 > 1 and -1 or 0, -r.extra) end
  end

  return parse, count, drop
end
