-- sums.lua: adds entries to the sums, oldest first. Callers who charge run it now and then, readers
-- until only the newest entries are missing.
--
-- sums   sorted set, what was spent by whom: score = grain (ten minutes), member = <name>, then
--        records: \n<labels>:<units>:<entries>. A grain may have several members; a cancelled charge
--        is a negative record. Deleted entries stay in the sums until the last one of their grain is
--        deleted
-- state  g = two doubles: the stamp up to which entries are in the sums, and the running total after
--        the entry of that stamp. If the next entry's total does not follow from it, or there are no
--        sums, they are rebuilt
--
-- KEYS   1 labels  2 state  3 log  4 holds  5 sums
-- ARGV   1 roughly how many entries to read
-- Reply  1, or 0: there are more

local b, now, most = open(KEYS[2], KEYS[3], KEYS[4]), clock(), unpacked('<d', ARGV[1])
local sums, upto, total = KEYS[5], 0, -1
local g = call('HGET', b.state, 'g')
if g and #g == 16 then upto, total = unpacked('<dd', g) end

local function following()
  local first = call('ZRANGEBYSCORE', b.log, format('(%d', upto), '+inf', 'WITHSCORES', 'LIMIT', '0', '1')
  if first[1] then return first[1], time_of(b.log, first[2]) end
end

-- add writes a sum of a grain, merged with its last member if that is small.
local function add(grain, units, entries)
  local last = call('ZREVRANGEBYSCORE', sums, grain, grain, 'LIMIT', '0', '1')[1]
  if last and #last < 1024 then
    for mark, u, n in string.gmatch(last, '\n([^:\n]*):(%-?%d+):(%-?%d+)') do
      units[mark], entries[mark] = (units[mark] or 0) + u, (entries[mark] or 0) + n
    end
  end
  local records = {format('%d', upto)}
  for mark, u in pairs(units) do records[#records + 1] = format('%s:%d:%d', mark, u, entries[mark]) end
  call('ZADD', sums, grain, table.concat(records, '\n'))
  if last and #last < 1024 then call('ZREM', sums, last) end
end

local member, stamp = following()
local before = b.total
if member then
  local after, units = entry(b.log, member)
  before = after - units
end
if before ~= total or call('ZCARD', sums) == 0 then
  upto, total = 0, 0
  member, stamp = following()
  save(b, now, 0) -- a server out of memory refuses here, before any change
  call('DEL', sums)
end

local oldest = tonumber(call('ZRANGE', b.log, '0', '0', 'WITHSCORES')[2])
if oldest then
  local gone = call('ZCOUNT', sums, '-inf', format('(%d', oldest / GRAIN))
  if gone > 0 then call('ZREMRANGEBYRANK', sums, '0', gone - 1) end
end

while member and most > 0 do
  local grain = math.floor(stamp / GRAIN)
  local last = (grain + 1) * GRAIN - 1
  local list = call('ZRANGEBYSCORE', b.log, format('%d', stamp), format('%d', last), 'LIMIT', '0', most)
  local units, entries = {}, {}
  for i = 1, #list do
    local sum, of, _, by
    if #list[i] == 30 then sum, of, _, by = unpacked('>I7I4c15c4', list[i]) end -- as most are
    if not sum or sum > EXACT then
      _, of = entry(b.log, list[i])
      by = mark(list[i])
    end
    if not by then damaged(b.log, 'an entry cannot be read') end
    units[by], entries[by] = (units[by] or 0) + of, (entries[by] or 0) + 1
  end
  upto, total = time_of(b.log, call('ZSCORE', b.log, list[#list])), entry(b.log, list[#list])
  add(grain, units, entries)
  call('HSET', b.state, 'g', struct.pack('<dd', upto, total))
  most = most - #list - 8 -- every grain adds some work
  member, stamp = following()
end

save(b, now, 0)
call('PEXPIREAT', sums, format('%d', (b.expire + b.keep) / 1000)) -- never before the log
return member and 0 or 1
