-- charge.lua decides and records charges on one bucket under the same limits, one after the other.
-- It handles sliding and calendar windows. It leaves a charge to the rule in Go when anything else
-- may matter, and when the bucket has no entry of this hour, because Go renews the keys' expiry
-- hourly.
--
-- KEYS   log, state, lock, sums of the day
-- ARGV   a struct format and a string of numbers packed by it as doubles, because parsing them from
--        text takes longer than deciding: the start of the day in µs; how many µs entries must be
--        kept; the numbers of limits and of charges; for each limit its length in µs (0 for a
--        calendar window), its start, its end, its units without the headroom and with it; for each
--        charge its units, 1 if it may use the headroom, else 0, and the number of its line;
--        then <units>:<id>:<labels> of each charge; then the lines: labels without the run
-- Reply  the server's time in µs, then one word for all charges ('locked', 'stale' after the end
--        of the day or a window, or 'left' to Go), or four numbers for each charge:
--        1 allowed, units remaining (-1 without a limit), its stamp, 0
--        0 denied, units remaining, when to retry, the number of the limit
--        2 left to Go, 0, 0, 0
--
-- So that a single charge allocates little, the functions capture no locals of the script, and the
-- tables with an item per charge start with room for one.
local call, format, match, floor = redis.call, string.format, string.match, math.floor
local log, HOUR, GRAIN = KEYS[1], 3600000000, 600000000 -- µs
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local strings = call('MGET', KEYS[2], KEYS[3])
if strings[2] then return {now, 'locked'} end
local newest = call('ZREVRANGE', log, '0', '1', 'WITHSCORES') -- with the entry before it
if not strings[1] or not newest[1] then return {now, 'left'} end
local numbers = {struct.unpack(ARGV[1], ARGV[2])}
local day, limits, charges = numbers[1], numbers[3], numbers[4]

local words, held, from, to, keep = match(strings[1], '^((%d+) (%d+) (%d+) (%d+) %x+) %1 ')
local total, units = match(newest[1], '^(%d+):(%d+):')
local stamp = newest[2] + 1
total, held = tonumber(total), tonumber(held)
if not held or keep + 0 < numbers[2] or not total or
    newest[3] and total - units ~= tonumber(match(newest[3], '^%d+')) or
    stamp > now + 24 * HOUR or stamp <= now - now % HOUR then
  return {now, 'left'}
end
if stamp < now then stamp = now end
local logged, last = total, stamp + charges - 1
if stamp < day or last >= day + 24 * HOUR then return {now, 'stale'} end
local grain = floor((stamp - day) / GRAIN)
if stamp < from + 0 or last >= to + 0 or last >= day + (grain + 1) * GRAIN then
  return {now, 'left'}
end

-- total_at returns the running total before a window that starts at a time; nil for a damaged
-- entry. logged is the running total of the stored log.
local function total_at(log, start, logged)
  local inside = redis.call('ZRANGEBYSCORE', log, string.format('%d', start), '+inf',
    'LIMIT', '0', '2')
  if not inside[1] then return logged end
  local sum, units = string.match(inside[1], '^(%d+):(%d+):')
  sum = tonumber(sum)
  if inside[2] then
    local next, of = string.match(inside[2], '^(%d+):(%d+):')
    if not next or next - of ~= sum then return nil end
  end
  return sum and sum <= logged and sum - units or nil
end

-- reached returns the stamp of the stored entry at which the running total reached a sum; nil for a
-- damaged entry. It guesses the rank from the totals at both ends, a little too low and a little
-- too high, and then halves the ranks that remain: a search by halves alone takes twice as long.
local function reached(log, sum, logged)
  local call, match, floor = redis.call, string.match, math.floor
  local low, high = 0, call('ZCARD', log) - 1
  local below, above = nil, logged
  local step = 0
  while low < high do
    local middle = floor((low + high) / 2)
    if below and high - low > 16 and step % 3 < 2 then
      local guess = low + floor((high - low) * (sum - below) / (above - below))
      local far = floor((high - low) ^ 0.5)
      middle = guess + (step % 3 == 0 and -far or far)
      if middle < low then middle = low elseif middle >= high then middle = high - 1 end
    elseif not below then
      middle = 0
    end
    step = below and step + 1 or 0
    local total = tonumber(match(call('ZRANGE', log, middle, middle)[1], '^(%d+):'))
    if not total then return nil end
    if total >= sum then
      high, above = middle, total
    else
      low, below = middle + 1, total
    end
    if not below then break end -- the first entry
  end
  return tonumber(call('ZRANGE', log, high, high, 'WITHSCORES')[2])
end

local moves = {}
for limit = 5, 5 * limits, 5 do -- replace the start of each window by the running total before it
  local length, start = numbers[limit], numbers[limit + 1]
  if length > 0 then
    start = stamp - length + 1
  elseif stamp < start or last >= numbers[limit + 2] then
    return {now, 'stale'}
  end
  numbers[limit + 1] = total_at(log, start, logged)
  if not numbers[limit + 1] then return {now, 'left'} end
  if length > 0 and last > stamp then -- entries may leave the window between the two stamps
    moves[limit] = call('ZRANGEBYSCORE', log, format('%d', start), format('%d', last - length),
      'LIMIT', '0', '1')[1]
  end
end

local reply, entries, added = {now, 2, 0, 0, 0}, {'', ''}, 0
local calls_of, beyond_of = {}, {} -- by line: calls, and their units beyond one each
for c = 1, charges do
  local at = 2 + 5 * limits + 3 * c
  local units, cap, line = numbers[at], 3 + numbers[at + 1], numbers[at + 2]
  local least, retry, denies = -1, 0, 0
  for limit = 5, 5 * limits, 5 do
    local length, most, before = numbers[limit], numbers[limit + cap], numbers[limit + 1]
    if moves[limit] then before = total_at(log, stamp - length + 1, logged) end
    if not before then return {now, 'left'} end
    local left = most - held - total + before
    if least < 0 or left < least then least = left < 0 and 0 or left end
    if left < units then
      local sum = total + units - most
      if held > 0 or sum > logged then
        denies = -1 -- a hold or an entry of this group may make room first
      elseif denies >= 0 then
        local free = numbers[limit + 2]
        if length > 0 then free = reached(log, sum, logged) end
        if not free then return {now, 'left'} end
        if free + length > retry then retry, denies = free + length, limit / 5 end
      end
    end
  end
  local r = 4 * c - 2
  if denies < 0 or total + units > 9007199254740991 then
    reply[r], reply[r + 1], reply[r + 2], reply[r + 3] = 2, 0, 0, 0
  elseif denies > 0 then
    reply[r], reply[r + 1], reply[r + 2], reply[r + 3] = 0, least, retry, denies
  else
    total = total + units
    entries[added + 1] = format('%d', stamp)
    entries[added + 2] = format('%d:', total) .. ARGV[2 + c]
    added = added + 2
    if limits > 0 then least = least - units end
    reply[r], reply[r + 1], reply[r + 2], reply[r + 3] = 1, least, stamp, 0
    calls_of[line] = (calls_of[line] or 0) + 1
    if units > 1 then beyond_of[line] = (beyond_of[line] or 0) + units - 1 end
    stamp = stamp + 1
  end
end
if added == 0 then return reply end

grain = format('%02d:%02d', floor(grain / 6), grain % 6 * 10)
for line, calls in pairs(calls_of) do
  local labels, beyond = ARGV[2 + charges + line], beyond_of[line]
  call('HINCRBY', KEYS[4], grain .. ' calls ' .. labels, format('%d', calls))
  if beyond then call('HINCRBY', KEYS[4], grain .. ' beyond ' .. labels, format('%d', beyond)) end
end
call('ZADD', log, unpack(entries))
return reply
