-- rewrite.lua: lowers an entry, or removes it, as if it had never been more. It follows windows.lua,
-- and is made on demand, too: local rewriting, rewrite = lowering(). The
-- entries after it are written again with lower totals; they are few, since a charge is cancelled
-- moments after it was made, and a late settlement comes soon. A log that becomes empty restarts at a
-- total of 0.

local function lowering()

  -- rewriting reads what it takes to leave units of an entry; nil if more than most came after it.
  local function rewriting(b, sums, stamp, own, stays, most)
    local from = format('(%d', stamp)
    if call('ZCOUNT', b.log, from, '+inf') > most then return nil end
    local total, units = entry(b.log, own)
    local less = units - stays
    local w = {bucket = b, sums = sums, stamp = stamp, less = less, old = {own}, new = {}, later = {}}
    if stays > 0 then
      w.new[1] = {format('%d', stamp), with(own, total - less, stays)}
    end
    local later = call('ZRANGEBYSCORE', b.log, from, '+inf', 'WITHSCORES')
    for i = 1, #later, 2 do
      local sum, of = entry(b.log, later[i])
      if sum < less then damaged(b.log, 'the totals of its entries do not rise by their units') end
      w.old[#w.old + 1] = later[i]
      w.new[#w.new + 1] = {later[i + 1], with(later[i], sum - less)}
      w.later[#w.later + 1] = {at = time_of(b.log, later[i + 1]), units = of}
    end
    w.mark, w.gone = mark(own), stays == 0 and 1 or 0
    w.alone = #w.new == 0 and call('ZCARD', b.log) == 1
    return w
  end

  -- lower_levels corrects the levels that are kept: one that has the entry in it loses its units, but is
  -- never below what the entries after it alone make.
  local function lower_levels(w)
    local b, W = w.bucket, windows()
    local levels = W.read_levels(b)
    if #levels == 0 then return end
    for _, r in ipairs(levels) do
      if r.at >= w.stamp then
        local least = {num = r.num, den = r.den, level = 0, at = w.stamp}
        for _, e in ipairs(w.later) do
          if e.at <= r.at then W.fill(least, e.at, e.units) end
        end
        W.fill(least, r.at, 0)
        r.level, r.total = math.max(least.level, r.level - w.less * r.den), r.total - w.less
      end
    end
    W.keep_levels(b, w.alone and {} or levels)
  end

  -- rewrite carries it out.
  local function rewrite(w, now)
    local b = w.bucket
    b.total, b.fresh, b.known, b.found = w.alone and 0 or b.total - w.less, b.fresh or w.alone, '', nil
    local g, upto, total = call('HGET', b.state, 'g'), 0, 0
    if g and #g == 16 then upto, total = unpacked('<dd', g) end
    lower_levels(w)
    if w.mark and w.stamp <= upto then also(b, 'g', struct.pack('<dd', upto, total - w.less)) end
    save(b, now, 0) -- a server out of memory refuses here, or above, before any change
    for _, member in ipairs(w.old) do call('ZREM', b.log, member) end
    for _, z in ipairs(w.new) do call('ZADD', b.log, z[1], z[2]) end
    call('PEXPIREAT', b.log, format('%d', b.expire / 1000)) -- a set that was empty for a moment has lost its expiry
    if w.mark and w.stamp <= upto then
      call('ZADD', w.sums, math.floor(w.stamp / GRAIN), format('-%d\n%s:-%d:-%d', w.stamp, w.mark, w.less, w.gone))
      call('PEXPIREAT', w.sums, format('%d', (b.expire + b.keep) / 1000))
    end
  end

  return rewriting, rewrite
end
