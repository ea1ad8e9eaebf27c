-- claim.lua: leases a piece of work, or ends the lease.
--
-- KEYS   1 claim
-- ARGV   1 holder  2 ttl ms  3 claim|done|give-back
-- Reply  claim: 0 held by another, 1 won or renewed, 2 done   done, give-back: 1, or 0 when the holder has lost it
--
-- The value is =<holder>, or done. Redis lets it lapse by its own clock, which is the ledger's.

local own, now = '=' .. ARGV[1], redis.call('GET', KEYS[1])
if ARGV[3] == 'claim' then
  if now == 'done' then return 2 end
  if now and now ~= own then return 0 end
  redis.call('SET', KEYS[1], own, 'PX', ARGV[2])
  return 1
end
if now ~= own then return 0 end
if ARGV[3] == 'done' then
  redis.call('SET', KEYS[1], 'done', 'PX', ARGV[2])
else
  redis.call('DEL', KEYS[1])
end
return 1
