-- grace: whether a request for a key of a bucket would be granted now, or has to wait. It changes nothing.
--
-- KEYS  the epoch six times (epoch.lua has it sixth)
-- ARGV  the shortest grace (ms)
--
-- Reply: a number, and for how many ms nothing is granted. The number is 0 if the grace runs or is over, 1 if it
-- begins with the next request, 2 if the server hides its history, and 3 if the epoch is not one.

<% include epoch.lua %>

if look(least) then
  return {3, 0}
elseif hidden then
  return {2, 0}
end
return {begins and 1 or 0, grace}
