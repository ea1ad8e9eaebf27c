-- release.lua: gives back what is left of a reservation, in all its buckets or in none.
--
-- KEYS   1 labels  then for each bucket: state, log, holds
-- ARGV   1 reservation (holds.lua)
-- Reply  the units given back, for each bucket, or {-3}: no such reservation

local now = clock()
local stamp, buckets = now, {}
for k = 2, #KEYS, 3 do
  local b = open(KEYS[k], KEYS[k + 1], KEYS[k + 2])
  buckets[#buckets + 1] = b
  stamp = math.max(stamp, b.newest + 1)
end
local R = reservations()
stamp = R.lapse(buckets, stamp, KEYS[1])
local found, reply = {}, {}
for n, b in ipairs(buckets) do
  local r = R.reserved(b, ARGV[1])
  if not r or r.expires <= stamp then return {-3} end
  found[n], reply[n] = r, r.left
end
for n, b in ipairs(buckets) do R.unlist(b, found[n]) end
for n, b in ipairs(buckets) do
  R.drop(b, found[n])
  save(b, now, 0, KEYS[1])
end
return reply
