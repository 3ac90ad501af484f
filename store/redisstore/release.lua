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
--   {-1, Redis key}  if that key holds something foreign; nothing was changed

<% include epoch.lua %>

<% include lock.lua %>

local damaged = load() or look(tonumber(ARGV[7] or 0))
if damaged then
  return {-1, damaged}
end

local owner, used, keep, uncertain = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]
local held
if record and record.owner == owner then
  held = 1
  used = math.max(used, record.token)
  last = math.max(last, used)
  if keep ~= '0' then
    -- Nobody holds the key now, and nobody can renew that. This write comes first because
    -- a server out of memory allows it, and then allows the others.
    redis.call('PEXPIRE', lock, keep)
    store()
    redis.call('SET', lock, <% record text(used) | '-' | '-' | '-' | record.holder %>, 'PX', keep)
    record = {token = used, owner = '-', channel = '-', flags = '-', holder = record.holder}
    wake()
  elseif not pass() then
    return {-1, waiters}
  end
else
  held = record and record.owner ~= '-' and -3 or -2 -- nobody holds a key that is kept back
  local first = record and record.owner == '-' and redis.call('ZRANK', queue, owner) == 0
  remove({owner})
  if first then
    wake() -- the one behind it did not know that it would be the first
  end
  if grace > 0 and used > 0 and not (record and record.token >= used) then
    -- The record was lost with others, and nobody was granted the key since.
    held = 1
    if used > last then
      last = used
      store()
    end
  end
end

if uncertain == '1' or grace > 0 then
  -- A request of this owner may still be on its way. In the grace that may be a renewal,
  -- which would write the holding anew. The owner is remembered for longer than data
  -- lives in a connection that was given up. The kernel resends what it had buffered
  -- for about 100 s. The effect of a later request ends by its TTL.
  occupy()
  redis.call('ZREMRANGEBYSCORE', gone, '-inf', text(now_ms))
  redis.call('ZADD', gone, text(now_ms + remember), owner)
  redis.call('PEXPIRE', gone, math.max(remember, redis.call('PTTL', gone)))
end

if #ARGV == 6 then
  return held
end
note()
local reply = acquire(4)
table.insert(reply, 1, held)
return reply
