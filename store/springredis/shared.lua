-- Functions that the scripts share. The KEYS of a script are those that it needs of these, in
-- this order:
--
-- lock     the holder, as a string with a TTL. If it is ours:
--            asynclock TOKEN CLOCK OWNER DESCRIPTION
--          where CLOCK is t if the token came from the clock, else -, and OWNER
--          is - while nobody has the key but it is held back. Any other value is
--          foreign, usually the id of a Java registry. A registry compares values
--          with its own id and overwrites none.
-- counter  the last token, as a string
-- gone     a sorted set: withdrawn owners, by the ms of the server's clock until
--          which they are refused

-- foreign returns the answer if a key is not what it has to be: that it is foreign, or the
-- server's own error if the server does not let us look.
local function foreign(found, key)
  if type(found) == 'table' and not string.find(found.err, 'WRONGTYPE', 1, true) then
    return found
  end
  return {-1, key}
end

local lock = KEYS[1]
local value = redis.pcall('GET', lock)
if type(value) == 'table' then
  return foreign(value, lock)
end
local token, clock, owner, holder
if value then
  token, clock, owner, holder = string.match(value, '^asynclock (%d+) ([t-]) (%S+) (.*)$')
  if token and (#token > 16 or tonumber(token) > 9e15) then
    owner = nil
  end
  token = owner and tonumber(token)
end

-- held answers who holds the key: {3, remaining ms (-1: it has no TTL), whether the value is
-- ours, the holder's token and description; else 0 and the value}.
local function held()
  return {3, redis.call('PTTL', lock), owner and 1 or 0, token or 0, owner and holder or value}
end

-- last_token returns the last token that the counter knows. If the Redis key is no counter,
-- it returns nil and the answer. '%.0f' below prints all digits. Lua itself prints only 14.
local function last_token()
  local last = redis.pcall('GET', KEYS[2])
  if not last then
    return 0
  end
  if type(last) ~= 'string' or #last > 16 or not string.find(last, '^%d+$') or tonumber(last) > 9e15 then
    return nil, foreign(last, KEYS[2])
  end
  return tonumber(last)
end

local function store_token(last)
  redis.call('SET', KEYS[2], string.format('%.0f', last), 'PX', 86400000)
end

local function now()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end

-- This function deletes the lock with the best command that the server has, from the given
-- one on, and says which command it was. The first command compares once more while it
-- deletes.
local function delete(from)
  local commands = {{'DELEX', lock, 'IFEQ', value}, {'UNLINK', lock}, {'DEL', lock}}
  for i = from, 2 do
    local reply = redis.pcall(unpack(commands[i]))
    if type(reply) == 'number' then
      return i
    end
  end
  redis.call('DEL', lock)
  return 3
end

-- This function announces to Java and Go, old releases and new ones, that the lock is free.
-- The lock is free even where the server forbids the announcement.
local function announce(channel, old_channel)
  redis.pcall('PUBLISH', channel, lock)
  redis.pcall('PUBLISH', old_channel, lock)
end

