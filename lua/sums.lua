-- sums.lua: adds up entries that are not in the sums yet, the oldest first. A charge leaves that to its caller, who does it now and
-- then, and to readers, who run it until all but the newest entries are in the sums.
--
-- sums   sorted set, what was spent by whom: score = grain (ten minutes), member = <name>, then records: \n<labels>:<units>:<entries>.
--        A grain may have several members, and what was cancelled is negative. Entries that are trimmed stay in them; the members go
--        when the last entry of their grain has gone
-- state  g = two doubles: the stamp up to which entries are in the sums, and the running total after the entry of that stamp. Where
--        the next entry's total does not follow from it, the sums are of another log, and begin anew; so do sums that were deleted
--
-- KEYS   1 labels  2 state  3 log  4 holds  5 sums
-- ARGV   1 N: how many entries to read, about
-- Reply  1, or 0: there are more

local b, now, most = open(KEYS[2], KEYS[3], KEYS[4]), clock(), N[1]
local sums, upto, total = KEYS[5], 0, -1
local g = call('HGET', b.state, 'g')
if g and #g == 16 then upto, total = struct.unpack('<dd', g) end

local function following()
  local first = call('ZRANGEBYSCORE', b.log, format('(%d', upto), '+inf', 'WITHSCORES', 'LIMIT', '0', '1')
  if first[1] then return first[1], time_of(b.log, first[2]) end
end

-- add writes a sum of a grain. A small member that is there takes it in.
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
local anew = before ~= total or call('ZCARD', sums) == 0
if anew then
  upto, total = 0, 0
  member, stamp = following()
  save(b, now, 0, KEYS[1]) -- a server short of memory refuses here, before anything is changed
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
    local of, mark = match(list[i], '^%d+:(%d+):[^:]*:([^:]*)')
    if not mark then damaged(b.log, 'an entry cannot be read') end
    units[mark], entries[mark] = (units[mark] or 0) + of, (entries[mark] or 0) + 1
  end
  upto, total = time_of(b.log, call('ZSCORE', b.log, list[#list])), entry(b.log, list[#list])
  add(grain, units, entries)
  call('HSET', b.state, 'g', struct.pack('<dd', upto, total))
  most = most - #list - 8 -- a grain costs something by itself
  member, stamp = following()
end

save(b, now, 0, KEYS[1])
call('PEXPIREAT', sums, format('%d', (b.expire + b.keep) / 1000)) -- never before the log
return member and 0 or 1
