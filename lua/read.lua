-- read.lua returns the data for decisions on a credential, all of one moment. It writes nothing.
--
-- KEYS   the lock; the state of each bucket; answers; log and holds of each bucket; lapsed
-- ARGV   the caller's name in the lock; the numbers of buckets, of answers and of windows; for each
--        bucket the state that the caller has, '' for none; for each window the number of the
--        bucket, the length in µs (0 for a calendar window) and the start; for each lapsed a
--        reservation that may have lapsed
-- Reply  the server's time in µs; 1 if another caller has the lock, else 0; for each bucket the two
--        newest members with their stamps, the state and, if the caller does not have the state, the
--        number of holds and these, or -1 if the caller must read them; for each window its start,
--        and its first two members with their stamps; the answers; for each lapsed the stamp. nil
--        stands for a missing value
local call, format = redis.call, string.format
local buckets, answers, windows = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local time, strings = call('TIME'), call('MGET', unpack(KEYS, 1, 1 + buckets + answers))
local now, lock = time[1] * 1000000 + time[2], strings[1]
local reply, n = {now, lock and lock ~= ARGV[1] and 1 or 0}, 2

local function add(value)
  n = n + 1
  reply[n] = value or false
end

-- string_of returns the string of a key. GET fails on another type, for which MGET returns nil.
local function string_of(key)
  return strings[key] or call('GET', KEYS[key])
end

local function add_two(members)
  for i = 1, 4 do reply[n + i] = members[i] or false end
  n = n + 4
end

local newest, logs = {}, buckets + answers
for b = 1, buckets do
  local log, holds = KEYS[logs + 2 * b], KEYS[logs + 2 * b + 1]
  local two = call('ZREVRANGE', log, '0', '1', 'WITHSCORES')
  local state = string_of(1 + b)
  newest[b] = two[2]
  add_two(two)
  add(state)
  if state ~= ARGV[4 + b] then
    local count = call('HLEN', holds)
    add(count > 500 and -1 or count)
    if count <= 500 then
      for _, text in ipairs(call('HGETALL', holds)) do add(text) end
    end
  end
end
local arg = 5 + buckets
for _ = 1, windows do
  local b, length, start = tonumber(ARGV[arg]), tonumber(ARGV[arg + 1]), ARGV[arg + 2]
  if length > 0 then
    local stamp = (newest[b] or now - 1) + 1
    if stamp < now then stamp = now end
    start = format('%d', stamp - length + 1)
  end
  add(start)
  add_two(call('ZRANGEBYSCORE', KEYS[logs + 2 * b], start, '+inf', 'WITHSCORES', 'LIMIT', '0', '2'))
  arg = arg + 3
end
for a = 2 + buckets, 1 + buckets + answers do add(string_of(a)) end
for key = logs + 2 + 2 * buckets, #KEYS do
  add(call('ZSCORE', KEYS[key], ARGV[arg]))
  arg = arg + 1
end
return reply
