-- reassert: write a holding anew that renew.lua did not find, because the server has
-- forgotten it.
--
-- This is possible only until the server grants again. Until then nobody can have been
-- given the key since. If two owners claim the key, the one with the larger token is
-- right. The other's lease had ended before that token was given.
--
-- It is about holders of all of a key. A share that the server has forgotten is lost. A group that the
-- server still knows goes, if all of it was granted before the holding: its time was over then.
--
-- KEYS  lock, queue, waiters, counter, gone (see lock.lua), epoch (epoch.lua); then, if others share
--       the key, members, details, ceiling (shares.lua)
-- ARGV  owner, channel, ttl (ms), last token used, holder, the counter's TTL (ms), least grace
--       (ms)
--
-- Reply: how many wait for the key, or
--   -2               nobody holds the key
--   -3               somebody else holds the key
--   {-1, Redis key}  that key holds something foreign; nothing was changed
--   8                the last three keys are needed; nothing was changed
--  -6               as of release.lua

<% include epoch.lua %>

<% include lock.lua %>

<% include shares.lua %>

local owner, channel, ttl, used, holder = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]

local damaged = load() or look(ttl, true) or open()
if damaged then
  return damaged == again and again or {-1, damaged}
end
if shared and not members then
  return 8
end
if group and (grace == 0 or group.token >= used) then
  finish()
  return nobodys() and -2 or -3
end
if record and record.owner ~= owner and (grace == 0 or record.token >= used) then
  return record.owner == '-' and -2 or -3
end
if not record and not group and (grace == 0 or used == 0 or vacant and vacant >= used) then
  return -2 -- in the last case the holding, or a later one, was given back
end
if withdrawn > 0 then
  local deadline = redis.call('ZSCORE', gone, owner)
  if deadline and tonumber(deadline) > now_ms then
    return -2
  end
end
if record and record.owner == owner then -- the request is a repetition
  used, ttl = math.max(used, record.token), math.max(ttl, redis.call('PTTL', lock))
end
-- The server may have forgotten the grant, but not the waiting before it. The removal
-- comes first because a server out of memory allows it, and then allows the rest of the
-- script.
remove({owner})
if group then
  redis.call('UNLINK', members, details, larger)
end
note()
-- The flags of the lost record are not known. The flags h, w and t do no harm. The
-- counter is ahead of the token, so that the release finds no shortcut past the epoch.
last = math.max(last, used + 1)
store()
redis.call('SET', lock, <% record text(used) | owner | channel | 'hwt' | holder %>, 'PX', ttl)
return size
