-- charge.lua decides and records charges on one bucket, under the same limits, in their order. It knows
-- sliding and calendar windows. What else may matter it leaves to the rule in Go, which also renews
-- the keys once an hour: a bucket without an entry of this hour is left to it.
--
-- KEYS   log, state, lock, sums of the day
-- ARGV   the day's start in µs; µs that entries must be kept; the number of limits; for each limit: its
--        length in µs (0 for a calendar window), its start, its end, units for schedules, units for
--        people; then for each charge: units, 0 or 1 for people, <id>:<labels>, labels without the run
-- Reply  the server's time in µs, then 'locked', or 'stale' (it is another day or window), or four for
--        each charge: 1 allowed, units remaining (-1 without a limit), its stamp, 0
--                     0 denied, units remaining, the time to retry, the number of the limit
--                     2 left to Go, 0, 0, 0
local call, format, match, sub, floor = redis.call, string.format, string.match, string.sub, math.floor
local log, HOUR, GRAIN = KEYS[1], 3600000000, 600000000 -- µs
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local strings = call('MGET', KEYS[2], KEYS[3])
if strings[2] then return {now, 'locked'} end
local newest = call('ZREVRANGE', log, 0, 1, 'WITHSCORES') -- and the one before
local limits = tonumber(ARGV[3])
local charges = 4 + 5 * limits

local function leave()
  local reply = {now}
  for n = 1, #ARGV - charges + 1 do reply[n + 1] = n % 4 == 1 and 2 or 0 end
  return reply
end

if not strings[1] or not newest[1] then return leave() end
local held, from, to, keep, again = match(strings[1], '^(%d+) (%d+) (%d+) (%d+) %x+ ()')
local total, units = match(newest[1], '^(%d+):(%d+):')
local stamp = newest[2] + 1
if not held or sub(strings[1], 1, again - 1) ~= sub(strings[1], again, 2 * again - 2) or
    keep + 0 < ARGV[2] + 0 or not total or
    newest[3] and total - units ~= tonumber(match(newest[3], '^(%d+):')) or
    stamp > now + 24 * HOUR or stamp <= now - now % HOUR then
  return leave()
end
total, held = tonumber(total), tonumber(held)
if stamp < now then stamp = now end
local logged, day, last = total, tonumber(ARGV[1]), stamp + (#ARGV - charges - 3) / 4
if stamp < day or last >= day + 24 * HOUR then return {now, 'stale'} end
if stamp < from + 0 or last >= to + 0 or floor((stamp - day) / GRAIN) ~= floor((last - day) / GRAIN) then
  return leave()
end

-- the running total when a window that starts at that moment began, nil if an entry is damaged
local function total_at(start)
  local before = call('ZREVRANGEBYSCORE', log, '(' .. start, '-inf', 'LIMIT', 0, 1)[1]
  if before then return tonumber(match(before, '^(%d+):')) end
  local first = call('ZRANGE', log, 0, 1)
  local sum, units = match(first[1], '^(%d+):(%d+):')
  if first[2] then
    local next, of = match(first[2], '^(%d+):(%d+):')
    if not next or next - of ~= tonumber(sum) then return nil end
  end
  return sum and sum - units
end

-- the stamp of the stored entry with which the running total reached a sum, nil if one is damaged. The
-- totals rise, so it guesses the rank from those around it, a little too low and a little too high, and
-- halves what is left.
local function reached(sum)
  local low, high = 0, call('ZCARD', log) - 1
  local below, above = nil, logged
  local function at(rank)
    return tonumber(match(call('ZRANGE', log, rank, rank)[1], '^(%d+):'))
  end
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
    local total = at(middle)
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

local before, moves = {}, {}
for n = 1, limits do
  local limit = 5 * n - 1
  local length, start = ARGV[limit] + 0, ARGV[limit + 1]
  if length > 0 then
    start = format('%d', stamp - length + 1)
  elseif stamp < start + 0 or last >= ARGV[limit + 2] + 0 then
    return {now, 'stale'}
  end
  before[n] = total_at(start)
  if not before[n] or before[n] > total then return leave() end
  -- entries may leave the window between the first stamp and the last
  moves[n] = length > 0 and last > stamp and total_at(format('%d', last - length + 1)) ~= before[n]
end

local reply, entries, sums = {now}, {}, {}
for c = charges, #ARGV, 4 do
  local units, cap = ARGV[c] + 0, ARGV[c + 1] + 3
  local least, retry, denies = -1, 0, 0
  for n = 1, limits do
    local limit = 5 * n - 1
    local length = ARGV[limit] + 0
    if moves[n] then before[n] = total_at(format('%d', stamp - length + 1)) end
    local left = ARGV[limit + cap] - held - total + before[n]
    if least < 0 or left < least then least = left < 0 and 0 or left end
    if left < units then
      local sum = total + units - ARGV[limit + cap]
      if held > 0 or sum > logged then
        denies = -1 -- a hold or an entry of this group may make room first
      elseif denies >= 0 then
        local at = ARGV[limit + 2] + 0
        if length > 0 then at = reached(sum) end
        if not at then return leave() end
        if at + length > retry then retry, denies = at + length, n end
      end
    end
  end
  local r = #reply
  if denies < 0 or total + units > 9007199254740991 then
    reply[r + 1], reply[r + 2], reply[r + 3], reply[r + 4] = 2, 0, 0, 0
  elseif denies > 0 then
    reply[r + 1], reply[r + 2], reply[r + 3], reply[r + 4] = 0, least, retry, denies
  else
    total = total + units
    entries[#entries + 1] = format('%d', stamp)
    entries[#entries + 1] = format('%d:%s:%s', total, ARGV[c], ARGV[c + 2])
    if limits > 0 then least = least - units end
    reply[r + 1], reply[r + 2], reply[r + 3], reply[r + 4] = 1, least, stamp, 0
    local sum = sums[ARGV[c + 3]]
    if sum then
      sum[1], sum[2] = sum[1] + units, sum[2] + 1
    else
      sums[ARGV[c + 3]] = {units, 1}
    end
    stamp = stamp + 1
  end
end
if not entries[1] then return reply end

local minutes = floor((last - day) / GRAIN) * 10
local grain = format('%02d:%02d', floor(minutes / 60), minutes % 60)
for labels, sum in pairs(sums) do
  call('HINCRBY', KEYS[4], grain .. ' units ' .. labels, sum[1])
  call('HINCRBY', KEYS[4], grain .. ' calls ' .. labels, sum[2])
end
call('ZADD', log, unpack(entries))
return reply
