-- settle.lua: ends a reservation: in each bucket it writes an entry of the units used, and gives the
-- rest back. No limit is checked: what was used beyond the reservation has been billed, too. Of one
-- that became an entry when it expired, that entry is lowered to what was used.
--
-- KEYS   1 labels  2 the answer to an earlier settlement of this reservation
--        then for each bucket: state, log, holds, sums
-- ARGV   1 keep µs, 1 to refuse more than is left, most entries to rewrite, then for each bucket:
--          units (-1 = all that is left), number of limits, the limits (bucket.lua), to compute what
--          remains
--        2 entry id  3 code of the labels  4 their line, if it is to be stored  5 run
--        6 reservation (holds.lua)
-- Reply  {1, clock, stamp, for each bucket: units, remaining (above 2^53 without a limit), then 1 if entries of
--        this id were written, 2 if there are only those that it became, else 0, and 1 if the code of
--        the labels was stored}
--        {3, the answer given before, as text: entry id, -, -, the reply}
--        {-1, clock}: ask again  {-2}: was settled with other units  {-3}: no such reservation
--        {-4, left, number of the bucket}: it has fewer units  {-6}: too many entries came after those
--        that it became

local numbers, id, code, line, run, name = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local keep, within, most, pos = unpacked('<ddd', numbers)

local now = clock()
local stamp, buckets = now, {}
for k = 3, #KEYS, 4 do
  local b = open(KEYS[k], KEYS[k + 1], KEYS[k + 2])
  buckets[#buckets + 1] = b
  stamp = math.max(stamp, b.newest + 1)
end
local R, W = reservations(), nil
stamp = R.lapse(buckets, stamp, KEYS[1])

-- Read what was asked, and what was set aside.
local asked, work, found = {}, {}, false
for n, b in ipairs(buckets) do
  local w = {b = b, set = 0}
  w.units, w.limits, pos = unpacked('<dd', numbers, pos)
  asked[n], w.pos, pos = format('%d', w.units), pos, pos + 40 * w.limits
  work[n] = w
end
asked = table.concat(asked, ',')
for _, w in ipairs(work) do
  local r = R.reserved(w.b, name)
  if r and r.expires > stamp then w.hold, w.set, found = r, r.left, true end
end
local answer = not found and call('GET', KEYS[2])
if answer then
  local was, kept = match(answer, '^(%S+)\n(.*)$')
  if was and was ~= asked then return {-2} end
  return {3, kept or ''} -- empty if it is damaged
end
for _, w in ipairs(work) do
  local b = w.b
  if not w.hold then
    w.own, w.at = R.became(b, name)
    if w.own then w.set = select(2, entry(b.log, w.own)) end
  end
  w.ok = w.hold or w.own
  found = found or w.ok
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
    local concurrent = window == 0 and from == 0
    if window > 0 and from == 0 then
      from = stamp - window + 1
      before = base(b, from)
    else
      W = W or windows()
      from, ends, before = W.look(b, window, from, ends, stamp)
      if not from or window == -1 and stamp < of then return nil end
    end
    local spare = cap - b.total + before
    if concurrent or from > stamp then outside = math.min(outside, spare) else inside = math.min(inside, spare) end
  end
  return inside, outside
end

for n, w in ipairs(work) do
  if within == 1 and w.ok and w.units > w.set then return {-4, w.set, n} end
  w.books = w.hold and w.units or math.max(0, w.units - w.set)
  if w.b.total + w.books > EXACT then return {err = 'QUOTATOTAL ' .. w.b.log} end
  w.inside, w.outside = room(w)
  if not w.inside then return {-1, stamp} end
  if w.own and w.units < w.set then
    w.lowers = rewriting(w.b, KEYS[4 * n + 2], w.at, w.own, w.units, most)
    if not w.lowers then return {-6} end
  end
end

-- Write.
for _, w in ipairs(work) do
  if w.hold then R.unlist(w.b, w.hold) end
end
local reply, which, stored = {1, now, stamp}, 0, 0
local tail
for _, w in ipairs(work) do
  local b = w.b
  if w.lowers then
    rewrite(w.lowers, now, KEYS[1])
    b.levels = nil
    w.inside, w.outside = room(w)
  end
  if w.own and w.units > 0 and which == 0 then which = 2 end
  if w.books > 0 then
    if not tail then
      local mark = intern(KEYS[1], code, line)
      stored = mark == code and 1 or 0
      tail = id .. ':' .. mark .. (run == '' and '' or ':' .. run)
    end
    which = 1
    append(b, stamp, w.books, tail, keep)
  end
  if w.hold then R.drop(b, w.hold) end
  save(b, now, keep, KEYS[1])
  local held = b.live - (w.hold and w.hold.left or 0)
  local left = math.min(w.inside - w.books, w.outside) - held
  reply[#reply + 1] = w.units
  reply[#reply + 1] = math.max(0, left)
end
reply[#reply + 1], reply[#reply + 2] = which, stored

local kept, longest = {id, '-', '-'}, keep
for n, value in ipairs(reply) do kept[n + 3] = format('%d', value) end
for _, b in ipairs(buckets) do longest = math.max(longest, b.keep) end
call('SET', KEYS[2], asked .. '\n' .. table.concat(kept, ' '), 'PX', format('%d', longest / 1000))
return reply
