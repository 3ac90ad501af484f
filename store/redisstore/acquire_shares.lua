-- acquire_shares: what acquire.lua does, where the request is for a share of the key, or
-- others share it.
--
-- KEYS  lock, queue, waiters, counter, gone (see lock.lua), epoch (epoch.lua), members, details
--       (shares.lua)
-- ARGV  owner, channel, ttl, ttl if granted by message, liveness (all ms), wait (0 or 1),
--       queue limit (0: none), ticket (0: none), flags, holder, the counter's TTL (ms), least
--       grace (ms; 0: no guard)
--
-- Reply: as of acquire.lua, but never 8, or
--   9 granted a share   its number, waiters, the readers' token (0 of permits), how many
--                       permits (0 of a reader)

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
