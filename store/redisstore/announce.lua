-- announce: tell observers that a lease of the key has ended. It changes nothing.
--
-- KEYS  lock (see lock.lua), which names the slot
-- ARGV  the observers' channel, the key as it is in the Redis key, the lease's token
--
-- Reply: 0, whether or not anybody was told

local message = <% ended ARGV[2] | ARGV[3] %>
<% publish string.sub(ARGV[1], 1, 1) | string.sub(ARGV[1], 2) | message %>
return 0
