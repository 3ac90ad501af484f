-- release: end a holding of an owner, or its place in the queue, and give a holding
-- straight to the next waiter. On request, the client queues again in the same step,
-- under another owner. release_fast.lua has the common cases.
--
-- KEYS  lock, queue, waiters, counter, gone (see lock.lua), epoch (epoch.lua)
-- ARGV  owner, last token used, ms to keep the key back (0: none), uncertain (0
--       or 1), then, to queue again, a request as in acquire.lua; the counter's TTL
--       (ms), least grace (ms; 0: no guard)
--
-- Reply:
--   1, -2 or -3      the owner held the key until now, nobody holds it, or somebody else
--   {that, reply}    to a request to queue again, with the reply of acquire.lua
--   8                others share the key, or the next waiter will. release_shares.lua answers, to
--                    whom it does not matter what was done here: nothing, or a withdrawal
--   {-1, Redis key}  if that key holds something foreign; nothing was changed
--   -6               very many have died, and some were dropped; nothing else was changed. This may also be
--                    the reply to queue again, as {-6}

<% include epoch.lua %>

<% include lock.lua %>

local damaged = load() or look(tonumber(ARGV[7] or 0))
if damaged then
  return {-1, damaged}
end

if shared then
  return 8
end

local owner, used, keep, uncertain = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]
local held
if record and record.owner == owner then
  held = 1
  used = math.max(used, record.token)
  last = math.max(last, used)
  if keep ~= '0' then
    local choice = choose()
    if choice and choice.more then
      remove(choice.leaving) -- until wake finds somebody
      return again
    end
    hold_back(used, keep)
  else
    local instead = pass()
    if instead then
      return instead
    end
  end
else
  held = record and record.owner ~= '-' and -3 or -2 -- nobody holds a key that is kept back
  local first = record and record.owner == '-' and redis.call('ZRANK', queue, owner) == 0
  remove({owner})
  if first then
    wake() -- the one behind it did not know that it would be the first
  end
  if forgot(used, record and record.token) then
    held = 1
  end
end

if uncertain == '1' or grace > 0 then
  tombstone(owner)
end

if #ARGV == 6 then
  return held
end
note()
local reply = acquire(4)
if reply == again then
  reply = {again}
elseif reply[1] == 8 then
  return 8
end
table.insert(reply, 1, held)
return reply
