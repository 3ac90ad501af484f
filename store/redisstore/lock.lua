-- The state machine of a lock, for the scripts that change one: they read its state,
-- choose the next holder, grant and queue. This file is not a script by itself. A
-- script includes it after its own shortcuts and epoch.lua.
--
-- A lock has five keys in one cluster slot. All of them expire, at the latest after a day
-- without use, except that the counter has a TTL of its own.
--   lock     string  the holder's record; its TTL is the holding's. Or a vacancy, which a
--                    release has left: the last token. While it is there, queue and gone
--                    are empty, and the counter is not needed. Or a group: several share
--                    the key, which shares.lua is about
--   queue    zset    owner -> ticket; the smallest ticket is next
--   waiters  hash    owner -> entry
--   counter  string  the last token or ticket given
--   gone     zset    withdrawn owner -> until when (ms) that is remembered
--
-- An owner is one acquisition's secret, without spaces. The owner '-' is nobody, and
-- holds a key that is kept back for a while. fragments.go describes records, entries,
-- channels and flags.

local lock, queue, waiters, counter, gone = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local idle = tonumber(ARGV[#ARGV - 1]) -- ms; see kept
local remember = 120000 -- ms; how long a withdrawn owner is remembered
local again = -6 -- the reply if more is to be dropped than one step may, and nothing else was changed
local most_passed = 100 -- of those who are dropped in one step

local record -- of the holder; nil if there is none
local shared -- the group's value; nil if there is none. Only a script with shares.lua can go on
local vacant -- the token of a vacancy; nil if there is none
local stored -- the number in the counter; 0 if there is none
local last -- the largest token or ticket known
local size -- of the queue
local withdrawn -- how many withdrawn owners are remembered

-- text prints a number with all its digits. tostring keeps only 14.
local function text(number)
  return string.format('%.0f', number)
end

-- read_token returns nil if the text is no token.
local function read_token(text)
  return <% token text %> and tonumber(text) or nil
end

-- read runs a command that fails on a key of a wrong type, and returns that error. A
-- server that refuses for another reason, such as missing rights, ends the script by
-- its own error.
local function read(...)
  local answer = redis.pcall(...)
  if type(answer) == 'table' and not string.find(answer.err, 'WRONGTYPE', 1, true) then
    redis.call(...)
  end
  return answer
end

-- refuse_a_moving_slot ends the script before its first write while a Cluster's node
-- gives the slot away. Such a node refuses each command on a key that is not there,
-- because the key may have moved already. It can't distinguish that from a key that this
-- script has just deleted. So a script that empties the queue and then queues somebody
-- would stop halfway. A key that is never there shows it. The node itself refuses most
-- scripts in this time, because one of their keys is usually missing. The shortcuts of
-- acquire.lua, release_fast.lua and renew.lua write to no key that they have deleted, so
-- they need not look.
local function refuse_a_moving_slot()
  local answer = redis.pcall('EXISTS', lock .. '?')
  if type(answer) == 'table' and string.find(answer.err, 'non local key', 1, true) then
    error('asynclock: the slot is being moved', 0)
  end
end

-- load reads the state. It returns the name of the first Redis key that this library
-- can't have written. All commands that could fail on such a key run here, so no
-- script stops halfway.
local function load()
  refuse_a_moving_slot()
  local value = read('GET', lock)
  if value then
    if type(value) ~= 'string' then
      return lock
    end
    local token, owner, channel, flags, holder = string.match(value, <% pattern record %>)
    token = read_token(token or <% vacant value %> or '')
    if owner and token then
      record = {token = token, owner = owner, channel = channel, flags = flags, holder = holder}
    elseif string.sub(value, 1, 1) == '=' then
      shared = value
    elseif token then
      vacant = token
    else
      return lock
    end
  end

  value = read('GET', counter)
  stored = not value and 0 or (type(value) == 'string' and read_token(value))
  if not stored then
    return counter
  end
  last = math.max(stored, record and record.token or vacant or 0)

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

-- reachable says whether a message to the channel would reach its client. The number
-- of receivers is requested before the grant, not taken from PUBLISH after it, for two
-- reasons. A grant must be written before its message is sent, because a refused write
-- would leave a message about nothing. And a client that is passed over must not be
-- notified, not even through a replica that still has its subscription after a
-- failover. If the server does not answer, the waiter counts as reachable: it polls.
local function reachable(channel)
  local mode = string.sub(channel, 1, 1)
  if mode ~= 'p' and mode ~= 's' then
    return true
  end
  local answer = <% receivers mode | string.sub(channel, 2) %>
  return not tonumber(answer[2]) or tonumber(answer[2]) > 0
end

-- notify sends a message to a channel that can be notified.
local function notify(channel, message)
  local mode = string.sub(channel, 1, 1)
  if mode ~= '-' then
    <% publish mode | string.sub(channel, 2) | message %>
  end
end

-- choose finds the first waiter that is alive and reachable. It only reads. It stops
-- at self, and at the place where self's ticket belongs. It returns the waiter, if
-- any, and all owners that leave the queue with it: the waiter, the dead and
-- unreachable waiters before it, and owners without an entry. A waiter that is removed
-- alive comes back with its old ticket. choose returns nil if an entry is damaged.
--
-- choose looks at 100 dead and unreachable waiters at most, less those whom the step has passed before. If it finds
-- no other, there may be more.
--
-- With fits, a function of the flags, choose stops at the first waiter that is alive and
-- does not fit, which is then blocked. Nobody passes it, also if it is unreachable.
local function choose(self, ticket, fits, passed)
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
      -- A TTL that SET refuses would stop the script halfway. An owner with spaces
      -- would make a record that nobody can read.
      local deadline, channel, ttl, flags, holder = string.match(entry, <% pattern entry %>)
      if not deadline or #ttl > 15 or not string.find(owner, '^%S+$') then
        return nil
      end
      local alive = tonumber(deadline) >= now_ms
      if alive and fits and not fits(flags) then
        leaving[#leaving] = nil
        return {leaving = leaving, blocked = true}
      end
      if alive and reachable(channel) then
        return {
          leaving = leaving, owner = owner, channel = channel, ttl = ttl, flags = flags, holder = holder,
        }
      end
    end
    if #leaving + (passed or 0) >= most_passed then
      return {leaving = leaving, more = true}
    end
  end
end

-- remove takes owners out of the queue. These are few, because Lua's stack is finite.
local function remove(owners)
  if #owners > 0 then
    size = size - redis.call('ZREM', queue, unpack(owners))
    redis.call('HDEL', waiters, unpack(owners))
    if size == 0 then
      redis.call('DEL', waiters) -- what sweep has noted
    end
  end
end

-- kept returns the TTL (ms) of a counter or a vacancy. Tokens are never less than the clock, so
-- the last one matters only while the clock is behind it. So it is kept until the clock is past
-- it, and for the counter's TTL (idle) longer. By so much the clock may be set back, or another
-- server's clock may lag in a failover.
local function kept()
  return text(idle + math.max(0, math.ceil((last - now) / 1000)))
end

-- count makes the next token or ticket. It is never less than the clock. So numbers
-- rise even if the counter was lost, because it expired, by FLUSHALL or in a failover.
local function count()
  last = math.max(last + 1, now, floor)
  return last
end

-- store writes the last token or ticket into the counter.
local function store()
  redis.call('SET', counter, text(last), 'PX', kept())
  stored = last
end

-- grant makes owner the holder. It returns 1 if the token is the clock's time, else 0. Such a
-- token of a free key needs no counter: the record has it, then the vacancy, and if the holder
-- dies the epoch has noted the clock. A handoff does not note the clock.
local function grant(owner, channel, ttl, flags, holder)
  local token, clocked = count(), 0
  if token == now then
    clocked = 1
    flags = <% addFlag flags | t %>
  else
    store()
  end
  redis.call('SET', lock, <% record text(token) | owner | channel | flags | holder %>, 'PX', ttl)
  record, vacant = {token = token, owner = owner, channel = channel, flags = flags, holder = holder}, nil
  return clocked
end

-- settle carries out a choice. The owners that leave the queue are removed. The chosen
-- waiter, if any, gets the key and is notified. The removal comes first because a
-- server out of memory allows it, and then allows the rest of the script.
local function settle(choice)
  remove(choice.leaving)
  if choice.owner then
    local clocked = grant(choice.owner, choice.channel, choice.ttl, choice.flags, choice.holder)
    if clocked == 1 then
      store()
    end
    notify(choice.channel, <% granted choice.owner | text(last) | choice.ttl | text(size) | clocked %>)
  end
end

-- vacate leaves the key free. If nobody waits and nobody is withdrawn, a vacancy keeps the
-- last token, so that the next grant has one Redis key to look at. Otherwise the counter
-- keeps it. The grace may have waiters, and remembers who releases.
local function vacate()
  redis.call('DEL', lock) -- first, because a server out of memory allows it, and then the rest
  if size == 0 and withdrawn == 0 and grace == 0 then
    redis.call('SET', lock, text(last), 'PX', kept())
    redis.call('DEL', counter)
    vacant, stored = last, 0
  elseif last > stored then
    store()
  end
end

-- occupy ends a vacancy without a grant, before somebody queues or is remembered. The counter
-- keeps the last token.
local function occupy()
  if vacant then
    redis.call('DEL', lock)
    store()
    vacant = nil
  end
end

-- pass takes the key from its holder. It gives the key to the first waiter, if there is
-- one, except in the grace. If the queue is damaged, the waiter shares the key, or very many have died
-- before it, pass has done nothing else, and returns the reply of the script.
local function pass()
  local choice = grace > 0 and {leaving = {}} or choose()
  if not choice then
    return {-1, waiters}
  end
  if choice.more then
    remove(choice.leaving)
    return again
  end
  if choice.owner and <% sharing choice.flags %> then
    return 8
  end
  settle(choice)
  if not choice.owner then
    record = nil
    vacate()
  end
end

-- sweep drops dead waiters from a queue that is full. Otherwise only a handoff drops them, and a
-- queue full of the dead would refuse the living. The dead are wherever waiters crashed, so sweep walks
-- from the head to the tail, 256 waiters in a step, until there is room by this limit. It returns whether
-- the walk goes on in the next step.
--
-- A refused request must not cost a walk each time. So a walk is followed by a pause of
-- a quarter of a millisecond for each waiter of the queue. On a busy machine a walk takes
-- some 2 microseconds for each. So all walks of a key take less than a hundredth of the
-- server's time, however many are refused. The price: somebody who dies in the pause
-- keeps the room until it ends. That is 5 ms with 20 waiters, and 4 s with 16,384. The end
-- of the pause (ms), or the ticket at which the walk goes on, is in the waiters' hash, under the name of nobody.
local function sweep(limit)
  local pause, after = string.match(redis.call('HGET', waiters, '-') or '', '^(%d+) (%d+)$')
  pause = tonumber(pause or 0)
  if now_ms < pause and pause <= now_ms + size then -- otherwise the clock was set back
    return false
  end
  local page, dead = redis.call('ZRANGE', queue, '(' .. (after or '0'), '+inf', 'BYSCORE', 'LIMIT', 0, 256), {}
  for i, entry in ipairs(page[1] and redis.call('HMGET', waiters, unpack(page)) or {}) do
    local deadline = string.match(entry or '0 ', <% pattern entry | deadline %>)
    if deadline and tonumber(deadline) < now_ms then
      dead[#dead + 1] = page[i]
    end
  end
  local noted = text(now_ms + math.ceil(size / 4)) .. ' 0'
  if #page == 256 then
    noted = '0 ' .. text(tonumber(redis.call('ZSCORE', queue, page[256])))
  end
  remove(dead)
  noted = redis.pcall('HSET', waiters, '-', size < limit and '0 0' or noted) -- or neither, if memory is out
  redis.call('PEXPIRE', waiters, day)
  return size >= limit and #page == 256 and type(noted) == 'number'
end

-- wanted notifies the holder of a request in vain, if the holder asks for that. It
-- returns 1 if it notified the holder, else 0.
local function wanted()
  if not record or record.channel == '-' or not string.find(record.flags, 'w', 1, true) then
    return 0
  end
  notify(record.channel, <% wanted record.owner %>)
  return 1
end

-- wake prepares the end of a time for which the key is kept back. That end comes
-- earlier than that of the holding, of which the waiters know, or the waiters don't
-- know of it. So the first waiter is asked to request the key again, and learns how
-- much remains. The dead and the unreachable before it leave the queue, because only
-- the first in the queue asks at the end. A lost message costs a heartbeat. Nothing is
-- done about a damaged queue: the next handoff reports it.
local function wake()
  local choice = choose()
  if choice and choice.owner then
    table.remove(choice.leaving) -- the waiter itself
    remove(choice.leaving)
    notify(choice.channel, <% wake choice.owner %>)
  end
end

-- hold_back keeps the key of this record from everybody, for so many ms. Nobody holds it
-- then, and nobody can renew that.
local function hold_back(used, keep)
  redis.call('PEXPIRE', lock, keep) -- first, because a server out of memory allows it, and then the rest
  store()
  redis.call('SET', lock, <% record text(used) | '-' | '-' | '-' | record.holder %>, 'PX', keep)
  record = {token = used, owner = '-', channel = '-', flags = '-', holder = record.holder}
  wake()
end

-- forgot says whether the holding of somebody who has used this token was lost with others, and
-- nobody was granted the key since. Then the token counts for the next one. known is the token
-- of those who have the key.
local function forgot(used, known)
  if grace == 0 or used == 0 or known and known >= used then
    return false
  end
  if used > last then
    last = used
    store()
  end
  return true
end

-- tombstone remembers that an owner was withdrawn. A request of this owner may still be on its
-- way. In the grace that may be a renewal, which would write the holding anew. The owner is
-- remembered for longer than data lives in a connection that was given up. The kernel resends
-- what it had buffered for about 100 s. The effect of a later request ends by its TTL.
local function tombstone(owner)
  occupy()
  local over = redis.call('ZRANGE', gone, '-inf', text(now_ms), 'BYSCORE', 'LIMIT', 0, most_passed)
  if #over > 0 then
    redis.call('ZREM', gone, unpack(over))
  end
  redis.call('ZADD', gone, text(now_ms + remember), owner)
  redis.call('PEXPIRE', gone, math.max(remember, redis.call('PTTL', gone)))
  withdrawn = math.max(withdrawn, 1)
end

-- dead says whether the owner is remembered as withdrawn.
local function dead(owner)
  local deadline = withdrawn > 0 and redis.call('ZSCORE', gone, owner)
  return deadline and tonumber(deadline) > now_ms
end

-- acquire answers the request whose fields follow ARGV[before]. acquire.lua describes
-- fields and replies.
local function acquire(before)
  local owner, channel, ttl, grant_ttl, liveness, wait, limit, ticket, flags, holder =
    unpack(ARGV, before + 1, before + 10)

  local mine = record and record.owner == owner
  if mine and grace == 0 then
    -- The request is a repetition, or its grant was missed. It may also be a late copy
    -- of a request that was answered long ago, so the TTL only grows. The TTL is set in
    -- any case, because a replica may be out of date and must refuse.
    redis.call('PEXPIRE', lock, math.max(redis.call('PTTL', lock), ttl))
    return {1, record.token, size, string.find(record.flags, 't', 1, true) and 1 or 0}
  end
  if dead(owner) then
    return {5}
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
    if choice.more then
      remove(choice.leaving)
      return again
    end
    if choice.owner and <% sharing choice.flags %> then
      return {8}
    end
    settle(choice)
    if not choice.owner then
      local clocked = grant(owner, channel, ttl, flags, holder)
      return {1, last, size, clocked, early and 'o' .. early or nil, early and 0 or nil}
    end
  end

  if wait == '0' then
    if mine or not record then
      return {6, grace}
    end
    return {3, record.token, redis.call('PTTL', lock), size, record.holder, wanted()}
  end
  if mine then
    -- The owner may not be the holder any more. The server may have forgotten that it
    -- released the key, and that others had the key since. The owner comes back with its
    -- place. The write makes a replica refuse.
    redis.call('PEXPIRE', lock, redis.call('PTTL', lock))
    return {2, 0, grace, place or record.token, math.max(last, past), grace, 0, ''}
  end
  if not queued then
    limit = tonumber(limit)
    if not place and limit > 0 and size >= limit then
      if sweep(limit) then
        return again
      end
      if size >= limit then
        return {4, size}
      end
    end
    occupy()
    if not place then
      place = count()
      store()
    end
    redis.call('ZADD', queue, text(place), owner)
    size = size + 1
    if size == 1 and record and string.find(record.flags, 'h', 1, true) then
      notify(record.channel, <% contended record.owner %>)
    end
  end
  if past >= now then -- not if grace > 0: somebody may have ended the grace
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
  local token, description = 0, ''
  if record then
    token, description = record.token, record.holder
  end
  return {2, rank, math.max(redis.call('PTTL', lock), grace), place, math.max(last, past), grace, token, description}
end
