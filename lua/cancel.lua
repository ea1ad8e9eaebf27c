-- cancel.lua: takes back a charge as if it had never been made. The entries after it are written again with lower totals; a
-- charge is cancelled moments after it was made, so they are few.
--
-- KEYS   1 the answer to its idempotency key (state of the first bucket without one)  then for each bucket: state, log
-- ARGV   1 entry id  2 stamp µs  3 has a key 0|1  4 number of the bucket drawn on (0 = none)  5 reservation id  6 most to rewrite
-- Reply  1, or 0: no such entry, or too many came after it; nothing was changed

local id, stamp, most = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[6])
local function is(member) return match(member, '^%d+:%d+:([^:]*)') == id end

local work = {}
for k = 2, #KEYS, 2 do
  if call('ZCOUNT', KEYS[k + 1], int(stamp), '+inf') > most then return 0 end
  local own = call('ZRANGEBYSCORE', KEYS[k + 1], int(stamp), int(stamp))[1]
  if not own or not is(own) then return 0 end
  work[#work + 1] = {own = own, bucket = open(KEYS[k], KEYS[k + 1])}
end

for n, w in ipairs(work) do
  local b = w.bucket
  local _, units = parse(w.own)
  local later = call('ZRANGEBYSCORE', b.log, '(' .. int(stamp), '+inf', 'WITHSCORES')
  call('HSET', b.state, 'total', int(b.total - units), 'newest', int(b.newest)) -- a server short of memory refuses here
  call('ZREM', b.log, w.own)
  for i = 1, #later, 2 do
    local total, rest = match(later[i], '^(%d+)(:.*)$')
    call('ZREM', b.log, later[i])
    call('ZADD', b.log, later[i + 1], int(total - units) .. rest)
  end
  if n == tonumber(ARGV[4]) then
    local left, expires, drawn, rest = match(call('HGET', b.state, 'r:' .. ARGV[5]) or '', '^(%d+):(%d+):(%d+):(.*)$')
    if left then
      call('HSET', b.state, 'r:' .. ARGV[5], int(left + units) .. ':' .. expires .. ':' .. int(drawn - units) .. ':' .. rest)
    end
  end
end
if ARGV[3] == '1' then call('DEL', KEYS[1]) end
return 1
