-- holds.lua: reads and writes reservations. It follows bucket.lua. Making a function takes time, so
-- these are made on demand: local parse, drop, uncount = reservations(). What is needed less often is in
-- lapses.lua.
--
-- state  r:<id> = six numbers of seven bytes, big-endian: units left, when it expires (µs), units drawn,
--        units, when it was made (µs), the most that it can turn out to be; a byte of flags: the sum of 1
--        made by a person, 2 becomes an entry when it expires, 4 an estimate; and then
--        <labels>:<run>:<note>, the first two of them for the entry that it may become
--        r:<id>~ = the same of one that became the entry with the stamp at which this was made, and of
--        no units, which a late settlement looks for, until the entry may be deleted; ~~ and ~~~ of
--        others with that id
--        The id of a reservation of several buckets is whole, with their names.
-- holds  sorted set, one member per reservation: units left in seven bytes, big-endian, then :<id>, or
--        +<id> where flags is above 1; score = <expires µs>, negative when nothing is left, so that a
--        search for units skips it

local RECORD = '>I7I7I7I7I7I7B'

local function reservations()

  -- parse reads the field of a reservation of the bucket; member is that by which it is listed, extra
  -- by how many units it may be too low.
  local function parse(b, id, value)
    if #value > 42 then
      local left, expires, drawn, units, made, most, flags = unpacked(RECORD, value)
      if left <= EXACT and expires <= EXACT and drawn <= EXACT and units <= most and made <= EXACT and
          most <= EXACT and flags < 8 then
        return {
          id = id, left = left, expires = expires, drawn = drawn, units = units, made = made, most = most,
          flags = flags, extra = most - units, tail = string.sub(value, 44),
          member = string.sub(value, 1, 7) .. (flags > 1 and '+' or ':') .. id,
        }
      end
    end
    damaged(b.state, ' cannot be read', 'r:' .. id)
  end

  -- uncount takes a reservation out of what the state counts.
  local function uncount(b, r)
    b.holds, b.held = b.holds - 1, b.held - r.left
    if r.flags % 4 > 1 then b.charges = math.max(0, b.charges - 1) end
    if r.extra > 0 then b.extra = math.max(0, b.extra - r.extra) end
  end

  -- drop deletes a reservation that is not listed any more.
  local function drop(b, r)
    call('HDEL', b.state, 'r:' .. r.id)
    uncount(b, r)
  end

  return parse, drop, uncount
end
