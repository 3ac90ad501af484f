-- acquire_shares: what acquire.lua does, where the request is for a share of the key, or
-- others share it.
--
-- KEYS  lock, queue, waiters, counter, gone (see lock.lua), epoch (epoch.lua), members, details,
--       ceiling (shares.lua)
-- ARGV  owner, channel, ttl, ttl if granted by message, liveness (all ms), wait (0 or 1),
--       queue limit (0: none), ticket (0: none), flags, holder, the counter's TTL (ms), least
--       grace (ms; 0: no guard)
--
-- Reply: as of acquire.lua, but never 8, or
--   9 granted a share   its number, waiters, the readers' token (0 of permits), how many
--                       permits, and how many there are (0 and 0 of a reader)
--  10 too much          how many permits there are; the owner is not in the queue
-- A reply of 2, 3 or 4 to a request for permits ends with how many there are, and how many are out.

<% include epoch.lua %>

<% include lock.lua %>

<% include shares.lua %>

local damaged = load() or look(tonumber(ARGV[3]))
if damaged then
  return {-1, damaged}
end
if hidden then
  return {7}
end
damaged = open()
if damaged then
  return {-1, damaged}
end
note()
local reply = request(0)
finish()
return reply
