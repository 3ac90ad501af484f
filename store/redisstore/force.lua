-- force: take the key from its holder, or from nobody if it is kept back. The next
-- waiter is given the key, and the old holder is notified.
--
-- KEYS  lock, queue, waiters, counter, gone (see lock.lua), epoch (epoch.lua)
-- ARGV  token of the holding that is meant (0: any), the counter's TTL (ms), least grace (ms;
--       0: no guard)
--
-- Reply:
--   1                if there was a holder, else 0
--   {3, token, remaining ms, waiters, description}  the holder, if its token is another
--                    one; nothing was changed
--   {-1, Redis key}  if that key holds something foreign; nothing was changed

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
local meant = tonumber(ARGV[1])
if meant ~= 0 and meant ~= old.token then
  return {3, old.token, redis.call('PTTL', lock), size, old.holder}
end
if string.find(old.flags, 't', 1, true) then
  -- The old holder may pass the key on inside its client, with a token for each
  -- microsecond. It does so until it is notified, or stops trusting its TTL. The next
  -- holder's token has to be larger than all of these, so that resources refuse them.
  last = math.max(last, now) + redis.call('PTTL', lock) * 1000
end
if not pass() then
  return {-1, waiters}
end
if grace > 0 and old.owner ~= '-' then
  -- The old holder may write its holding anew until it is notified.
  local so_long = math.max(remember, grace)
  redis.call('ZADD', gone, text(now_ms + so_long), old.owner)
  redis.call('PEXPIRE', gone, math.max(so_long, redis.call('PTTL', gone)))
end
notify(old.channel, <% forced old.owner %>)
return 1
