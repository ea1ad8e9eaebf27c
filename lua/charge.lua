-- charge.lua: decides and records a charge, a draw or a reservation over all buckets and limits, in
-- one atomic step.
--
-- KEYS   1 labels of the credential  then for each bucket: state, log, holds
--        last, with an idempotency key: the answer to it
-- ARGV   1 keep µs, number of the bucket drawn on (0 = none), µs to reserve for (0 = charge,
--          -1 = decide on a charge and write nothing), ms to keep the answer to the key for,
--          then for each bucket: units, number of limits, to reserve also flags and most
--          (holds.lua), the limits (bucket.lua)
--        2 id; of a reservation as holds.lua has it  3 code of the labels  4 run  5 line of the labels,
--          if it is to be stored; of a reservation they are for the entry that it may become
--        6 reservation drawn on, or the note of the one that is made
--        7 fingerprint of the call  8 names of the buckets, in order, to be kept with the answer
--        9… where anything is only observed: what can deny, escaped for a label: the suspension (empty
--        unless all is observed), each limit. A limit that is observed by itself has units below 0:
--        -1 - units
--        Empty ones at the end are left out.
-- Reply  {status, clock, stamp, what denies (0 nothing, -1 the suspension, else the number of the
--        limit, counted over all buckets), retry at (when allowed: 0, or -1 if the code of the labels
--        was not stored), for each bucket: remaining (above 2^53 without a limit), for a reservation: when it
--        expires}, times in µs; status 1 allowed, 0 denied, 2 observed: recorded although it would have been denied
--        {3, the answer kept for the key, as text: id, what denies or -, buckets, the reply}
--        {-1, clock}: a calendar limit has the wrong day, ask again
--        {-2}: the key was used for another call  {-3}: no such reservation
--        {-4, left}: it has fewer units  {-5, limit}: the cost is above the limit, so never
-- A denial writes nothing but what has lapsed (holds.lua). The first write is one that a server out of memory refuses, so either all
-- is written or nothing.

local numbers, id, code, run, line = ARGV[1], ARGV[2], ARGV[3] or '', ARGV[4] or '', ARGV[5] or ''
local fingerprint, observe = ARGV[7] or '', (ARGV[9] or '') ~= ''
local keep, draws, ttl, keep_answer, pos = unpacked('<dddd', numbers)

if fingerprint ~= '' then
  local answer = call('GET', KEYS[#KEYS])
  if answer then
    local asked, kept = match(answer, '^([^\n]*)\n(.*)$')
    if asked and asked ~= fingerprint then return {-2} end
    return {3, kept or ''} -- empty if it is damaged
  end
end

local now, stamp, buckets, at = look(2, 3, ttl > 0 and id or draws > 0 and ARGV[6])
local parse, count, drop, drawn, W -- drawn: the reservation drawn on
if ttl > 0 or draws > 0 then parse, count, drop = reservations() end
if draws > 0 then
  local b = buckets[draws]
  drawn = b.read[2] and parse(b, ARGV[6], b.read[2])
  if not drawn or drawn.expires <= stamp then return {-3} end
  lapses().found(b, drawn)
end

-- Decide.
local nth, retry, denying, pace, never, outside_later = 0, 0, 0, 0, 0, false
local would -- what limits that are observed by themselves say
local reply = {1, now, stamp, 0, 0, 0, ttl > 0 and 0 or nil} -- of status 1, as long as it is for one bucket
local asked = ttl > 0 and {} -- flags and most of each bucket
for n = 1, #buckets do
  local b = buckets[n]
  local draw, units, limits = n == draws
  units, limits, pos = unpacked('<dd', numbers, pos)
  if ttl > 0 then asked[2 * n - 1], asked[2 * n], pos = unpacked('<dd', numbers, pos) end
  if draw and units > drawn.left then return {-4, drawn.left} end
  if b.suspended > stamp and b.suspended > retry then retry, denying = b.suspended, -1 end
  local room, held, hard = NEVER, draw and 0 or b.live, 0
  for _ = 1, limits do
    nth = nth + 1
    local window, from, ends, cap, of
    window, from, ends, cap, of, pos = unpacked('<ddddd', numbers, pos)
    local watched = of < 0
    if watched then of = -1 - of else hard = hard + 1 end
    local before, level
    if window > 0 and from == 0 then
      from = stamp - window + 1
      before = base(b, from)
    else
      W = W or windows()
      from, ends, before, level = W.look(b, window, from, ends, stamp)
      if not from or window == -1 and stamp < of then return {-1, stamp} end
    end
    local used = b.total - before
    if watched then -- it leaves room for anything
    elseif from > stamp then -- an anchored window, before which the clock was set back
      outside_later = true
      b.outside = math.min(b.outside or NEVER, cap - used - b.live)
    elseif cap - used < room then
      room = cap - used
    end
    if draw then cap = of end
    if units > cap and window ~= -1 and never == 0 and not observe and not watched then never = nth end
    if used + held + units > cap then
      if watched then would = would or {retry = 0, denying = 0, pace = 0} end
      if window == -1 then -- reported only if nothing else denies; the caller computes when it allows
        if watched then would.pace = nth else pace = nth end
      else
        local at = fits(b, window, from, ends, before, level, units, cap, held, stamp)
        if watched then
          if at > would.retry then would.retry, would.denying = at, nth end
        elseif at > retry then
          retry, denying = at, nth
        end
      end
    end
  end
  if b.total + units > EXACT then return {err = 'QUOTATOTAL ' .. b.log} end
  b.units, reply[n + 5] = units, hard > 0 and b.suspended > stamp and 0 or room - b.live
end

if never > 0 then return {-5, never} end
if denying == 0 and pace > 0 then retry, denying = NEVER, pace end
if denying == 0 and would then -- nothing denies, but what is observed would
  retry, denying, pace = would.retry, would.denying, would.pace
  if denying == 0 and pace > 0 then retry, denying = NEVER, pace end
  observe = denying > 0
end

-- outside is what remains beside a window that begins later: what is charged now is not in it.
local outside = outside_later and function(n, b, taken, draw)
  local units = taken and b.units or 0
  local inside = draw and reply[n + 5] or reply[n + 5] - units
  return math.max(0, math.min(inside, b.outside + (draw and units or ttl > 0 and -units or 0)))
end

if denying ~= 0 then reply[1], reply[4], reply[5] = observe and 2 or 0, denying, retry end
if reply[1] == 0 or ttl < 0 then
  if reply[1] == 1 then reply[5] = -1 end
  for n, b in ipairs(buckets) do
    local charged = reply[1] > 0 and n ~= draws and b.units or 0
    reply[n + 5] = b.outside and outside(n, b, reply[1] > 0, n == draws) or math.max(0, reply[n + 5] - charged)
  end
  return reply
end

-- Record.
for n = 1, ttl > 0 and #buckets or 0 do -- an expired one with this id gives way
  local b = buckets[n]
  local old = b.read[2] and parse(b, id, b.read[2])
  if old and old.expires > stamp then return {-2} end
  if old then
    if call('ZREM', b.index, old.member) == 0 then lapses().unlisted(b, old) end
    drop(b, old)
  end
end

local mark
if denying == 0 or ttl > 0 then
  mark = intern(code, line)
  if mark ~= code and denying == 0 then reply[5] = -1 end
else -- observed: the entry says what would have denied it
  mark = '=' .. line .. (line == '' and '' or '&') .. 'denied=' .. ARGV[9 + math.max(0, denying)]
end
local tail = id .. ':' .. mark .. (run == '' and '' or ':' .. run)
at = at or format('%d', stamp)

for n = 1, #buckets do
  local b = buckets[n]
  local draw, units, expires = n == draws, b.units, nil
  if ttl > 0 then
    expires = stamp + ttl
    local flags, most = asked[2 * n - 1], asked[2 * n]
    local left, by = format('%d', units), format('%d', expires)
    local field = left .. ':' .. by .. ':0:' .. left .. ':' .. at
    if flags > 1 then
      field = field .. format(':%d:%d:', flags, most) .. mark .. ':' .. run .. ':'
    else
      field = field .. (flags == 1 and ':1:' or ':0:')
    end
    call('ZADD', b.index, by, left .. (flags > 1 and '+' or ':') .. id)
    also(b, 'r:' .. id, field .. (ARGV[6] or ''))
    b.holds, b.held = b.holds + 1, b.held + units
    if b.holds == 1 then b.fresh = b.fresh or 'holds' end -- the sorted set is new
    if flags > 1 then count(b, flags % 4 > 1 and 1 or 0, most - units) end
    if b.lapsed then lapses().forget(b, id) end
    if b.newest < stamp - 1 then b.newest = stamp - 1 end -- later decisions are not made at an earlier time
    reply[#buckets + 6] = expires
  else
    append(b, stamp, units, tail, keep, at)
    if draw then lapses().draw(b, drawn, units) end
  end
  local room = draw and reply[n + 5] or reply[n + 5] - units -- the reservation was counted already
  reply[n + 5] = b.outside and outside(n, b, true, draw) or room > 0 and room or 0
  if b.levels then W.charged(b, ttl > 0 and 0 or units, stamp) end
  save(b, now, keep, expires)
end
if fingerprint ~= '' then
  local kept = {id, denying == 0 and '-' or ARGV[9 + math.max(0, denying)], ARGV[8]}
  for n, value in ipairs(reply) do kept[n + 3] = format('%d', value) end
  call('SET', KEYS[#KEYS], fingerprint .. '\n' .. table.concat(kept, ' '), 'PX', format('%d', keep_answer))
end
return reply
