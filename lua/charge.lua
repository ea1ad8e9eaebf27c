-- charge.lua: one atomic step that decides and records a charge, a draw or a reservation, over every bucket and limit.
--
-- KEYS   1 labels of the credential  2 answers to the idempotency key (1 again without one)  then for each bucket: state, log
-- ARGV   1 charge|reserve  2 id  3 label code  4 label line  5 run  6 observe: '' to enforce, else how many arguments at the very
--        end name what can deny, escaped for a label: the suspension, then each limit
--        7 fingerprint of the call ('' without a key)  8 keep µs  9 number of the bucket drawn on (0 = none)
--        10 reservation id drawn on, or ttl µs to reserve for  11 manual 0|1  12 note
--        then for each bucket: units, number of limits, and the limits (bucket.lua)
-- Reply  {status, clock, stamp, denying limit (0 = none, -1 = suspended, counted over all limits), retry at, remaining of each
--        bucket…, of a reservation: when it expires}, times in µs; status 1 allowed, 0 denied, 2 observed: recorded although denied
--        {3, the answer kept under the key, after the id: as text}    {-1, clock}: a calendar limit is not of this time, ask again
--        {-2}: key used for another call       {-3}: no such reservation      {-4, left}: it holds fewer units
--        {-5, limit}: cost above the limit, never
-- A denial writes nothing. The first write is one that a server short of memory refuses, so it refuses all or none.

local op, id, fingerprint, keep = ARGV[1], ARGV[2], ARGV[7], tonumber(ARGV[8])
local draws, observe = tonumber(ARGV[9]), ARGV[6] ~= ''

if fingerprint ~= '' then
  local answer = call('GET', KEYS[2])
  if answer then
    if answer:sub(1, #fingerprint + 1) ~= fingerprint .. '\n' then return {-2} end
    return {3, answer:sub(#fingerprint + 2)}
  end
end

local now = clock()
local stamp, buckets = now, {}
for k = 3, #KEYS, 2 do
  local b = open(KEYS[k], KEYS[k + 1])
  buckets[#buckets + 1] = b
  if b.newest >= stamp then stamp = b.newest + 1 end
end

local drawn -- {left, expires, the rest}
if draws > 0 then
  local r = call('HGET', buckets[draws].state, 'r:' .. ARGV[10])
  local left, expires, was, rest = match(r or '', '^(%d+):(%d+):(%d+):(.*)$')
  if not r or tonumber(expires) <= stamp then return {-3} end
  drawn = {left = tonumber(left), expires = expires, was = tonumber(was), rest = rest}
end

-- Decide.
local i, nth = 13, 0
local retry, denying = 0, 0
for n, b in ipairs(buckets) do
  b.units = tonumber(ARGV[i])
  local last = i + 1 + ARGV[i + 1] * LIMIT_ARGS
  i = i + 2
  held(b, stamp)
  local draw = n == draws
  if draw and b.units > drawn.left then return {-4, drawn.left} end
  b.room = NEVER
  if b.suspended > stamp and b.suspended > retry then retry, denying = b.suspended, -1 end
  while i <= last do
    nth = nth + 1
    local l = limit(i, stamp)
    if l.stale then return {-1, stamp} end
    if (draw and l.units or l.cap) < b.units and not observe then return {-5, nth} end
    l.base = base(b, l.from)
    l.used = b.total - l.base
    b.room = min(b.room, l.cap - l.used - b.held)
    local at
    if draw then
      at = fits(b, l, b.units, l.units, {}, 0, stamp)
    elseif l.used + b.held + b.units > l.cap then
      at = fits(b, l, b.units, l.cap, b.list, b.held, stamp)
    else
      at = stamp
    end
    if at > stamp and at > retry then retry, denying = at, nth end
    i = i + LIMIT_ARGS
  end
  if b.suspended > stamp then b.room = 0 end
end

local reply = {denying == 0 and 1 or observe and 2 or 0, now, stamp, denying, retry}
if reply[1] == 0 then
  for _, b in ipairs(buckets) do reply[#reply + 1] = max(0, b.room) end
  return reply
end

-- Record.
local tail
if op == 'charge' then
  local mark
  if denying ~= 0 then -- observed: what would have denied is written out in the entry
    mark = '=' .. ARGV[4] .. (ARGV[4] == '' and '' or '&') .. 'denied=' .. ARGV[#ARGV - ARGV[6] + 1 + max(0, denying)]
  else
    mark = intern(KEYS[1], ARGV[3], ARGV[4])
  end
  tail = id .. ':' .. mark .. (ARGV[5] ~= '' and ':' .. ARGV[5] or '')
end

local renew = false
for n, b in ipairs(buckets) do
  if op == 'reserve' then
    local expires = stamp + ARGV[10]
    b.hold_until = expires
    reply[#reply + 1] = max(0, b.room - b.units)
    local rest = '0:' .. int(b.units) .. ':' .. int(stamp) .. ':' .. ARGV[11] .. ':' .. ARGV[12]
    if call('HSETNX', b.state, 'r:' .. id, int(b.units) .. ':' .. int(expires) .. ':' .. rest) == 0 then return {-2} end
    for _, field in ipairs(b.lapsed) do call('HDEL', b.state, field) end
    renew = save(b, now, keep, 'holds', b.holds + 1 - #b.lapsed) or renew
    reply[#reply + 1] = expires
  else
    append(b, stamp, b.units, tail)
    if n == draws then
      call('HSET', b.state, 'r:' .. ARGV[10], int(drawn.left - b.units) .. ':' .. drawn.expires .. ':' ..
        int(drawn.was + b.units) .. ':' .. drawn.rest)
      reply[#reply + 1] = max(0, b.room)
    else
      reply[#reply + 1] = max(0, b.room - b.units)
    end
    renew = save(b, now, keep) or renew
    trim(b, stamp)
  end
end
if renew then call('PEXPIRE', KEYS[1], int(floor(buckets[1].keep * 3 / 1000))) end
if fingerprint ~= '' then
  local kept = {id}
  for n, value in ipairs(reply) do kept[n + 1] = int(value) end
  call('SET', KEYS[2], fingerprint .. '\n' .. table.concat(kept, ' '), 'PX', int(floor(buckets[1].keep / 1000)))
end
return reply
