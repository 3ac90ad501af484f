-- release: end what an owner has, its holding or its place in the queue, and
-- give a holding straight to the next waiter; on request, queue again in the
-- same step under another owner.
--
-- KEYS  lock, queue, waiters, counter, gone (see promote.lua)
-- ARGV  owner, last token used, ms to keep the key back (0: none), uncertain (0
--       or 1), then, to queue again, a request as in acquire.lua
--
-- Reply: 1 if the owner held the key until now, else 0; to a request to queue
-- again, a list of that and the reply of acquire.lua; {-1, Redis key} if that
-- key holds something foreign, and then nothing was changed.

-- Held, no more tokens used than the record knows, and nobody waits.
if #ARGV == 4 and ARGV[3] == '0' and ARGV[4] == '0' then
  local value = redis.pcall('GET', KEYS[1])
  if type(value) == 'string' then
    local token, owner = string.match(value, '^(%d+) (%S+) ')
    if owner == ARGV[1] and token == ARGV[2] and redis.call('EXISTS', KEYS[2]) == 0 then
      redis.call('DEL', KEYS[1])
      return 1
    end
  end
end

--include promote.lua

local damaged = load()
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
    -- Nobody holds it now, and nobody can renew that.
    redis.call('SET', counter, text(last), 'PX', day)
    redis.call('SET', lock, text(used) .. ' - - - ' .. record.holder, 'PX', keep)
    record = {token = used, owner = '-', channel = '-', flags = '-', holder = record.holder}
  elseif not pass() then
    return {-1, waiters}
  end
else
  remove({owner})
end

if uncertain == '1' then
  -- A request of this owner may still be on its way. It is remembered for longer
  -- than data lives in a connection that was given up: the kernel resends what
  -- it had buffered for about 100 s. Whatever comes later ends by its TTL.
  redis.call('ZREMRANGEBYSCORE', gone, '-inf', text(now_ms))
  redis.call('ZADD', gone, text(now_ms + remember), owner)
  redis.call('PEXPIRE', gone, remember)
end

if #ARGV == 4 then
  return held
end
local reply = acquire(4)
table.insert(reply, 1, held)
return reply
