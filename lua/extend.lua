-- extend.lua: has a reservation last longer, in all its buckets or in none.
--
-- KEYS   1 labels  then for each bucket: state, log, holds
-- ARGV   1 µs from now at which it is to expire, if it does not expire later  2 reservation (holds.lua)
-- Reply  {1, when it expires, in µs}, or {-3}: no such reservation

local ttl, now = unpacked('<d', ARGV[1]), clock()
local stamp, buckets = now, {}
for k = 2, #KEYS, 3 do
  local b = open(KEYS[k], KEYS[k + 1], KEYS[k + 2])
  buckets[#buckets + 1] = b
  stamp = math.max(stamp, b.newest + 1)
end
local R = reservations()
stamp = R.lapse(buckets, stamp, KEYS[1])
local found, last = {}, NEVER
for n, b in ipairs(buckets) do
  local r = R.reserved(b, ARGV[2])
  if not r or r.expires <= stamp then return {-3} end
  R.listed(b, r)
  found[n] = r
end
for n, b in ipairs(buckets) do
  local r = found[n]
  if r.expires < stamp + ttl then
    R.extend(b, r, stamp + ttl)
    save(b, now, 0, KEYS[1], r.expires)
  end
  last = math.min(last, r.expires)
end
return {1, last}
