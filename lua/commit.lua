-- commit.lua: settles a reservation: writes an entry of the units used, and gives the rest back. No
-- limit is checked, since the units were set aside.
--
-- KEYS   1 labels  2 the answer to an earlier commit of this reservation  3 state  4 log  5 holds
-- ARGV   1 units (-1 = all that is left), keep µs, then the bucket's limits (bucket.lua), to compute
--          what remains
--        2 entry id  3 code of the labels  4 their line  5 run  6 reservation
-- Reply  {1, clock, stamp, units, remaining}
--        {3, the answer given before, as text: entry id, -, -, the reply}
--        {-1, clock}: ask again  {-2}: was committed with other units  {-3}: no such reservation
--        {-4, left}: it has fewer units

local id, numbers = ARGV[2], ARGV[1]
local units, keep, pos = unpacked('<dd', numbers)
local answer = call('GET', KEYS[2])
if answer then
  local asked, kept = match(answer, '^(%S+)\n(.*)$')
  if asked and tonumber(asked) ~= units then return {-2} end
  return {3, kept or ''} -- empty if it is damaged
end

local now = clock()
local b = open(KEYS[3], KEYS[4], KEYS[5])
local stamp = math.max(now, b.newest + 1)
local R = reservations()
local left, expires = R.reserved(b, ARGV[6])
if not left or expires <= stamp then return {-3} end
if units > left then return {-4, left} end
local asked = format('%d', units)
if units < 0 then units = left end

if b.holds > 0 then R.hold(b, stamp) end
local room = NEVER
while pos < #numbers do
  local window, from, ends, cap, _
  window, from, ends, cap, _, pos = unpacked('<ddddd', numbers, pos)
  if window > 0 then
    from = stamp - window + 1
  elseif stamp < from or stamp >= ends then
    return {-1, stamp}
  end
  room = math.min(room, cap - (b.total - base(b, from)) - b.live + left - units)
end

local reply = {1, now, stamp, units, room == NEVER and 0 or math.max(0, room)}
local kept = {id, '-', '-'}
for n, value in ipairs(reply) do kept[n + 3] = format('%d', value) end
keep = math.max(b.keep, keep)
call('SET', KEYS[2], asked .. '\n' .. table.concat(kept, ' '), 'PX', format('%d', keep / 1000))
if units > 0 then
  append(b, stamp, units, id .. ':' .. intern(KEYS[1], ARGV[3], ARGV[4]) .. (ARGV[5] == '' and '' or ':' .. ARGV[5]), keep)
end
R.drop(b, ARGV[6], left)
save(b, now, keep, KEYS[1])
return reply
