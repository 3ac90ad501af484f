-- reassert: write a holding anew that renew.lua did not find, because the server
-- has forgotten it.
--
-- That is so only until the server grants again: until then nobody can have been
-- given the key since, and of two who say that they hold it the one with the
-- larger token is right, since the other's lease had ended before that token was
-- given.
--
-- KEYS  lock, queue, waiters, counter, gone (see lock.lua), epoch (epoch.lua)
-- ARGV  owner, channel, ttl (ms), last token used, holder, least grace (ms)
--
-- Reply: how many wait for the key, or
--   -2 nobody holds the key
--   -3 somebody else does
-- or {-1, Redis key} if that key holds something foreign, and then nothing was
-- changed.

<% include epoch.lua %>

<% include lock.lua %>

local owner, channel, ttl, used, holder = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]

local damaged = load() or look(ttl, true)
if damaged then
  return {-1, damaged}
end
if record and record.owner ~= owner and (grace == 0 or record.token >= used) then
  return record.owner == '-' and -2 or -3
end
if not record and (grace == 0 or used == 0) then
  return -2
end
if withdrawn > 0 then
  local deadline = redis.call('ZSCORE', gone, owner)
  if deadline and tonumber(deadline) > now_ms then
    return -2
  end
end
if record and record.owner == owner then -- this is a repetition
  used, ttl = math.max(used, record.token), math.max(ttl, redis.call('PTTL', lock))
end
-- The grant may have been forgotten, and not the waiting before it. This comes first,
-- because a server out of memory allows it, and then the rest of the script too.
remove({owner})
note()
-- What was asked of the lost record is not known: that its holder hears who queues
-- or asks in vain, and that its token was the clock's, are the answers that do no harm. The counter is
-- ahead of the token, so that the release finds no shortcut past the epoch.
redis.call('SET', counter, text(math.max(last, used + 1)), 'PX', day)
redis.call('SET', lock, <% record text(used) | owner | channel | 'hwt' | holder %>, 'PX', ttl)
return size
