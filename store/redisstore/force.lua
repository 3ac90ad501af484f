-- force: take the key from its holder, from all who share it, or from nobody if it is kept
-- back. The next waiters are given the key, and the old holders are notified.
--
-- KEYS  lock, queue, waiters, counter, gone (see lock.lua), epoch (epoch.lua); then, if others share
--       the key, members, details, ceiling (shares.lua)
-- ARGV  token of the holding that is meant (0: any), the counter's TTL (ms), least grace (ms;
--       0: no guard)
--
-- Reply:
--   1                if there was a holder, else 0
--   {3, token, remaining ms, waiters, description}  the holder, if its token is another
--                    one; nothing was changed
--   {-1, Redis key}  if that key holds something foreign; nothing was changed
--   8                the last three keys are needed; nothing was changed
--  -6                as of release.lua

<% include epoch.lua %>

<% include lock.lua %>

<% include shares.lua %>

local damaged = load() or look(0) or open()
if damaged then
  return damaged == again and again or {-1, damaged}
end
if shared and not members then
  return 8
end
local old, all = record, group
if not old and not all then
  finish()
  return 0
end
local meant = tonumber(ARGV[1])
if meant ~= 0 and meant ~= (old and old.token or all.shown) then
  finish()
  if all then
    return {3, all.shown, remaining(), size, described()}
  end
  return {3, old.token, redis.call('PTTL', lock), size, old.holder}
end
local choice = grace > 0 and {} or choose()
if not choice then
  return {-1, waiters}
elseif choice.more then
  remove(choice.leaving)
  return again
end
if not members and choice.owner and <% sharing choice.flags %> then
  return 8
end
if old and string.find(old.flags, 't', 1, true) then
  -- The old holder may pass the key on inside its client, with a token for each
  -- microsecond. It does so until it is notified, or stops trusting its TTL. The next
  -- holder's token has to be larger than all of these, so that resources refuse them.
  last = math.max(last, now) + redis.call('PTTL', lock) * 1000
end
-- The owner of whom a renewal may still write the holding anew. A reader of the group may have had all of the key
-- before.
local late = grace > 0 and (all and all.writer or old.owner) or '-'
if all then
  tell(<% forced '' %>)
  redis.call('UNLINK', members, details, larger)
end
record, group, changed = nil, nil, true
if grace == 0 then
  serve()
end
if old then
  mail[#mail + 1] = {old.channel, <% forced old.owner %>}
end
finish()
if late ~= '-' then
  -- The old holder may write its holding anew until it is notified. A holder of permits can't, and a reader
  -- only if a renewal from before its downgrade is under way.
  local so_long = math.max(remember, grace)
  redis.call('ZADD', gone, text(now_ms + so_long), late)
  redis.call('PEXPIRE', gone, math.max(so_long, redis.call('PTTL', gone)))
end
return 1
