-- grace: whether a request for a key of a bucket would be granted now, or has to wait, and why. It changes nothing.
--
-- KEYS  the epoch six times (epoch.lua has it sixth)
-- ARGV  the shortest grace (ms)
--
-- Reply: a number, and for how many ms nothing is granted. The number is 0 if the grace runs or is over, 1 if it
-- begins with the next request, 2 if the server hides its history, and 3 if the epoch is not one. With 0 and 1 the
-- clock (ms), the epoch, the cause and what INFO says of the replication follow.

<% include epoch.lua %>

if look(least) then
  return {3, 0}
elseif hidden then
  return {2, 0}
end
local function text(key)
  local value = redis.pcall('GET', key)
  return type(value) == 'string' and value or ''
end
return {begins and 1 or 0, grace, now_ms, text(epoch), text(beside), info}
