-- inspect: who holds the key and who waits for it. It changes nothing and never shows
-- an owner.
--
-- KEYS  lock, queue, waiters (see lock.lua)
-- ARGV  how many waiters to describe
--
-- Reply: 1 if held, else 0; the holder's token, remaining ms and description; how many
-- wait; then description and age in ms of the first few waiters. The reply is
-- {-1, Redis key} if that key holds something foreign.

-- foreign answers for a key that is not what it has to be. The answer is that the key is
-- foreign, or the server's own error if we may not read the key.
local function foreign(found, key)
  if type(found) == 'table' and not string.find(found.err, 'WRONGTYPE', 1, true) then
    return found
  end
  return {-1, key}
end

local reply = {0, 0, -2, '', 0}

local value = redis.pcall('GET', KEYS[1])
if value then
  if type(value) ~= 'string' then
    return foreign(value, KEYS[1])
  end
  local token, holder = string.match(value, <% pattern record | token holder %>)
  if not token or #token > 16 or tonumber(token) > 9e15 then
    return {-1, KEYS[1]}
  end
  reply = {1, tonumber(token), redis.call('PTTL', KEYS[1]), holder, 0}
end

reply[5] = redis.pcall('ZCARD', KEYS[2])
if type(reply[5]) ~= 'number' then
  return foreign(reply[5], KEYS[2])
end
local count = tonumber(ARGV[1])
if count == 0 or reply[5] == 0 then
  return reply
end

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local first = redis.call('ZRANGE', KEYS[2], 0, count - 1, 'WITHSCORES')
for i = 1, #first, 2 do
  local entry = redis.pcall('HGET', KEYS[3], first[i])
  if entry then -- the next handoff drops a waiter without an entry
    local holder = type(entry) == 'string' and string.match(entry, <% pattern entry | holder %>)
    if not holder then
      return foreign(entry, KEYS[3])
    end
    reply[#reply + 1] = holder
    -- A ticket is the time at which the waiter took it, or a little more.
    reply[#reply + 1] = math.max(0, math.floor((now - tonumber(first[i + 1])) / 1000))
  end
end
return reply
