-- adjust.lua: corrects what was used in a span of the log. It adds an entry at the end of the span, or
-- takes units off the newest entries in it, as if they had never been more, and keeps a note of that.
-- The entries after it are written again with other totals. A log that becomes empty restarts at 0.
--
-- KEYS   1 labels  2 the answer to its idempotency key (1 again without one)  3 state  4 log  5 holds
--        6 sums  7 takings
-- ARGV   1 keep µs, units (negative: to take off), the span: after, until (µs), units that it must
--          hold (-1 = any), most entries to rewrite, 1 to write nothing, ms to keep the answer
--        2 id  3 code of the labels  4 their line  5 run  6 fingerprint of the call
-- takings  sorted set: score = when it was made, member = <units>:<units>:<id>:<labels>[:<run>]
-- Reply  {1, clock, stamp of the entry; of a taking, when it was made}
--        {3, the answer given before, as text: id or -, -, the bucket, the reply}
--        {-2}: the key was used for another call  {-6}: too many entries came after the span
--        {-7, units in the span}: other units than it must hold, or fewer than are to be taken off

local id, code, line, run, fingerprint = ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local keep, units, after, till, was, most, dry, keep_answer = unpacked('<dddddddd', ARGV[1])

if KEYS[2] ~= KEYS[1] then
  local answer = call('GET', KEYS[2])
  if answer then
    local asked, kept = match(answer, '^([^\n]*)\n(.*)$')
    if asked and asked ~= fingerprint then return {-2} end
    return {3, kept or ''} -- empty if it is damaged
  end
end

local now, stamp, buckets = look(3, #KEYS)
local b, sums = buckets[1], KEYS[6]
till = math.min(till, stamp)
local holds = after < till and base(b, till + 1, stamp) - base(b, after + 1, stamp) or 0
if was >= 0 and was ~= holds or holds < -units then return {-7, holds} end

local old, new = {}, {}           -- members to remove, scores and members to add
local grains, summed = {}, 0      -- what changes in the sums
local g, upto, total = call('HGET', b.state, 'g'), 0, 0
if g and #g == 16 then upto, total = unpacked('<dd', g) end

-- summing has the sums of a stamp change, if the entry is in them.
local function summing(at, member, more, entries)
  if at > upto then return end
  local grain = math.floor(at / GRAIN)
  local marks, mark = grains[grain] or {}, mark(member)
  local sum = marks[mark] or {0, 0}
  grains[grain], marks[mark] = marks, {sum[1] + more, sum[2] + entries}
  summed = summed + more
end

-- raise writes the entries after a stamp again, with totals that are more; nil if they are too many.
local function raise(at, more)
  local from = format('(%d', at)
  if call('ZCOUNT', b.log, from, '+inf') > most then return nil end
  local later = call('ZRANGEBYSCORE', b.log, from, '+inf', 'WITHSCORES')
  for i = 1, #later, 2 do
    local sum = entry(b.log, later[i])
    if sum + more < 1 then damaged(b.log, 'the totals of its entries do not rise by their units') end
    old[#old + 1] = later[i]
    new[#new + 1], new[#new + 2] = later[i + 1], with(later[i], sum + more)
  end
  return true
end

-- free is the newest stamp up to the end of the span that no entry has; nil if there is none.
local function free()
  local at = till
  for _ = 1, most do
    if at <= after then return nil end
    if call('ZCOUNT', b.log, format('%d', at), format('%d', at)) == 0 then return at end
    at = at - 1
  end
end

-- take reads the newest entries of the span and lowers them; nil if too many must be written again.
local function take()
  local rest, rank = -units, 0
  local from, to = format('(%d', after), format('%d', till)
  if after < 0 then from = '-inf' end
  while rest > 0 do
    local some = call('ZREVRANGEBYSCORE', b.log, to, from, 'WITHSCORES', 'LIMIT', rank, '500')
    if #some == 0 then damaged(b.log, 'the totals of its entries do not rise by their units') end
    for i = 1, #some, 2 do
      local sum, of = entry(b.log, some[i])
      local at, less = time_of(b.log, some[i + 1]), math.min(of, rest)
      old[#old + 1] = some[i]
      if less < of then
        new[#new + 1], new[#new + 2] = some[i + 1], with(some[i], sum - less, of - less)
      end
      summing(at, some[i], -less, less == of and -1 or 0)
      rest = rest - less
      if rest == 0 then break end
    end
    rank = rank + 500
    if #old > most then return nil end
  end
  return #old <= most
end

local at = stamp
if units > 0 then
  if b.total + units > EXACT then return {err = 'QUOTATOTAL ' .. b.log} end
  at = till == stamp and stamp or free()
  if not at or not raise(at, units) then return {-6} end
elseif not (raise(till, units) and take()) then
  return {-6}
end
if dry == 1 then return {1, now, at} end

-- Write.
local first = call('ZCARD', b.log) == 0
local tail = id .. ':' .. intern(code, line) .. (run == '' and '' or ':' .. run)
if units > 0 then
  local later = old[1] and entry(b.log, old[1]) - select(2, entry(b.log, old[1])) or b.total
  local member = format('%d:%d:', later + units, units) .. tail
  new[#new + 1], new[#new + 2] = format('%d', at), member
  summing(at, member, units, 1)
  b.newest, b.oldest = math.max(b.newest, at), math.min(b.oldest, at)
end
b.total = b.total + units
if #new == 0 and #old == call('ZCARD', b.log) then b.total = 0 end
b.fresh = b.fresh or first or b.total == 0
if g and upto > 0 then also(b, 'g', struct.pack('<dd', upto, total + summed)) end
also(b, 'l', '') -- who needs the levels next reads the log
b.known = ''
save(b, now, keep) -- a server out of memory refuses here, or above, before any change
for _, member in ipairs(old) do call('ZREM', b.log, member) end
for i = 1, #new, 2 do call('ZADD', b.log, new[i], new[i + 1]) end
call('PEXPIREAT', b.log, format('%d', b.expire / 1000)) -- a set that was empty for a moment has lost its expiry
for grain, marks in pairs(grains) do
  local lines = {format('-%s:%d', id, grain)}
  for of, sum in pairs(marks) do lines[#lines + 1] = format('%s:%d:%d', of, sum[1], sum[2]) end
  call('ZADD', sums, grain, table.concat(lines, '\n'))
  call('PEXPIREAT', sums, format('%d', (b.expire + b.keep) / 1000))
end
if units < 0 then
  call('ZADD', KEYS[7], format('%d', stamp), format('%d:%d:', -units, -units) .. tail)
  local gone = call('ZCOUNT', KEYS[7], '-inf', format('%d', stamp - b.keep))
  if gone > 0 then call('ZREMRANGEBYRANK', KEYS[7], '0', gone - 1) end
  call('PEXPIREAT', KEYS[7], format('%d', b.expire / 1000))
end
if KEYS[2] ~= KEYS[1] then
  local bucket = match(b.state, '([^:]*):state$')
  local kept = format('%s - %s 1 %d %d', units > 0 and id or '-', bucket, now, at)
  call('SET', KEYS[2], fingerprint .. '\n' .. kept, 'PX', format('%d', keep_answer))
end
return {1, now, at}
