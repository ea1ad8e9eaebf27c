-- suspend.lua: closes a bucket until a given time, or opens it again.
--
-- KEYS   1 labels  2 state  3 log  4 holds  5 hash of notes by bucket: since µs, a space, the note
-- ARGV   1 until µs (0 = resume), keep µs  2 bucket  3 note: who closes it, and why
-- Reply  1

local b = open(KEYS[2], KEYS[3], KEYS[4])
local now, keep = clock()
b.suspended, keep = unpacked('<dd', ARGV[1])
save(b, now, keep)
if b.suspended == 0 then
  call('HDEL', KEYS[5], ARGV[2])
  return 1
end
call('HSET', KEYS[5], ARGV[2], format('%d %s', now, ARGV[3]))
local ends = math.ceil(b.suspended / 1000)
if math.ceil(now / 1000) + call('PTTL', KEYS[5]) < ends then call('PEXPIREAT', KEYS[5], format('%d', ends)) end
return 1
