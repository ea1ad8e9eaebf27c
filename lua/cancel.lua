-- cancel.lua: takes back a charge as if it had never been made. The entries after it are written again with lower totals; a
-- charge is cancelled moments after it was made, so they are few.
--
-- KEYS   1 the answer to its idempotency key (any other key of the credential without one)  then for each bucket: state, log
-- ARGV   1 N: stamp µs, has a key 0|1, number of the bucket drawn on (0 = none), most entries to write again
--        2 entry id  3 reservation drawn on
-- Reply  1, or 0: no such entry, or too many came after it; nothing was changed

local id, field, draws = ARGV[2], 'r:' .. ARGV[3], N[3]
local at, work = format('%d', N[1]), {}
for k = 2, #KEYS, 2 do
  if call('ZCOUNT', KEYS[k + 1], at, '+inf') > N[4] then return 0 end
  local own = call('ZRANGEBYSCORE', KEYS[k + 1], at, at)[1]
  if not own or match(own, '^%d+:%d+:([^:]*)') ~= id then return 0 end
  work[#work + 1] = {own = own, bucket = open(KEYS[k], KEYS[k + 1])}
end

local now = clock()
for n, w in ipairs(work) do
  local b = w.bucket
  local units = match(w.own, '^%d+:(%d+)')
  local later = call('ZRANGEBYSCORE', b.log, '(' .. at, '+inf', 'WITHSCORES')
  b.total = b.total - units
  save(b, now, 0) -- a server short of memory refuses here, before anything is changed
  call('ZREM', b.log, w.own)
  for i = 1, #later, 2 do
    local total, rest = match(later[i], '^(%d+)(:.*)$')
    call('ZREM', b.log, later[i])
    call('ZADD', b.log, later[i + 1], format('%d', total - units) .. rest)
  end
  call('PEXPIREAT', b.log, format('%d', b.expire / 1000)) -- the set may have been empty for a moment, which ends its time to live
  if n == draws then
    local left, expires, drawn, rest = match(call('HGET', b.state, field) or '', '^(%d+):(%d+):(%d+):(.*)$')
    if left then call('HSET', b.state, field, format('%d:%s:%d:%s', left + units, expires, drawn - units, rest)) end
  end
end
if N[2] == 1 then call('DEL', KEYS[1]) end
return 1
