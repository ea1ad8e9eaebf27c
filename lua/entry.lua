-- entry.lua: reads and writes members of a log. It stands before all others.
--
-- member  packed, where its ID and labels are what they usually are: the running total after it (seven
--         bytes) and its units (four), big-endian; the ID's 14 letters, with the ten of the run if there
--         is one, as ten or 15 bytes; the four letters of the code of the labels, if there are any. The
--         letters are of five bits, the highest first, two of zeros after an ID alone
--         else <total>:<units>:<id>:<labels>[:<run>], whose first byte is above that of any total.
--         Both may stand in one log

local unpacked = struct.unpack

-- totals reads the running total after an entry and its units; nil if it cannot. Where each percent
-- counts, a packed member is read without a call of it.
local function totals(member)
  local total, units
  if #member > 20 then total, units = unpacked('>I7I4', member) end
  if not total or total > 9007199254740991 then
    total, units = string.match(member, '^(%d+):(%d+):')
    if total then total, units = total + 0, units + 0 end -- faster than tonumber
  end
  return total, units
end
