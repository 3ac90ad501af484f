-- acquire: take the key, or join its queue, or neither. Sent again for the same
-- owner it is the waiter's heartbeat, brings a dropped waiter back to its place,
-- and finds a grant whose message was missed.
--
-- KEYS  lock, queue, waiters, counter, gone (see promote.lua)
-- ARGV  owner, channel, ttl, ttl if granted by message, liveness (all ms),
--       wait (0 or 1), queue limit (0: none), ticket (0: none), flags, holder
--
-- Reply, by its first element:
--   1 granted   token, waiters, whether the token came from the clock
--   2 waiting   rank, the holder's remaining ms, ticket, the last token given
--   3 held      the holder's token and remaining ms, waiters, its description
--   4 full      waiters
--   5 gone      this owner was withdrawn
--  -1 foreign   the Redis key that holds something else; nothing was changed

-- The key is free and nobody was here lately. This comes before any function
-- definition: creating closures is what makes a short script slow.
local taken = redis.pcall('GET', KEYS[1])
if not taken and redis.call('EXISTS', KEYS[2], KEYS[5]) == 0 then
  local last = redis.pcall('GET', KEYS[4])
  if not last or (type(last) == 'string' and #last <= 16 and string.find(last, '^%d+$')) then
    local time = redis.call('TIME')
    local token, flags, clocked = time[1] * 1000000 + time[2], ARGV[9], 1
    if last and last + 1 > token then
      token, clocked = last + 1, 0
    else
      flags = flags == '-' and 't' or flags .. 't'
    end
    if token <= 9e15 then -- see whole in promote.lua
      -- '%.0f', because Lua itself prints 14 digits only.
      local text = string.format('%.0f', token)
      redis.call('SET', KEYS[4], text, 'PX', 86400000)
      redis.call('SET', KEYS[1], text .. ' ' .. ARGV[1] .. ' ' .. ARGV[2] .. ' ' .. flags .. ' ' .. ARGV[10], 'PX', ARGV[3])
      return {1, token, 0, clocked}
    end
  end
end

--include promote.lua

local damaged = load()
if damaged then
  return {-1, damaged}
end
return acquire(0)
