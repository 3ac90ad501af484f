-- release: end what an owner has, its holding or its place in the queue, and
-- give a holding straight to the next waiter; on request, queue again in the
-- same step under another owner. The common cases are release_fast.lua's.
--
-- KEYS  lock, queue, waiters, counter, gone (see lock.lua), epoch (epoch.lua)
-- ARGV  owner, last token used, ms to keep the key back (0: none), uncertain (0
--       or 1), then, to queue again, a request as in acquire.lua; least grace (ms;
--       0: no guard)
--
-- Reply: 1 if the owner held the key until now, else 0; to a request to queue
-- again, a list of that and the reply of acquire.lua; {-1, Redis key} if that
-- key holds something foreign, and then nothing was changed.

<% include epoch.lua %>

<% include lock.lua %>

local damaged = load() or look(tonumber(ARGV[7] or 0))
if damaged then
  return {-1, damaged}
end

local owner, used, keep, uncertain = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]
local held = 0
if record and record.owner == owner then
  held = 1
  used = math.max(used, record.token)
  last = math.max(last, used)
  if keep ~= '0' then
    -- Nobody holds it now, and nobody can renew that. The first write is one that
    -- a server out of memory allows, and then the others too.
    redis.call('PEXPIRE', lock, keep)
    redis.call('SET', counter, text(last), 'PX', day)
    redis.call('SET', lock, <% record text(used) | '-' | '-' | '-' | record.holder %>, 'PX', keep)
    record = {token = used, owner = '-', channel = '-', flags = '-', holder = record.holder}
  elseif not pass() then
    return {-1, waiters}
  end
else
  remove({owner})
  if grace > 0 and used > 0 and not (record and record.token >= used) then
    -- Its record was lost with others, and nobody was granted the key since.
    held = 1
    if used > last then
      last = used
      redis.call('SET', counter, text(last), 'PX', day)
    end
  end
end

if uncertain == '1' or grace > 0 then
  -- A request of this owner may still be on its way. It is remembered for longer
  -- than data lives in a connection that was given up: the kernel resends what
  -- it had buffered for about 100 s. Whatever comes later ends by its TTL. As long as
  -- holders write theirs anew, a late renewal is such a request.
  redis.call('ZREMRANGEBYSCORE', gone, '-inf', text(now_ms))
  redis.call('ZADD', gone, text(now_ms + remember), owner)
  redis.call('PEXPIRE', gone, math.max(remember, redis.call('PTTL', gone)))
end

if #ARGV == 5 then
  return held
end
note()
local reply = acquire(4)
table.insert(reply, 1, held)
return reply
