-- inspect: who holds the key and who waits for it. It changes nothing and never shows
-- an owner.
--
-- KEYS  lock, queue, waiters (see lock.lua); then, if others share the key, members, details
--       (shares.lua)
-- ARGV  how many waiters to describe, and how many of those who share the key
--
-- Reply: 1 if held, else 0; the holder's token, remaining ms and description; how many
-- living waiters there are; how the key is held (0 by one, 1 by readers, 2 by permits), how
-- many permits are out, and how many there are for the holders; how many of those who share it follow, and of
-- each the description, token, permits and remaining ms; then description and age in ms of the
-- first few waiters. The reply is {-1, Redis key} if that key holds something foreign, and 8 if the
-- last two keys are needed.

<% include foreign.lua %>

local reply = {0, 0, -2, '', 0, 0, 0, 0, 0}
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local ms = math.floor(now / 1000)

-- sharing describes the group of this value, without those whose time is over. It returns an
-- answer if that is impossible.
local function sharing(value)
  local kind, _, shown = string.match(value, <% pattern group %>)
  if not kind or #shown > 16 or tonumber(shown) > 9e15 then
    return {-1, KEYS[1]}
  end
  local all = redis.pcall('ZRANGE', KEYS[4], 0, -1, 'WITHSCORES')
  if all.err then
    return foreign(all, KEYS[4])
  end
  local count, used, limit, largest, description = 0, 0, 1000000, 0, ''
  for i = 1, #all, 2 do
    local remaining = tonumber(all[i + 1]) - ms
    -- Permits are counted. Of readers, only the first few are read, and the last.
    if remaining > 0 then
      count = count + 1
    end
    if remaining > 0 and (kind == '=p' or reply[9] < tonumber(ARGV[2]) or i == #all - 1) then
      local entry = redis.pcall('HGET', KEYS[5], all[i])
      if type(entry) == 'table' then
        return foreign(entry, KEYS[5])
      end
      local weight, most, token, holder = string.match(entry or '', <% pattern member | weight limit token holder %>)
      if not weight or #weight > 7 or #token > 16 or tonumber(token) > 9e15 then
        return {-1, KEYS[5]}
      end
      used, limit = used + weight, math.min(limit, tonumber(most))
      largest, description = math.max(largest, tonumber(token)), holder
      if reply[9] < tonumber(ARGV[2]) then
        reply[9] = reply[9] + 1
        reply[#reply + 1] = holder
        reply[#reply + 1] = kind == '=r' and tonumber(shown) or tonumber(token)
        reply[#reply + 1] = tonumber(weight)
        reply[#reply + 1] = remaining
      end
    end
  end
  if count == 0 then
    return
  end
  reply[1], reply[3] = 1, tonumber(all[#all]) - ms
  if kind == '=r' then
    reply[2], reply[6] = tonumber(shown), 1
    reply[4] = count == 1 and description or count .. ' readers'
  else
    reply[2], reply[6], reply[7], reply[8] = largest, 2, used, limit
    reply[4] = count == 1 and description or count .. ' holders of ' .. used .. ' permits'
  end
end

local value = redis.pcall('GET', KEYS[1])
if value then
  if type(value) ~= 'string' then
    return foreign(value, KEYS[1])
  end
  local vacant = <% vacant value %>
  local token, holder = string.match(value, <% pattern record | token holder %>)
  token = token or vacant
  if not token and string.sub(value, 1, 1) == '=' then
    local instead = not KEYS[4] and 8 or sharing(value)
    if instead then
      return instead
    end
    vacant, token = true, '0'
  end
  if not token or #token > 16 or tonumber(token) > 9e15 then
    return {-1, KEYS[1]}
  end
  if not vacant then
    reply[1], reply[2], reply[3], reply[4] = 1, tonumber(token), redis.call('PTTL', KEYS[1]), holder
  end
end

local size = redis.pcall('ZCARD', KEYS[2])
if type(size) ~= 'number' then
  return foreign(size, KEYS[2])
end
-- The dead stay in the queue until a handoff or a newcomer drops them. So all entries
-- are read. That takes some 2 microseconds for each, on a busy machine.
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
