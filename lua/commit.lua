-- commit.lua: settles a reservation. It writes an entry of the units used and gives the rest back; no limit is checked, because
-- the units were set aside.
--
-- KEYS   1 labels  2 the answer to an earlier commit of this reservation  3 state  4 log
-- ARGV   1 entry id  2 label code  3 label line  4 run  5 reservation id  6 units (-1 = all that is left)  7 keep µs
--        then the bucket's limits (bucket.lua), to say what remains
-- Reply  {1, clock, stamp, units, remaining}  {3, the answer given before, after the entry id: as text}  {-1, clock}: ask again
--        {-2}: was committed with other units   {-3}: no such reservation   {-4, left}: it holds fewer units

local units = tonumber(ARGV[6])
local answer = call('GET', KEYS[2])
if answer then
  local asked, kept = match(answer, '^(%S+)\n(.*)$')
  if asked ~= ARGV[6] then return {-2} end
  return {3, kept}
end

local now = clock()
local b = open(KEYS[3], KEYS[4])
local stamp = max(now, b.newest + 1)
local field = 'r:' .. ARGV[5]
local left, expires = match(call('HGET', b.state, field) or '', '^(%d+):(%d+)')
if not left or tonumber(expires) <= stamp then return {-3} end
left = tonumber(left)
if units > left then return {-4, left} end
if units < 0 then units = left end

held(b, stamp)
local room
for i = 8, #ARGV, LIMIT_ARGS do
  local l = limit(i, stamp)
  if l.stale then return {-1, stamp} end
  room = min(room or NEVER, l.cap - (b.total - base(b, l.from)) - b.held + left - units)
end

local reply = {1, now, stamp, units, max(0, room or 0)}
local kept = {ARGV[1]}
for n, value in ipairs(reply) do kept[n + 1] = int(value) end
local keep = max(b.keep, tonumber(ARGV[7]))
call('SET', KEYS[2], ARGV[6] .. '\n' .. table.concat(kept, ' '), 'PX', int(floor(keep / 1000)))
if units > 0 then
  append(b, stamp, units, ARGV[1] .. ':' .. intern(KEYS[1], ARGV[2], ARGV[3]) .. (ARGV[4] ~= '' and ':' .. ARGV[4] or ''))
end
call('HDEL', b.state, field)
save(b, now, keep, 'holds', max(0, b.holds - 1))
return reply
