-- extend.lua: has a reservation last longer, in all its buckets or in none.
--
-- KEYS   1 labels  then for each bucket: state, log, holds
-- ARGV   1 µs from now at which it is to expire, if it does not expire later  2 reservation (holds.lua)
-- Reply  {1, when it expires, in µs}, or {-3}: no such reservation

local ttl = unpacked('<d', ARGV[1])
local now, stamp, buckets = look(2, 3, ARGV[2])
local parse, L = reservations(), lapses()
local found, last = {}, NEVER
for n, b in ipairs(buckets) do
  local r = b.field and parse(b, ARGV[2], b.field)
  if not r or r.expires <= stamp then return {-3} end
  L.found(b, r)
  found[n] = r
end
for n, b in ipairs(buckets) do
  local r = found[n]
  if r.expires < stamp + ttl then
    r.expires = stamp + ttl
    L.put(b, r)
    save(b, now, 0, r.expires)
  end
  last = math.min(last, r.expires)
end
return {1, last}
