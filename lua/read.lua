-- read.lua returns what decisions on a credential need to know, all of one moment. It writes nothing.
--
-- KEYS   the lock; log, state, holds and lapsed of each bucket; answers
-- ARGV   the caller's name in the lock; the number of buckets; of each the state that the caller
--        knows, '' for none; then pairs of a bucket's number and a reservation that may have lapsed
-- Reply  the server's time in µs; 1 if another caller has the lock, else 0; for each bucket the two
--        newest members with their stamps, the state (nil for none), and, if the state is another than
--        the caller knows, the holds, or 'many', which the caller reads; for each pair the stamp, nil
--        for none; the answers, nil for none
local call = redis.call
local time = call('TIME')
local lock = call('GET', KEYS[1])
local buckets, asked, answers = {}, {}, {}
local count = tonumber(ARGV[2])
for n = 1, count do
  local key = 4 * n - 2
  local state = call('GET', KEYS[key + 1])
  local bucket = {call('ZREVRANGE', KEYS[key], 0, 1, 'WITHSCORES'), state}
  if state ~= ARGV[n + 2] then
    local holds = KEYS[key + 2]
    bucket[3] = call('HLEN', holds) > 500 and 'many' or call('HGETALL', holds)
  end
  buckets[n] = bucket
end
for a = count + 3, #ARGV, 2 do
  asked[#asked + 1] = call('ZSCORE', KEYS[4 * ARGV[a] + 1], ARGV[a + 1])
end
for key = 4 * count + 2, #KEYS do answers[#answers + 1] = call('GET', KEYS[key]) end
return {time[1] * 1000000 + time[2], lock and lock ~= ARGV[1] and 1 or 0, buckets, asked, answers}
