-- acquire: take the key, or join its queue, or neither. Sent again for the same
-- owner it is the waiter's heartbeat, brings a dropped waiter back to its place,
-- and finds a grant whose message was missed.
--
-- KEYS  lock, queue, waiters, counter, gone (see promote.lua), epoch (epoch.lua)
-- ARGV  owner, channel, ttl, ttl if granted by message, liveness (all ms),
--       wait (0 or 1), queue limit (0: none), ticket (0: none), flags, holder,
--       least grace (ms; 0: no guard)
--
-- Reply, by its first element:
--   1 granted   token, waiters, whether the token came from the clock
--   2 waiting   rank, the holder's remaining ms, ticket, the last token given,
--               for how long (ms) nobody is granted anything
--   3 held      the holder's token and remaining ms, waiters, its description,
--               whether (0 or 1) it was told that somebody wants the key
--   4 full      waiters
--   5 gone      this owner was withdrawn
--   6 grace     for how long (ms) nobody is granted anything
--   7 hidden    the server hides its history; nothing was changed
--  -1 foreign   the Redis key that holds something else; nothing was changed

-- The key is free and nobody was here lately. This comes before any function
-- definition: creating closures is what makes a short script slow.
local taken = redis.pcall('GET', KEYS[1])
if not taken and redis.call('EXISTS', KEYS[2], KEYS[5]) == 0 then
  local last = redis.pcall('GET', KEYS[4])
  if not last or (type(last) == 'string' and #last <= 16 and string.find(last, '^%d+$')) then
    local time = redis.call('TIME')
    local sure = ARGV[11] == '0'
    if not sure then -- see epoch.lua
      local epoch, info = redis.pcall('GET', KEYS[6]), redis.pcall('INFO', 'replication')
      if type(epoch) == 'string' and type(info) == 'string' then
        local incarnation, ready, longest, turn = string.match(epoch, '^(%x+) (%d+) (%d+) %d+ (%d+)$')
        local ms = time[1] * 1000 + time[2] / 1000
        sure = incarnation and string.find(info, 'master_replid:' .. incarnation, 1, true)
          and ms >= ready + 0 and ms < turn + 0 and ARGV[3] + 0 <= longest + 0
      end
    end
    local token, flags, clocked = time[1] * 1000000 + time[2], ARGV[9], 1
    if last and last + 1 > token then
      token, clocked = last + 1, 0
    else
      flags = flags == '-' and 't' or flags .. 't'
    end
    if sure and token <= 9e15 then -- see whole in promote.lua
      -- '%.0f', because Lua itself prints 14 digits only.
      local text = string.format('%.0f', token)
      redis.call('SET', KEYS[4], text, 'PX', 86400000)
      redis.call('SET', KEYS[1], text .. ' ' .. ARGV[1] .. ' ' .. ARGV[2] .. ' ' .. flags .. ' ' .. ARGV[10], 'PX', ARGV[3])
      return {1, token, 0, clocked}
    end
  end
end

--include epoch.lua
--include promote.lua

local damaged = load() or look(tonumber(ARGV[3]))
if damaged then
  return {-1, damaged}
end
if hidden then
  return {7}
end
note()
return acquire(0)
