-- force: take the key from whoever holds it, also from nobody who keeps it back,
-- give it to the next waiter and tell the old holder.
--
-- KEYS  lock, queue, waiters, counter, gone (see lock.lua), epoch (epoch.lua)
-- ARGV  least grace (ms; 0: no guard)
--
-- Reply: 1 if there was a holder, else 0; {-1, Redis key} if that key holds
-- something foreign, and then nothing was changed.

<% include epoch.lua %>

<% include lock.lua %>

local damaged = load() or look(0)
if damaged then
  return {-1, damaged}
end
if not record then
  return 0
end
local old = record
if string.find(old.flags, 't', 1, true) then
  -- Until it hears of this, or stops trusting its TTL, the old holder may pass
  -- the key on inside its client, with a token for each microsecond. The next
  -- holder's is to be larger than all of these, so that resources refuse them.
  last = math.max(last, now + redis.call('PTTL', lock) * 1000)
end
if not pass() then
  return {-1, waiters}
end
if grace > 0 and old.owner ~= '-' then
  -- Until the old holder hears of this, it may write its holding anew.
  local so_long = math.max(remember, grace)
  redis.call('ZADD', gone, text(now_ms + so_long), old.owner)
  redis.call('PEXPIRE', gone, math.max(so_long, redis.call('PTTL', gone)))
end
tell(old.channel, <% forced old.owner %>)
return 1
