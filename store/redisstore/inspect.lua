-- inspect: who holds the key and who waits for it. It changes nothing and never shows
-- an owner.
--
-- KEYS  lock, queue, waiters (see lock.lua)
-- ARGV  how many waiters to describe
--
-- Reply: 1 if held, else 0; the holder's token, remaining ms and description; how many
-- living waiters there are; then description and age in ms of the first few of them. The
-- reply is {-1, Redis key} if that key holds something foreign.

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
  local vacant = <% vacant value %>
  local token, holder = string.match(value, <% pattern record | token holder %>)
  token = token or vacant
  if not token or #token > 16 or tonumber(token) > 9e15 then
    return {-1, KEYS[1]}
  end
  if not vacant then
    reply = {1, tonumber(token), redis.call('PTTL', KEYS[1]), holder, 0}
  end
end

local size = redis.pcall('ZCARD', KEYS[2])
if type(size) ~= 'number' then
  return foreign(size, KEYS[2])
end
-- The dead stay in the queue until a handoff or a newcomer drops them. So all entries
-- are read. That takes some 2 microseconds for each, on a busy machine.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local count = tonumber(ARGV[1])
for first = 0, size - 1, 500 do
  local owners = redis.call('ZRANGE', KEYS[2], first, first + 499)
  for i, owner in ipairs(owners) do
    local entry = redis.pcall('HGET', KEYS[3], owner)
    if type(entry) == 'table' then
      return foreign(entry, KEYS[3])
    end
    local deadline = entry and string.match(entry, <% pattern entry | deadline %>)
    -- The next handoff drops a waiter without an entry. An entry that can't be read is
    -- nobody's who has died.
    if entry and not (deadline and tonumber(deadline) < math.floor(now / 1000)) then
      reply[5] = reply[5] + 1
      if reply[5] <= count then
        local holder = string.match(entry, <% pattern entry | holder %>)
        if not holder then
          return {-1, KEYS[3]}
        end
        reply[#reply + 1] = holder
        -- A ticket is the time at which the waiter took it, or a little more.
        local place = first + i - 1
        local ticket = redis.call('ZRANGE', KEYS[2], place, place, 'WITHSCORES')[2]
        reply[#reply + 1] = math.max(0, math.floor((now - tonumber(ticket)) / 1000))
      end
    end
  end
end
return reply
