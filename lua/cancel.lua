-- cancel.lua: removes a charge as if it had never been made. The entries after it are rewritten with
-- lower totals; they are few, since a charge is cancelled moments after it was made. A log that
-- becomes empty restarts at a total of 0.
--
-- KEYS   1 labels  2 the answer to its idempotency key (1 again without one)
--        then for each bucket: state, log, holds, sums
-- ARGV   1 stamp µs, has a key 0|1, number of the bucket drawn on (0 = none), most entries to rewrite
--        2 entry id  3 reservation drawn on
-- Reply  1, or 0: no such entry, or too many came after it; nothing was changed

local id, work = ARGV[2], {}
local stamp, has_key, draws, most = unpacked('<dddd', ARGV[1])
local from = format('%d', stamp)
for k = 3, #KEYS, 4 do
  local log = KEYS[k + 1]
  if call('ZCOUNT', log, '(' .. from, '+inf') > most then return 0 end
  local own = call('ZRANGEBYSCORE', log, from, from)[1]
  if not own or match(own, '^%d+:%d+:([^:]*)') ~= id then return 0 end
  local w = {own = own, bucket = open(KEYS[k], log, KEYS[k + 2]), sums = KEYS[k + 3], old = {own}, new = {}}
  local _, units = entry(log, own)
  w.mark = match(own, '^%d+:%d+:[^:]*:([^:]*)')
  local later = call('ZRANGEBYSCORE', log, '(' .. from, '+inf', 'WITHSCORES')
  for i = 1, #later, 2 do
    local total, rest = entry(log, later[i]), match(later[i], '^%d+(:.*)$')
    if total < units then damaged(log, 'the totals of its entries do not rise by their units') end
    w.old[#w.old + 1] = later[i]
    w.new[#w.new + 1] = {later[i + 1], format('%d', total - units) .. rest}
  end
  w.units, w.alone = units, #later == 0 and call('ZCARD', log) == 1
  work[#work + 1] = w
end

local left, expires, drawn, rest
local R = reservations()
if draws > 0 then left, expires, drawn, rest = R.reserved(work[draws].bucket, ARGV[3]) end

local now = clock()
for n, w in ipairs(work) do
  local b = w.bucket
  b.total = w.alone and 0 or b.total - w.units
  local g, upto, total = call('HGET', b.state, 'g'), 0, 0
  if g and #g == 16 then upto, total = unpacked('<dd', g) end
  if n == draws and left and drawn >= w.units then -- else it drew on an earlier reservation of this id
    R.put(b, ARGV[3], left, left + w.units, expires, format('%d:%s', drawn - w.units, rest))
  end
  save(b, now, 0, KEYS[1]) -- a server out of memory refuses here, or above, before any change
  for _, member in ipairs(w.old) do call('ZREM', b.log, member) end
  for _, z in ipairs(w.new) do call('ZADD', b.log, z[1], z[2]) end
  call('PEXPIREAT', b.log, format('%d', b.expire / 1000)) -- a set that was empty for a moment has lost its expiry
  if w.mark and stamp <= upto then
    call('ZADD', w.sums, math.floor(stamp / GRAIN), format('-%d\n%s:-%d:-1', stamp, w.mark, w.units))
    call('HSET', b.state, 'g', struct.pack('<dd', upto, total - w.units))
    call('PEXPIREAT', w.sums, format('%d', (b.expire + b.keep) / 1000))
  end
end
if has_key == 1 then call('DEL', KEYS[2]) end
return 1
