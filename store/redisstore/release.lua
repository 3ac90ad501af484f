-- release: end what an owner has, its holding or its place in the queue, and
-- give a holding straight to the next waiter; on request, queue again in the
-- same step under another owner.
--
-- KEYS  lock, queue, waiters, counter, gone (see promote.lua), epoch (epoch.lua)
-- ARGV  owner, last token used, ms to keep the key back (0: none), uncertain (0
--       or 1), then, to queue again, a request as in acquire.lua; least grace (ms;
--       0: no guard)
--
-- Reply: 1 if the owner held the key until now, else 0; to a request to queue
-- again, a list of that and the reply of acquire.lua; {-1, Redis key} if that
-- key holds something foreign, and then nothing was changed.

-- The two common ends of a holding come before any function definition, see
-- acquire.lua: nobody waits, or the first waiter is alive and there to be told.
-- promote.lua does the latter too, and whatever is less common; it says why each
-- step is as it is. Here nothing is written before everything was checked.
if #ARGV == 5 and ARGV[3] == '0' and ARGV[4] == '0' then
  local value = redis.pcall('GET', KEYS[1])
  local token, owner
  if type(value) == 'string' then
    token, owner = string.match(value, '^(%d+) (%S+) ')
  end
  -- Here and below numbers are given as text, which takes Redis half as long.
  local head = owner == ARGV[1] and redis.pcall('ZRANGE', KEYS[2], '0', '1')
  local first = head and head[1]
  if first then
    local entry, last = redis.pcall('HGET', KEYS[3], first), redis.pcall('GET', KEYS[4])
    if type(entry) == 'string' and type(last) == 'string' and string.find(last, '^%d+$') then
      local deadline, mode, channel, ttl, flags, holder = string.match(entry, '^(%d+) ([ps])(%S+) ([1-9]%d*) (%S+) (.*)$')
      local time = redis.call('TIME')
      -- Times and tokens are compared as text, of no more digits than now has: turning
      -- them into numbers and back takes as long as two commands.
      local now = time[1] .. string.sub('00000' .. time[2], -6)
      local sure = ARGV[5] == '0'
      if not sure then -- see epoch.lua
        local epoch, info = redis.pcall('GET', KEYS[6]), redis.pcall('INFO', 'replication')
        if type(epoch) == 'string' and type(info) == 'string' then
          local incarnation, ready = string.match(epoch, '^(%x+) (%d+) ')
          sure = incarnation and string.find(info, 'master_replid:' .. incarnation, 1, true) and #ready + 3 <= #now and now >= ready .. '000'
        end
      end
      if sure and deadline and #deadline + 3 == #now and deadline .. '000' >= now
        and #last <= #now and last < now and #token <= #now and token < now and #ARGV[2] <= #now and ARGV[2] < now
        and #ttl < 16 and string.find(first, '^%S+$')
        and redis.pcall('PUBSUB', mode == 'p' and 'NUMSUB' or 'SHARDNUMSUB', channel)[2] == 1 then
        local size = 0
        if head[2] then
          redis.call('ZREM', KEYS[2], first)
          redis.call('HDEL', KEYS[3], first)
          size = redis.call('ZCARD', KEYS[2])
        else -- the queue ends with it
          redis.call('DEL', KEYS[2], KEYS[3])
        end
        redis.call('SET', KEYS[4], now, 'PX', '86400000')
        redis.call('SET', KEYS[1], now .. ' ' .. first .. ' ' .. mode .. channel
          .. (flags == '-' and ' t ' or ' ' .. flags .. 't ') .. holder, 'PX', ttl)
        redis.pcall(mode == 'p' and 'PUBLISH' or 'SPUBLISH', channel, 'g ' .. first .. ' ' .. now .. ' ' .. ttl .. ' ' .. size .. ' 1')
        return 1
      end
    end
  elseif head and not head.err and token == ARGV[2] then
    -- What the counter does not say would be forgotten with the record, and should
    -- the clock be set back, the next token would be smaller.
    if redis.pcall('GET', KEYS[4]) == token then
      redis.call('DEL', KEYS[1])
      return 1
    end
  end
end

--include epoch.lua
--include promote.lua

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
    redis.call('SET', lock, text(used) .. ' - - - ' .. record.holder, 'PX', keep)
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
