-- limit: say how many permits the key has, for everyone, or forget what was said. The next waiters
-- are given what they can have now.
--
-- KEYS  lock, queue, waiters, counter, gone (see lock.lua), epoch (epoch.lua), members, details,
--       ceiling (shares.lua)
-- ARGV  how many permits there are (0: as holders and requests say), the counter's TTL (ms), least
--       grace (ms; 0: no guard)
--
-- Reply: 1, or {-1, Redis key} if that key holds something foreign, and then nothing was changed, or -6, as of
--        release.lua

<% include epoch.lua %>

<% include lock.lua %>

<% include shares.lua %>

local damaged = load() or look(0) or open()
if damaged then
  return damaged == again and again or {-1, damaged}
end
local choice = {}
if size > 0 and grace == 0 and not record then
  choice = choose()
end
if not choice then
  return {-1, waiters}
elseif choice.more then
  remove(choice.leaving)
  return again
end
-- A server out of memory refuses this write, or allows it, and then allows the rest.
if ARGV[1] == '0' then
  redis.call('DEL', ceiling)
  most = nil
else
  redis.call('SET', ceiling, ARGV[1])
  most = tonumber(ARGV[1])
end
if group and group.kind == '=p' then
  tell(<% wake '' %>)
end
if grace == 0 then
  serve()
end
finish()
return 1
