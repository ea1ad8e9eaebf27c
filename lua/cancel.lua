-- cancel.lua: removes a charge as if it had never been made (rewrite.lua).
--
-- KEYS   1 labels  2 the answer to its idempotency key (1 again without one)
--        then for each bucket: state, log, holds, sums
-- ARGV   1 stamp µs, has a key 0|1, number of the bucket drawn on (0 = none), most entries to rewrite
--        2 entry id  3 reservation drawn on
-- Reply  1, or 0: no such entry, or too many came after it; nothing was changed

local LETTERS = '0123456789abcdefghjkmnpqrstvwxyz'

-- id_of is the ID of an entry.
local function id_of(member)
  if byte(member) > 31 then return match(member, '^%d+:%d+:([^:]*)') end
  local id = ''
  for i = 12, 17, 5 do
    local five = unpacked('>I5', member, i)
    for n = 35, 0, -5 do
      local letter = math.floor(five / 2 ^ n) % 32 + 1
      id = id .. string.sub(LETTERS, letter, letter)
    end
  end
  return string.sub(id, 1, 14)
end

local id, work = ARGV[2], {}
local rewriting, rewrite = lowering()
local stamp, has_key, draws, most = unpacked('<dddd', ARGV[1])
for k = 3, #KEYS, 4 do
  local own = call('ZRANGEBYSCORE', KEYS[k + 1], format('%d', stamp), format('%d', stamp))[1]
  if not own or not totals(own) or id_of(own) ~= id then return 0 end
  local b = open(KEYS[k], KEYS[k + 1], KEYS[k + 2], draws > 0 and ARGV[3])
  local w = rewriting(b, KEYS[k + 3], stamp, own, 0, most)
  if not w then return 0 end
  work[#work + 1] = w
end

local drawn
if draws > 0 then
  local b = work[draws].bucket
  local parse = reservations()
  drawn = b.field and parse(b, ARGV[3], b.field)
  if drawn then lapses().found(b, drawn) end
end
local now = clock()
for n, w in ipairs(work) do
  local open = n == draws and drawn and drawn.expires > w.bucket.newest + 1 -- else it may be deleted any time
  if open and drawn.drawn >= w.less then -- else it drew on an earlier reservation of this id
    lapses().draw(w.bucket, drawn, -w.less)
  end
  rewrite(w, now)
end
if has_key == 1 then call('DEL', KEYS[2]) end
return 1
