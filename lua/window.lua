-- window.lua: where a window begins, for plain_hold.lua. (plain.lua saves the 3 % that a function would
-- take.)

-- total_before is the running total before the first entry stamped at since, as text, or later;
-- total that of all. It is nil if it cannot be, as bucket.lua has it.
local function total_before(log, since, total)
  local first = redis.call('ZRANGEBYSCORE', log, since, '+inf', 'LIMIT', '0', '2')
  if not first[1] then return total end
  local all, of = totals(first[1])
  if not all then return nil end
  local rest = total - all -- of what comes later, which must not begin below it
  if first[2] then
    local next, more = totals(first[2])
    rest = next and next <= total and next - more - all or -1
  end
  if rest < 0 or all - of < 0 then return nil end
  return all - of
end
