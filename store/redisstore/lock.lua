-- What the scripts that change a lock share: reading its state, choosing who is
-- next, granting, queueing. Not a script by itself; it is put where a script
-- says so, after epoch.lua and the paths that do without both.
--
-- A lock has five keys of one cluster slot. All of them expire, when idle for a day
-- at the latest.
--   lock     string  the holder's record; its TTL is the holding's
--   queue    zset    owner -> ticket; the smallest ticket is next
--   waiters  hash    owner -> entry
--   counter  string  the last token or ticket given
--   gone     zset    withdrawn owner -> until when (ms) that is remembered
--
-- An owner is one acquisition's secret, without spaces; '-' is nobody, who holds
-- a key that is kept back for a while. fragments.go describes records, entries,
-- channels and flags.

local lock, queue, waiters, counter, gone = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local remember = 120000 -- ms; how long a withdrawn owner is remembered

local record -- of the holder; nil if there is none
local stored -- what the counter says; 0 if it is not there
local last -- the largest token or ticket known
local size -- of the queue
local withdrawn -- how many owners are remembered as gone

-- text prints a whole number with all its digits; tostring keeps 14.
local function text(number)
  return string.format('%.0f', number)
end

-- whole reads a token. It returns nil for what is none. Those after the year 2255
-- are none: doubles would soon skip numbers, and a token be given twice.
local function whole(digits)
  local number = #digits <= 16 and string.find(digits, '^%d+$') and tonumber(digits)
  if number and number <= 9e15 then
    return number
  end
end

-- read asks with pcall what fails for a key of a wrong type. If the server refuses
-- for another reason, as it does what the user may not do, that is its own answer.
local function read(...)
  local answer = redis.pcall(...)
  if type(answer) == 'table' and not string.find(answer.err, 'WRONGTYPE', 1, true) then
    redis.call(...)
  end
  return answer
end

-- load reads the state. It returns the name of the first Redis key that can't be
-- what this library wrote. Whatever may fail for that reason is asked here, so
-- that no script stops halfway.
local function load()
  local value = read('GET', lock)
  if value then
    if type(value) ~= 'string' then
      return lock
    end
    local token, owner, channel, flags, holder = string.match(value, <% pattern record %>)
    token = token and whole(token)
    if not token then
      return lock
    end
    record = {token = token, owner = owner, channel = channel, flags = flags, holder = holder}
  end

  value = read('GET', counter)
  stored = not value and 0 or (type(value) == 'string' and whole(value))
  if not stored then
    return counter
  end
  last = stored
  if record and record.token > last then
    last = record.token
  end

  size = read('ZCARD', queue)
  if type(size) ~= 'number' then
    return queue
  end
  if type(read('HLEN', waiters)) ~= 'number' then
    return waiters
  end
  withdrawn = read('ZCARD', gone)
  if type(withdrawn) ~= 'number' then
    return gone
  end
end

-- reachable says whether a message to the channel would reach its client. Asking
-- before the grant, not counting receivers after it, has two reasons: a grant
-- must be written before it is announced, or a write that is refused would leave
-- an announcement of nothing; and a client that is passed over must not have
-- been told, not even through a replica that its subscription is still attached
-- to after a failover. A server that won't answer leaves it to the waiter, who
-- comes and asks.
local function reachable(channel)
  local mode = string.sub(channel, 1, 1)
  if mode ~= 'p' and mode ~= 's' then
    return true
  end
  local answer = <% receivers mode | string.sub(channel, 2) %>
  return not tonumber(answer[2]) or tonumber(answer[2]) > 0
end

-- tell sends a message, if that can be done. Failing is no error: a server
-- without pub-sub, or a user who may not publish, has waiters that ask.
local function tell(channel, message)
  local mode = string.sub(channel, 1, 1)
  if mode ~= '-' then
    <% publish mode | string.sub(channel, 2) | message %>
  end
end

-- choose finds the first waiter that is alive and can be told. It only reads. If
-- it comes across self, or past the place where self's ticket belongs, it stops
-- there. It returns the waiter, if any, with all that leave the queue with it:
-- itself and the dead and unreachable ones before it, and those whose entries
-- were lost. Those that live come back with their old tickets. It returns nil if
-- an entry is damaged.
local function choose(self, ticket)
  local leaving = {}
  while true do
    local head = redis.call('ZRANGE', queue, #leaving, #leaving, 'WITHSCORES')
    local owner = head[1]
    if not owner or (ticket and ticket < tonumber(head[2])) then
      return {leaving = leaving}
    end
    leaving[#leaving + 1] = owner
    if owner == self then
      return {leaving = leaving}
    end
    local entry = redis.call('HGET', waiters, owner)
    if entry then
      -- A TTL that SET refuses would stop the script halfway, and an owner with
      -- spaces would make a record that nobody can read.
      local deadline, channel, ttl, flags, holder = string.match(entry, <% pattern entry %>)
      if not deadline or #ttl > 15 or not string.find(owner, '^%S+$') then
        return nil
      end
      if tonumber(deadline) >= now_ms and reachable(channel) then
        return {
          leaving = leaving, owner = owner, channel = channel, ttl = ttl, flags = flags, holder = holder,
        }
      end
    end
  end
end

-- remove takes owners out of the queue, some at a time because Lua's stack is
-- finite.
local function remove(owners)
  for first = 1, #owners, 100 do
    local final = math.min(first + 99, #owners)
    size = size - redis.call('ZREM', queue, unpack(owners, first, final))
    redis.call('HDEL', waiters, unpack(owners, first, final))
  end
end

-- count makes the next token or ticket. The clock is its floor: should the
-- counter be lost, by idling, FLUSHALL or a failover, numbers still rise.
local function count()
  last = math.max(last + 1, now)
  redis.call('SET', counter, text(last), 'PX', day)
  return last
end

-- grant makes owner the holder and returns 1 if its token is the clock's time,
-- else 0.
local function grant(owner, channel, ttl, flags, holder)
  local token, clocked = count(), 0
  if token == now then
    clocked = 1
    flags = <% addFlag flags | t %>
  end
  redis.call('SET', lock, <% record text(token) | owner | channel | flags | holder %>, 'PX', ttl)
  record = {token = token, owner = owner, channel = channel, flags = flags, holder = holder}
  return clocked
end

-- settle carries out a choice: those who leave the queue leave it, and the
-- chosen one, if any, gets the key and is told. The removal comes first because
-- a server out of memory allows it, and then the rest of the script too.
local function settle(choice)
  remove(choice.leaving)
  if choice.owner then
    local clocked = grant(choice.owner, choice.channel, choice.ttl, choice.flags, choice.holder)
    tell(choice.channel, <% granted choice.owner | text(last) | choice.ttl | text(size) | clocked %>)
  end
end

-- pass takes the key from its holder and gives it to the first waiter, if there
-- is one and the server may grant. It returns false, and has done nothing, if the
-- queue is damaged.
local function pass()
  local choice = grace > 0 and {leaving = {}} or choose()
  if not choice then
    return false
  end
  settle(choice)
  if not choice.owner then
    record = nil
    redis.call('DEL', lock)
    if last > stored then
      redis.call('SET', counter, text(last), 'PX', day)
    end
  end
  return true
end

-- sweep drops dead waiters from the head of a full queue. Otherwise only a
-- handoff drops them, and a queue full of the dead would turn away the living.
-- It looks at the first 16 and no more, since a crowd that is turned away must
-- not cost the server a walk of the queue each: the dead behind 16 living ones
-- take up room until handoffs have brought them to the head.
local function sweep()
  local dead = {}
  for _, owner in ipairs(redis.call('ZRANGE', queue, 0, 15)) do
    local deadline = string.match(redis.call('HGET', waiters, owner) or '0 ', <% pattern entry | deadline %>)
    if deadline and tonumber(deadline) < now_ms then
      dead[#dead + 1] = owner
    end
  end
  remove(dead)
end

-- wanted tells the holder that somebody asked in vain, if it wants to hear that and
-- can. It returns 1 if so, else 0.
local function wanted()
  if not record or record.channel == '-' or not string.find(record.flags, 'w', 1, true) then
    return 0
  end
  tell(record.channel, <% wanted record.owner %>)
  return 1
end

-- acquire answers the request whose fields follow ARGV[before]; see acquire.lua
-- for fields and replies.
local function acquire(before)
  local owner, channel, ttl, grant_ttl, liveness, wait, limit, ticket, flags, holder =
    unpack(ARGV, before + 1, before + 10)

  local mine = record and record.owner == owner
  if mine and grace == 0 then
    -- A repetition, or a missed grant. This may be a late copy of a request that
    -- was answered long ago, so the TTL only grows. It is set in any case: a
    -- replica, whose records may be out of date, must refuse.
    redis.call('PEXPIRE', lock, math.max(redis.call('PTTL', lock), ttl))
    return {1, record.token, size, string.find(record.flags, 't', 1, true) and 1 or 0}
  end
  if withdrawn > 0 then
    local deadline = redis.call('ZSCORE', gone, owner)
    if deadline and tonumber(deadline) > now_ms then
      return {5}
    end
  end

  local queued = redis.call('ZSCORE', queue, owner)
  local place = tonumber(queued or ticket)
  if place == 0 then
    place = nil
  end

  if not record and grace == 0 then
    local choice = choose(owner, place)
    if not choice then
      return {-1, waiters}
    end
    settle(choice)
    if not choice.owner then
      local clocked = grant(owner, channel, ttl, flags, holder)
      return {1, last, size, clocked}
    end
  end

  if wait == '0' then
    if mine or not record then
      return {6, grace}
    end
    return {3, record.token, redis.call('PTTL', lock), size, record.holder, wanted()}
  end
  if mine then
    -- Whether it still is can't be told: what it did after this was written may be
    -- forgotten, and somebody else have had the key since. It comes back with its
    -- place. The write is for the replica that must refuse.
    redis.call('PEXPIRE', lock, redis.call('PTTL', lock))
    return {2, 0, grace, place or record.token, math.max(last, past), grace}
  end
  if not queued then
    limit = tonumber(limit)
    if not place and limit > 0 and size >= limit then
      sweep()
      if size >= limit then
        return {4, size}
      end
    end
    place = place or count()
    redis.call('ZADD', queue, text(place), owner)
    size = size + 1
    if size == 1 and record and string.find(record.flags, 'h', 1, true) then
      tell(record.channel, <% contended record.owner %>)
    end
  end
  if grace > 0 then
    flags = <% addFlag flags | g %>
  end
  local deadline = text(now_ms + liveness)
  redis.call('HSET', waiters, owner, <% entry deadline | channel | grant_ttl | flags | holder %>)
  redis.call('PEXPIRE', queue, day)
  redis.call('PEXPIRE', waiters, day)
  local rank = redis.call('ZRANK', queue, owner)
  if rank == 0 then
    wanted()
  end
  return {2, rank, math.max(redis.call('PTTL', lock), grace), place, math.max(last, past), grace}
end
