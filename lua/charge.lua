-- charge.lua: decides and records charges, draws and reservations over all buckets and limits, in one
-- atomic step. There may be several calls on the same buckets, each of somebody else: a group. They are
-- decided in their order, each as if those before it had been recorded, and then all is written at
-- once. A group of one is what a call alone is.
--
-- KEYS   1 labels of the credential  then for each bucket: state, log, holds
--        then for each call with an idempotency key: the answer to it
-- ARGV   1 number of calls, number of buckets, then for each call: bytes of what there is of it, ms to
--          keep the answer to the key for, µs to keep entries, number of the bucket drawn on (0 = none),
--          µs to reserve for (0 = charge, -1 = decide on a charge and write nothing), bytes of the text
--          at its end, then for each bucket: units, number of limits, to reserve also flags, most
--          (holds.lua) and by how many units the estimates in flight may be too low, the limits (bucket.lua); then that text: what follows the numbers in a packed
--          member (entry.lua), in the place of text 1. Between the first of these numbers and the text
--          there is nothing where all of them are as of the call before
--        then for each call equally many, the empty ones at the end of all left out:
--        1 <id>:<code of the labels>[:<run>]; of a reservation always with the second colon, and the id
--        as holds.lua has it
--        2 line of the labels, if it is to be stored; of a reservation they are for the entry that it may become
--        3 reservation drawn on, or the note of the one that is made
--        4 fingerprint of the call  5 names of the buckets, in order, to be kept with the answer
--        6… where anything is only observed: what can deny, escaped for a label: the suspension (empty
--        unless all is observed), each limit. A limit that is observed by itself has units below 0:
--        -1 - units
-- Reply  of plain.lua: one text, with six doubles for each call, as follows; else for each call
--        {status, clock, stamp, what denies (0 nothing, -1 the suspension, -2 the estimates in flight, else the number of the limit,
--        counted over all buckets), retry at (when allowed: 0, or -1 if the code of the labels was not
--        stored), for each bucket: remaining (above 2^53 without a limit), for a reservation: when it
--        expires}, times in µs; status 1 allowed, 0 denied, 2 observed: recorded although it would have been denied
--        {3, the answer kept for the key, as text: id, what denies or -, buckets, the reply}
--        {-1, clock}: ask again, alone: a calendar limit has the wrong day, or it needs from the log what
--        calls before it in the group have yet to write
--        {-2}: the key was used for another call  {-3}: no such reservation
--        {-4, left}: it has fewer units  {-5, limit}: the cost is above the limit, so never
--        an error: the total of a bucket would be too high
-- If it fails, no call was recorded. A denial writes nothing but what has lapsed (holds.lua). The first
-- write is one that a server out of memory refuses, so either all is written or nothing.

local numbers, calls, many, pos = ARGV[1], unpacked('<dd', ARGV[1])
local stride, answer_key = (#ARGV - 1) / calls, 1 + 3 * many
local full, packed, p = pos, -1, 0
local now, stamp, buckets, at
local parse, drop, W
local lapse = FAR -- a call at that time or later goes alone: a reservation has expired by then

-- What is to be written besides the entries: reservations made, by bucket, and drawn on; answers.
local recorded, longest, last_expiry, made, drawn_on, kept = false, 0, nil, nil, nil, nil
local marks -- of the labels, by their line

-- Decide and record, in memory. This is no function: one with that many variables of the script takes a
-- fifth of the time of a charge to make.
local replies = {false}
for c = 1, calls do repeat -- break goes on to the next call
  local first, reply = 2 + (c - 1) * stride, nil
  local size, keep_answer, keep, draws, ttl, _ = unpacked('<d', numbers, pos), nil, nil, nil, nil, nil
  if size ~= 8 + packed then full = pos end
  _, keep_answer, keep, draws, ttl, packed, p = unpacked('<dddddd', numbers, full)
  pos = pos + size
  local id, code, run
  if packed == 0 then id, code, run = match(ARGV[first], '^([^:]*):([^:]*)(.*)$') end
  local line, reservation = stride > 1 and ARGV[first + 1] or '', stride > 2 and ARGV[first + 2] or ''
  local fingerprint, observe = stride > 3 and ARGV[first + 3] or '', stride > 5 and ARGV[first + 5] ~= ''

  local key
  if fingerprint ~= '' then
    answer_key = answer_key + 1
    key = KEYS[answer_key]
    local answer = kept and kept[key] and kept[key].text or call('GET', key)
    if answer then
      local asked, text = match(answer, '^([^\n]*)\n(.*)$')
      replies[c] = asked and asked ~= fingerprint and {-2} or {3, text or ''} -- empty if it is damaged
      break
    end
  end

  local opening = not buckets
  if opening then
    now, stamp, buckets = look(2, 3, ttl > 0 and id or draws > 0 and reservation, 3 * many - 1)
    for n = 1, calls > 1 and many or 0 do
      if expiring(buckets[n], stamp, stamp + calls) then lapse = stamp end
    end
  else
    for n = 1, many do
      if buckets[n].newest >= stamp then stamp, at = buckets[n].newest + 1, nil end
    end
    if stamp >= lapse then replies[c] = {-1, stamp} break end
  end
  if (ttl > 0 or draws > 0) and not parse then parse, drop = reservations() end

  local drawn, refused -- the reservation drawn on
  if draws > 0 then
    local b = buckets[draws]
    if made and made[reservation] then replies[c] = {-1, stamp} break end
    drawn = drawn_on and drawn_on[draws .. reservation]
    if not drawn then
      local field = opening and b.field or not opening and call('HGET', b.state, 'r:' .. reservation)
      drawn = field and parse(b, reservation, field)
      if not drawn or drawn.expires <= stamp then replies[c] = {-3} break end
      lapses().found(b, drawn)
    end
  end

  -- Decide.
  local nth, retry, denying, pace, never, outside_later = 0, 0, 0, 0, 0, false
  local would -- what limits that are observed by themselves say
  reply = {1, now, stamp, 0, 0, 0, ttl > 0 and 0 or nil} -- of status 1, as long as it is for one bucket
  local taken, flags, most = {0}, ttl > 0 and {0}, ttl > 0 and {0} -- of each bucket
  for n = 1, many do
    local b = buckets[n]
    local draw, units, limits = n == draws
    units, limits, p = unpacked('<dd', numbers, p)
    if ttl > 0 then
      local slack
      flags[n], most[n], slack, p = unpacked('<ddd', numbers, p)
      if slack < EXACT and most[n] > units and ({lapses().counted(b)})[2] + most[n] - units > slack then
        retry, denying = NEVER, -2
      end
    end
    if draw and units > drawn.left then refused = {-4, drawn.left} end
    if b.suspended > stamp and b.suspended > retry then retry, denying = b.suspended, -1 end
    local room, held, hard = NEVER, draw and 0 or b.live, 0
    if b.outside then b.outside = nil end -- of the call before
    for _ = 1, limits do
      nth = nth + 1
      local window, from, ends, cap, of
      window, from, ends, cap, of, p = unpacked('<ddddd', numbers, p)
      local watched = of < 0
      if watched then of = -1 - of else hard = hard + 1 end
      local before, level
      local first, last = from, ends
      if window > 0 and from == 0 then
        from = stamp - window + 1
        before = base(b, from, stamp)
      else
        W = W or windows()
        from, ends, before, level = W.look(b, window, from, ends, stamp)
      end
      if not before or window == -1 and stamp < of then refused = {-1, stamp} break end
      local others = b.others and not level and others_in(b, window, first, last, from)
      local used = b.total - before + (others and others[5] or 0)
      if watched then -- it leaves room for anything
      elseif from > stamp then -- an anchored window, before which the clock was set back
        outside_later = true
        b.outside = math.min(b.outside or NEVER, cap - used - b.live)
      elseif cap - used < room then
        room = cap - used
      end
      if draw then cap = of end
      if units > cap and window ~= -1 and never == 0 and not observe and not watched then never = nth end
      if used + held + units > cap then
        if watched then would = would or {retry = 0, denying = 0, pace = 0} end
        if window == -1 then -- reported only if nothing else denies; the caller computes when it allows
          if watched then would.pace = nth else pace = nth end
        else
          if held > 0 and (made or drawn_on) then refused = {-1, stamp} break end -- fits reads what is held
          local at = fits(b, window, from, ends, before, level, others, units, cap, held, stamp)
          if watched then
            if at > would.retry then would.retry, would.denying = at, nth end
          elseif at > retry then
            retry, denying = at, nth
          end
        end
      end
    end
    if b.total + units > EXACT then refused = refused or {err = 'QUOTATOTAL ' .. b.log} end
    if refused then break end
    taken[n], reply[n + 5] = units, hard > 0 and b.suspended > stamp and 0 or room - b.live
  end

  if never > 0 then refused = refused or {-5, never} end
  if refused then replies[c] = refused break end
  if denying == 0 and pace > 0 then retry, denying = NEVER, pace end
  if denying == 0 and would then -- nothing denies, but what is observed would
    retry, denying, pace = would.retry, would.denying, would.pace
    if denying == 0 and pace > 0 then retry, denying = NEVER, pace end
    observe = denying > 0
  end

  -- outside is what remains beside a window that begins later: what is charged now is not in it.
  local outside = outside_later and function(n, b, allowed, draw)
    local units = allowed and taken[n] or 0
    local inside = draw and reply[n + 5] or reply[n + 5] - units
    return math.max(0, math.min(inside, b.outside + (draw and units or ttl > 0 and -units or 0)))
  end

  if denying ~= 0 then reply[1], reply[4], reply[5] = observe and 2 or 0, denying, retry end
  if reply[1] == 0 or ttl < 0 then
    if reply[1] == 1 then reply[5] = -1 end
    for n, b in ipairs(buckets) do
      local charged = reply[1] > 0 and n ~= draws and taken[n] or 0
      reply[n + 5] = b.outside and outside(n, b, reply[1] > 0, n == draws) or math.max(0, reply[n + 5] - charged)
    end
    replies[c] = reply
    break
  end

  -- Record: what can fail comes first.
  for n = 1, ttl > 0 and many or 0 do
    local b = buckets[n]
    local field = opening and b.field or not opening and call('HGET', b.state, 'r:' .. id)
    local old = field and parse(b, id, field)
    if old and old.expires > stamp or made and made[id] then refused = {-2} break end
    if old then -- an expired one with this id gives way
      if calls > 1 then refused = {-1, stamp} break end
      if call('ZREM', b.index, old.member) == 0 then lapses().unlisted(b, old) end
      drop(b, old)
    end
  end
  if refused then replies[c] = refused break end
  local mark = marks and marks[line]
  if denying ~= 0 and ttl <= 0 then -- observed: the entry says what would have denied it
    mark = '=' .. line .. (line == '' and '' or '&') .. 'denied=' .. ARGV[first + 5 + math.max(0, denying)]
  elseif not mark or line == '' then
    mark = intern(code, line)
    if calls > 1 then
      marks = marks or {}
      marks[line] = mark
    end
  end
  if mark ~= code and denying == 0 then reply[5] = -1 end
  local tail = packed > 0 and string.sub(numbers, pos - packed, pos - 1) or mark == code and ARGV[first] or
    id .. ':' .. mark .. run
  at = at or format('%d', stamp)
  recorded = true
  if keep > longest then longest = keep end

  for n = 1, many do
    local b = buckets[n]
    local draw, units = n == draws, taken[n]
    if ttl > 0 then
      local expires, flags, most = stamp + ttl, flags[n], most[n]
      local by, charged = format('%d', expires), flags % 4 > 1 and 1 or 0
      local record = struct.pack(RECORD, units, expires, 0, units, stamp, most, flags)
      made = made or {}
      local list, member = made[n], string.sub(record, 1, 7) .. (flags > 1 and '+' or ':') .. id
      if list then
        list[#list + 1], list[#list + 2] = by, member
      else
        made[n] = {by, member}
      end
      made[id] = true
      also(b, 'r:' .. id, record .. (flags > 1 and mark .. run .. ':' or '::') .. reservation)
      if b.holds == 0 then
        if not b.next or not call('ZSCORE', b.index, '-') then
          made[n][3], made[n][4] = '-inf', '-'
          b.fresh = b.fresh or 'holds' -- the sorted set is new
        end
        b.charges, b.extra, b.next = 0, 0, EXACT
      end
      b.holds, b.held, b.live = b.holds + 1, b.held + units, b.live + units
      b.charges, b.extra = b.charges + charged, b.extra + most - units
      if expires < b.next then b.next = expires end
      if b.newest < stamp - 1 then b.newest = stamp - 1 end -- later decisions are not made at an earlier time
      if expires > (last_expiry or 0) then last_expiry = expires end
      if expires < lapse then lapse = expires end
      reply[many + 6] = expires
    else
      append(b, stamp, units, tail, keep, at, packed > 0)
      if draw then
        drawn.left, drawn.drawn = drawn.left - units, drawn.drawn + units
        b.held, b.live = b.held - units, b.live - units
        drawn_on = drawn_on or {}
        if not drawn_on[draws .. reservation] then
          drawn_on[draws .. reservation] = drawn
          drawn_on[#drawn_on + 1], drawn_on[#drawn_on + 2] = b, drawn
        end
      end
    end
    local room = draw and reply[n + 5] or reply[n + 5] - units -- the reservation was counted already
    reply[n + 5] = b.outside and outside(n, b, true, draw) or room > 0 and room or 0
    if b.levels then W.charged(b, ttl > 0 and 0 or units, stamp) end
  end
  if key then
    local text = {id, denying == 0 and '-' or ARGV[first + 5 + math.max(0, denying)], ARGV[first + 4]}
    for n, value in ipairs(reply) do text[n + 3] = format('%d', value) end
    kept = kept or {}
    kept[key] = {text = fingerprint .. '\n' .. table.concat(text, ' '), ms = keep_answer}
  end
  replies[c] = reply
until true end

if not recorded then return replies end

-- Write.
for i = 1, drawn_on and #drawn_on or 0, 2 do lapses().put(drawn_on[i], drawn_on[i + 1]) end
for n = 1, many do
  local b = buckets[n]
  if made then
    b.known = b.found or b.known
    call('ZADD', b.index, unpack(made[n]))
    if b.lapsed then lapses().forget(b, match(ARGV[2], '^[^:]*')) end -- of a call alone, as its id gave way
  end
  if b.levels then W.keep_levels(b, b.levels) end
  save(b, now, longest, last_expiry)
end
if kept then
  for key, answer in pairs(kept) do call('SET', key, answer.text, 'PX', format('%d', answer.ms)) end
end
return replies
