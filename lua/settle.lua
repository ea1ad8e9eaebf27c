-- settle.lua: ends a reservation, or a group of them: in each bucket it writes an entry of the units
-- used, and gives the rest back. No limit is checked: what was used beyond the reservation has been
-- billed, too. Of one that became an entry when it expired, that entry is lowered to what was used.
--
-- KEYS   1 labels  then for each bucket: state, log, holds, sums
--        then for each call: the answer to an earlier settlement of its reservation
-- ARGV   1 number of calls, of buckets, then for each call: keep µs, the sum of 1 to refuse more than is
--          left and 2 to keep no answer, most entries to rewrite, 1 if text 2 is packed, then for each
--          bucket: units (-1 = all that is left), number of limits, the limits (bucket.lua), to compute
--          what remains
--        then for each call equally many, the empty ones at the end of all left out:
--        1 reservation (holds.lua)  2 <entry id>:<code of the labels>[:<run>], or packed: the 14 letters
--          of the entry id, then what follows the numbers in its member (entry.lua)  3 the line of the
--          labels, if it is to be stored
-- Reply  of plain_settle.lua: one text, with the doubles of each call, as follows; {} of several calls, of
--        which none was settled: ask each alone; else
--        {1, clock, stamp, for each bucket: units, remaining (2^62 without a limit), then 1 if entries
--        of this id were written, 2 if there are only those that it became, else 0, and 1 if the code
--        of the labels was stored}
--        {3, the answer given before, as it is kept: the reply as doubles and the entry id; or as text,
--        entry id, -, -, the reply, if other units were booked than were asked for}
--        {-1, clock}: ask again  {-2}: was settled with other units  {-3}: no such reservation
--        {-4, left, number of the bucket}: it has fewer units  {-6}: too many entries came after those
--        that it became

local numbers, name, line = ARGV[1], ARGV[2], ARGV[4] or ''
local _, _, keep, how, most, packed, pos = unpacked('<dddddd', numbers)
local id, code, run = string.sub(ARGV[3], 1, 14), nil, nil
if packed == 0 then id, code, run = match(ARGV[3], '^([^:]*):([^:]*)(.*)$') end

local now, stamp, buckets = look(2, 4, name, #KEYS - 4)
local parse, drop = reservations()
local W, rewriting, rewrite

-- Read what was asked, and what was set aside.
local work, asked, found = {}, '', false
for n = 1, #buckets do
  local b = buckets[n]
  local units, limits
  units, limits, pos = unpacked('<dd', numbers, pos)
  asked = asked .. format(n > 1 and ',%d' or '%d', units)
  local r = b.field and parse(b, name, b.field) or nil
  if r and r.expires <= stamp then r = nil end
  found = found or r
  work[n] = { -- all its fields at once: growing the table later is slow
    b = b, units = units, limits = limits, pos = pos, hold = r, set = r and r.left or 0, books = 0, inside = 0,
    outside = 0, ok = r, own = nil, at = nil, lowers = nil, stone = nil,
  }
  pos = pos + 40 * limits
end
local answer = not found and call('GET', KEYS[#KEYS])
if answer and byte(answer) == 0 then
  if #answer <= 40 + 16 * #work then return {3, ''} end -- damaged
  for n = 1, #work do
    if unpacked('<d', answer, 9 + 16 * n) ~= work[n].units then return {-2} end
  end
  return {3, answer}
elseif answer then
  local was, kept = match(answer, '^(%S+)\n(.*)$')
  if was and was ~= asked then return {-2} end
  return {3, kept or ''} -- empty if it is damaged
end
for n = 1, #work do
  local w = work[n]
  if not w.hold then
    w.own, w.at, w.stone = lapses().became(w.b, name)
    if w.own then w.set = select(2, entry(w.b.log, w.own)) end
    w.ok = w.own
    found = found or w.ok
  end
  if w.units < 0 or not w.ok then w.units = w.set end
end
if not found then return {-3} end

-- room is what remains before units are booked now, and outside of it where these do not count.
local function room(w)
  local b, at = w.b, w.pos
  local inside, outside = NEVER, NEVER
  for _ = 1, w.limits do
    local window, from, ends, cap, of, before, _
    window, from, ends, cap, of, at = unpacked('<ddddd', numbers, at)
    local concurrent, first, last = window == 0 and from == 0, from, ends
    if window > 0 and from == 0 then
      from = stamp - window + 1
      before = base(b, from, stamp)
    else
      W = W or windows()
      from, ends, before = W.look(b, window, from, ends, stamp)
      if not from or window == -1 and stamp < of then return nil end
    end
    local others = window ~= 0 and others_in(b, window, first, last, from)
    local spare = cap - b.total + before - (others and others[5] or 0)
    if concurrent or from > stamp then
      if spare < outside then outside = spare end
    elseif spare < inside then
      inside = spare
    end
  end
  return inside, outside
end

for n = 1, #work do
  local w = work[n]
  if how % 2 == 1 and w.ok and w.units > w.set then return {-4, w.set, n} end
  w.books = w.hold and w.units or math.max(0, w.units - w.set)
  if w.b.total + w.books > EXACT then return {err = 'QUOTATOTAL ' .. w.b.log} end
  w.inside, w.outside = room(w)
  if not w.inside then return {-1, stamp} end
  if w.own and w.units < w.set then
    if not rewriting then rewriting, rewrite = lowering() end
    w.lowers = rewriting(w.b, KEYS[4 * n + 1], w.at, w.own, w.units, most)
    if not w.lowers then return {-6} end
  end
end

-- Write.
for n = 2, #work do -- before any of them is changed
  local b, r = work[n].b, work[n].hold
  if r and not call('ZSCORE', b.index, r.member) then lapses().unlisted(b, r) end
end
for n = 1, #work do
  local b, r = work[n].b, work[n].hold
  if r and call('ZREM', b.index, r.member) == 0 then lapses().unlisted(b, r) end
end
local at = format('%d', stamp)
local reply, which, stored = {1, now, stamp, 0, 0, 0, 0}, 0, 0 -- as long as it is for one bucket
local longest, tail, as_asked = keep, nil, ''
for n = 1, #work do
  local w = work[n]
  local b = w.b
  if w.lowers then
    rewrite(w.lowers, now)
    b.levels = nil
    w.inside, w.outside = room(w)
  end
  if w.own and w.units > 0 and which == 0 then which = 2 end
  if w.books > 0 then
    if not tail then
      local mark = intern(code, line)
      stored = mark == code and 1 or 0
      tail = packed == 1 and string.sub(ARGV[3], 15) or id .. ':' .. mark .. run
    end
    which = 1
    append(b, stamp, w.books, tail, keep, at, packed == 1)
  end
  if w.hold then drop(b, w.hold) end
  if w.stone and how > 1 then
    local member, lapsed = string.rep('\0', 7) .. ':' .. w.stone, b.lapsed or {}
    if call('ZREM', b.index, member) == 1 then b.holds = b.holds - 1 end
    call('HDEL', b.state, 'r:' .. w.stone)
    for i = #lapsed, 1, -1 do -- where it would be taken off once more
      if lapsed[i] == member then table.remove(lapsed, i) end
    end
  end
  save(b, now, keep)
  local left = w.inside - w.books
  if w.outside < left then left = w.outside end
  left = left - b.live + (w.hold and w.hold.left or 0)
  if left < 0 then left = 0 end
  if w.limits == 0 then left = NEVER end
  reply[2 * n + 2], reply[2 * n + 3] = w.units, left
  as_asked = as_asked .. format(n > 1 and ',%d' or '%d', w.units)
  if b.keep > longest then longest = b.keep end
end
local n = #work
reply[2 * n + 4], reply[2 * n + 5] = which, stored
if how > 1 then return reply end
local kept = struct.pack('<' .. string.rep('d', 2 * n + 5), unpack(reply)) .. id
if as_asked ~= asked then
  kept = asked .. '\n' .. id .. ' - -'
  for _, number in ipairs(reply) do kept = kept .. format(' %d', number) end
end
call('SET', KEYS[#KEYS], kept, 'PX', format('%d', longest / 1000))
return reply
