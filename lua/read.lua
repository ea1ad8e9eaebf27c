-- read.lua returns the data for decisions on a credential, all of one moment. It writes nothing.
--
-- KEYS   the lock; log, state, holds and lapsed of each bucket; answers
-- ARGV   the caller's name in the lock; the number of buckets; for each the state that the caller
--        knows, '' for none; the number of windows, and for each the number of the bucket, the length
--        in µs (0 for a calendar window) and the start; then pairs of a bucket's number and a
--        reservation that may have lapsed
-- Reply  the server's time in µs; 1 if another caller has the lock, else 0; for each bucket the two
--        newest members with their stamps, the state (nil for none), and, if the caller does not know
--        the state, the holds, or 'many' if the caller must read them; for each window its start, and
--        its first two members with their stamps; for each pair the stamp, nil for none; the answers,
--        nil for none
local call, format = redis.call, string.format
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local lock = call('GET', KEYS[1])
local buckets, windows, lapsed, answers = {}, {}, {}, {}
local count = tonumber(ARGV[2])
for n = 1, count do
  local key = 4 * n - 2
  local state = call('GET', KEYS[key + 1])
  local bucket = {call('ZREVRANGE', KEYS[key], '0', '1', 'WITHSCORES'), state}
  if state ~= ARGV[n + 2] then
    local holds = KEYS[key + 2]
    bucket[3] = call('HLEN', holds) > 500 and 'many' or call('HGETALL', holds)
  end
  buckets[n] = bucket
end
local arg = count + 4
for w = 1, ARGV[count + 3] do
  local n, length, start = tonumber(ARGV[arg]), tonumber(ARGV[arg + 1]), ARGV[arg + 2]
  if length > 0 then
    local stamp = (buckets[n][1][2] or now - 1) + 1
    if stamp < now then stamp = now end
    start = format('%d', stamp - length + 1)
  end
  windows[w] = {start, call('ZRANGEBYSCORE', KEYS[4 * n - 2], start, '+inf', 'WITHSCORES',
    'LIMIT', '0', '2')}
  arg = arg + 3
end
for a = arg, #ARGV, 2 do
  lapsed[#lapsed + 1] = call('ZSCORE', KEYS[4 * ARGV[a] + 1], ARGV[a + 1])
end
for key = 4 * count + 2, #KEYS do answers[#answers + 1] = call('GET', KEYS[key]) end
return {now, lock and lock ~= ARGV[1] and 1 or 0, buckets, windows, lapsed, answers}
