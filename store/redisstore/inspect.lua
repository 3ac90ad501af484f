-- inspect: who holds the key and who waits for it. It changes nothing and never shows
-- an owner.
--
-- KEYS  lock, queue, waiters (see lock.lua); then, if others share the key, members, details
--       (shares.lua)
-- ARGV  how many waiters to describe, how many of those who share the key, and the ticket behind which to
--       go on (0: the beginning)
--
-- Reply: 1 if held, else 0; the holder's token, remaining ms and description; how many
-- living waiters there are among the next 250; the ticket of the last of these (0: there are no others); how the key
-- is held (0 by one, 1 by readers, 2 by permits), how
-- many permits are out, and how many there are for the holders; how many of those who share it follow, and of
-- each the description, token, permits and remaining ms; then description and age in ms of the
-- first few waiters. The reply is {-1, Redis key} if that key holds something foreign, and 8 if the
-- last two keys are needed. To go on, only what is about waiters counts.

<% include foreign.lua %>

local reply = {0, 0, -2, '', 0, 0, 0, 0, 0, 0}
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local ms = math.floor(now / 1000)

-- left subtracts those from a group of permits whose time is over: 250 of them, and if more have died, the
-- rest still has what it had. It returns how many permits are out, and the smallest limit of who is left.
local function left(used, limit, agree, other)
  local dead = {} -- how many count on each limit
  local over = redis.call('ZRANGE', KEYS[4], '-inf', string.format('%.0f', ms), 'BYSCORE', 'LIMIT', 0, 250)
  for _, entry in ipairs(over[1] and redis.call('HMGET', KEYS[5], unpack(over)) or {}) do
    local weight, most = string.match(entry or '', <% pattern member | weight limit %>)
    if weight then
      used, dead[most] = used - weight, (dead[most] or 0) + 1
    end
  end
  local smallest = {string.format('%.0f', limit), agree}
  local larger = string.sub(KEYS[1], 1, -2) .. 'c' -- see shares.lua
  for i = 0, other - 1 do
    if smallest[2] > (dead[smallest[1]] or 0) then
      break
    end
    smallest = redis.call('ZRANGE', larger, i, i, 'WITHSCORES')
    smallest[2] = smallest[2] % 4294967296
  end
  return used, smallest[1] + 0
end

-- sharing describes the group of this value, without those whose time is over. It returns an
-- answer if that is impossible.
local function sharing(value)
  local kind, _, shown, _, used, limit, agree, other = string.match(value, <% pattern group %>)
  if not (kind and <% tokenDigits shown %>) then
    return {-1, KEYS[1]}
  end
  local described = math.max(1, tonumber(ARGV[2]))
  local alive = redis.pcall('ZCOUNT', KEYS[4], string.format('(%.0f', ms), '+inf')
  if type(alive) ~= 'number' then
    return foreign(alive, KEYS[4])
  elseif alive == 0 then
    return
  end
  local first = redis.call('ZRANGE', KEYS[4], string.format('(%.0f', ms), '+inf', 'BYSCORE', 'LIMIT', 0, described)
  local entries = redis.pcall('HMGET', KEYS[5], unpack(first))
  if entries.err then
    return foreign(entries, KEYS[5])
  end
  for i, entry in ipairs(entries) do
    local weight, token, holder = string.match(entry or '', <% pattern member | weight token holder %>)
    if not (weight and #weight <= 7 and <% tokenDigits token %>) then
      return {-1, KEYS[5]}
    end
    reply[4] = holder
    if reply[10] < tonumber(ARGV[2]) then
      reply[10] = reply[10] + 1
      reply[#reply + 1] = holder
      reply[#reply + 1] = kind == '=r' and tonumber(shown) or tonumber(token)
      reply[#reply + 1] = tonumber(weight)
      reply[#reply + 1] = tonumber(redis.call('ZSCORE', KEYS[4], first[i])) - ms
    end
  end
  reply[1], reply[2], reply[3] = 1, tonumber(shown), tonumber(redis.call('ZRANGE', KEYS[4], -1, -1, 'WITHSCORES')[2]) - ms
  reply[7] = kind == '=r' and 1 or 2
  if kind == '=p' then
    reply[8], reply[9] = left(tonumber(used), tonumber(limit), tonumber(agree), tonumber(other))
  end
  if alive > 1 then
    reply[4] = alive .. (kind == '=r' and ' readers' or ' holders of ' .. reply[8] .. ' permits')
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
  if not (token and <% tokenDigits token %>) then
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
-- are read, page by page. That takes some 2 microseconds for each, on a busy machine.
local count = tonumber(ARGV[1])
local page = redis.call('ZRANGE', KEYS[2], '(' .. ARGV[3], '+inf', 'BYSCORE', 'LIMIT', 0, 250)
local entries = page[1] and redis.pcall('HMGET', KEYS[3], unpack(page)) or {}
if entries.err then
  return foreign(entries, KEYS[3])
end
for i, entry in ipairs(entries) do
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
      reply[#reply + 1] = math.max(0, math.floor((now - tonumber(redis.call('ZSCORE', KEYS[2], page[i]))) / 1000))
    end
  end
end
reply[6] = page[250] and tonumber(redis.call('ZSCORE', KEYS[2], page[250])) or 0
return reply
