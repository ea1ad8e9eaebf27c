-- read.lua returns the data for decisions on a credential, all of one moment. It writes nothing.
--
-- KEYS   the lock; the state of each bucket; answers; log and holds of each bucket; lapsed
-- ARGV   the caller's name in the lock; the numbers of buckets, of answers and of windows; for each
--        bucket the state that the caller has, '' for none; for each window the number of the
--        bucket, the length in µs (0 for a calendar window) and the start; for each lapsed a
--        reservation that may have lapsed
-- Reply  the server's time in µs; 1 if another caller has the lock, else 0; for each bucket its two
--        newest members with their stamps, its state and, if the caller does not have that state,
--        its holds, or -1 for more than 500, which the caller must read; for each window its start,
--        and its first two members with their stamps; the answers; for each lapsed the stamp. nil
--        stands for a missing value
local call = redis.call
local buckets, answers, windows = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local time, strings = call('TIME'), call('MGET', unpack(KEYS, 1, 1 + buckets + answers))
local now, lock = time[1] * 1000000 + time[2], strings[1]
local reply, n = {now, lock and lock ~= ARGV[1] and 1 or 0}, 2
local stamps, logs = {}, buckets + answers
for b = 1, buckets do
  local newest = call('ZREVRANGE', KEYS[logs + 2 * b], '0', '1', 'WITHSCORES')
  local state = strings[1 + b] or call('GET', KEYS[1 + b]) -- unlike MGET, GET fails on another type
  stamps[b], reply[n + 1], reply[n + 2], n = newest[2], newest, state, n + 2
  if state ~= ARGV[4 + b] then
    local holds = KEYS[logs + 2 * b + 1]
    n = n + 1
    reply[n] = call('HLEN', holds) > 500 and -1 or call('HGETALL', holds)
  end
end
local arg = 5 + buckets
for _ = 1, windows do
  local b, length, start = tonumber(ARGV[arg]), tonumber(ARGV[arg + 1]), ARGV[arg + 2]
  if length > 0 then
    local stamp = (stamps[b] or now - 1) + 1
    if stamp < now then stamp = now end
    start = string.format('%d', stamp - length + 1)
  end
  reply[n + 1], reply[n + 2] = start, call('ZRANGEBYSCORE', KEYS[logs + 2 * b], start, '+inf',
    'WITHSCORES', 'LIMIT', '0', '2')
  n, arg = n + 2, arg + 3
end
for a = 2 + buckets, 1 + buckets + answers do
  n = n + 1
  reply[n] = strings[a] or call('GET', KEYS[a])
end
for key = logs + 2 + 2 * buckets, #KEYS do
  n = n + 1
  reply[n] = call('ZSCORE', KEYS[key], ARGV[arg])
  arg = arg + 1
end
return reply
