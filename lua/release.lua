-- release.lua: gives back what is left of a reservation, in all its buckets or in none.
--
-- KEYS   1 labels  then for each bucket: state, log, holds
-- ARGV   1 reservation (holds.lua)
-- Reply  the units given back, for each bucket, or {-3}: no such reservation

local now, stamp, buckets = look(2, 3, ARGV[1])
local parse, drop = reservations()
local found, reply = {}, {}
for n, b in ipairs(buckets) do
  local r = b.field and parse(b, ARGV[1], b.field)
  if not r or r.expires <= stamp then return {-3} end
  if not call('ZSCORE', b.index, r.member) then lapses().unlisted(b, r) end
  found[n], reply[n] = r, r.left
end
for n, b in ipairs(buckets) do
  call('ZREM', b.index, found[n].member)
end
for n, b in ipairs(buckets) do
  drop(b, found[n])
  save(b, now, 0)
end
return reply
