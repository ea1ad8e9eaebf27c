-- charge.lua: one atomic step that decides and records a charge, a draw or a reservation, over every bucket and limit.
--
-- KEYS   1 labels of the credential  2 answer to the idempotency key (1 again without one)  then for each bucket: state, log, holds
-- ARGV   1 N: keep µs, number of the bucket drawn on (0 = none), µs to reserve for (0 = charge, -1 = decide on a charge and
--          write nothing), ms for which the answer to the key is kept, then for each bucket: units, number of limits, and the limits (bucket.lua)
--        2 id  3 code of the labels  4 their line  5 run  6 fingerprint of the call ('' without a key)
--        7 reservation drawn on, or <manual 0|1>:<note> to reserve
--        8 names of the buckets, in order, to be kept with an answer
--        9… in observe mode only: what can deny, escaped for a label: the suspension, then each limit
-- Reply  {status, clock, stamp, what denies (0 nothing, -1 the suspension, else the limit's number over all buckets),
--        retry at (when allowed: 0, or -1 if the labels' code is not kept), for each bucket: remaining, of a reservation: when it
--        expires}, times in µs; status 1 allowed, 0 denied, 2 observed: recorded although it would have been denied
--        {3, the answer kept under the key, as text: id, what denies or -, buckets, the reply}
--        {-1, clock}: a calendar limit is not of this time, ask again  {-2}: the key was used for another call
--        {-3}: no such reservation  {-4, left}: it holds fewer units   {-5, limit}: the cost is above the limit, never
-- A denial writes nothing. The first write is one that a server short of memory refuses, so it refuses all or none.

local id, fingerprint, observe = ARGV[2], ARGV[6], ARGV[9]
local keep, draws, ttl = N[1], N[2], N[3]

if fingerprint ~= '' then
  local answer = call('GET', KEYS[2])
  if answer then
    local asked, kept = match(answer, '^([^\n]*)\n(.*)$')
    if asked and asked ~= fingerprint then return {-2} end
    return {3, kept or ''} -- a damaged one says nothing
  end
end

local now = clock()
local stamp, buckets = now, {}
for k = 3, #KEYS, 3 do
  local b = open(KEYS[k], KEYS[k + 1], KEYS[k + 2])
  buckets[#buckets + 1] = b
  if b.newest >= stamp then stamp = b.newest + 1 end
end

local R = ttl > 0 and reservations()
local left, expires, drawn, rest -- of the reservation drawn on
if draws > 0 then
  R = reservations()
  left, expires, drawn, rest = R.reserved(buckets[draws], ARGV[7])
  if not left or expires <= stamp then return {-3} end
end

-- Decide.
local i, nth, retry, denying, pace, never = 5, 0, 0, 0, 0, 0
for n, b in ipairs(buckets) do
  local units, last, draw = N[i], i + 1 + 5 * N[i + 1], n == draws
  i = i + 2
  if b.holds > 0 then
    R = R or reservations()
    R.hold(b, stamp)
  end
  if draw and units > left then return {-4, left} end
  if b.suspended > stamp and b.suspended > retry then retry, denying = b.suspended, -1 end
  local room, held = NEVER, draw and 0 or b.live
  while i <= last do
    nth = nth + 1
    local window, from, ends, cap = N[i], N[i + 1], N[i + 2], N[i + 3]
    if window > 0 then
      from = stamp - window + 1
    elseif stamp < from or stamp >= ends or window < 0 and stamp < N[i + 4] then
      return {-1, stamp}
    end
    local before = base(b, from)
    local used = b.total - before
    if cap - used < room then room = cap - used end
    if draw then cap = N[i + 4] end
    if units > cap and window >= 0 and never == 0 and not observe then never = nth end
    if used + held + units > cap and window < 0 then
      pace = nth -- named only if nothing else denies; the caller knows when the line is there
    elseif used + held + units > cap then
      local at = fits(b, window, from, ends, before, units, cap, held, stamp)
      if at > retry then retry, denying = at, nth end
    end
    i = i + 5
  end
  if b.total + units > EXACT then return {err = 'QUOTATOTAL ' .. b.log} end
  b.units, b.room = units, b.suspended > stamp and 0 or room - b.live
end

if never > 0 then return {-5, never} end
if denying == 0 and pace > 0 then retry, denying = NEVER, pace end

local reply = {denying == 0 and 1 or observe and 2 or 0, now, stamp, denying, retry}
if reply[1] == 0 or ttl < 0 then
  if reply[1] == 1 then reply[5] = -1 end
  for n, b in ipairs(buckets) do
    local charged = reply[1] > 0 and n ~= draws and b.units or 0
    reply[n + 5] = math.max(0, b.room - charged)
  end
  return reply
end

-- Record.
local tail
if ttl == 0 then
  local mark
  if denying == 0 then
    mark = intern(KEYS[1], ARGV[3], ARGV[4])
    if mark ~= ARGV[3] then reply[5] = -1 end
  else -- observed: what would have denied is written out in the entry
    mark = '=' .. ARGV[4] .. (ARGV[4] == '' and '' or '&') .. 'denied=' .. ARGV[9 + math.max(0, denying)]
  end
  tail = id .. ':' .. mark .. (ARGV[5] == '' and '' or ':' .. ARGV[5])
end

for n, b in ipairs(buckets) do
  local room = b.room - b.units
  if ttl > 0 then
    b.hold_until = stamp + ttl
    local was, old = R.reserved(b, id)
    if old and old > stamp then return {-2} end
    R.put(b, id, was, b.units, b.hold_until, format('0:%d:%d:%s', b.units, stamp, ARGV[7]))
    R.forget(b, id)
    b.newest = math.max(b.newest, stamp - 1) -- nothing is decided at an earlier time from now on
    reply[7] = b.hold_until
  else
    append(b, stamp, b.units, tail, keep)
    if n == draws then
      R.put(b, ARGV[7], left, left - b.units, expires, format('%d:%s', drawn + b.units, rest))
      room = b.room -- what was set aside had been counted
    end
  end
  reply[n + 5] = math.max(0, room)
  save(b, now, keep, KEYS[1])
end
if fingerprint ~= '' then
  local kept = {id, denying == 0 and '-' or ARGV[9 + math.max(0, denying)], ARGV[8]}
  for n, value in ipairs(reply) do kept[n + 3] = format('%d', value) end
  call('SET', KEYS[2], fingerprint .. '\n' .. table.concat(kept, ' '), 'PX', format('%d', N[4]))
end
return reply
