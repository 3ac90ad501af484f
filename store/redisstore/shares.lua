-- Those who share a key, for the scripts that have to know them: readers, or holders of
-- permits. This file is not a script by itself. A script includes it after lock.lua.
--
-- Scripts without this file are narrow, and so are those that are run without its three keys. One
-- that meets a group, or a waiter that shares the key, answers 8, and the request is sent again,
-- to a wide script. So a key that nobody shares costs no more than before. And while a cluster
-- moves its slot, a script can do its work if the five other keys are there.
--
-- Two of these keys of the lock are there while a group has it. They outlive the lock by a second,
-- so the group is never without its members.
--   members  zset    owner -> until when (ms) it holds its share
--   details  hash    owner -> member
--   ceiling    string  how many permits there are, whatever holders and requests say; without a TTL,
--                    and usually not there. limit.lua writes it
-- One more is there only while members count on different numbers of permits. No call names it, so all other
-- calls are as short as without.
--   larger   zset    each number but the smallest -> that number times 2^32, plus how many count on it
--
-- The lock's value is the group, whose TTL is the longest of its members. It is there for
-- whoever looks whether the key is free, and has what would take long to count. No step reads all
-- members. One that finds very many whose time is over drops some of them, changes nothing else, and
-- answers again.

local members, details, ceiling = KEYS[7], KEYS[8], KEYS[9] -- nil in a script that is run narrow
local larger = string.sub(lock, 1, -2) .. 'c'
local counts = 4294967296 -- more than members of a group
local outlive = 1000 -- ms
local most_served = 64 -- in one step
local most_told = 128 -- in one step
local most_dropped = 100 -- in one step
local most_permits = 1000000 -- as in package store

local group -- who shares the key; nil if nobody does
local most -- how many permits there are, by ceiling; nil if it is not there
local changed = false -- what the lock's value says is not true any more
local unnoted = false -- who got the last number did not ask now, so the epoch may not have noted the clock
local mail = {} -- messages for the end, when all is written

-- tally changes how many members count on a limit that is not the smallest.
local function tally(limit, by)
  if group.other == 0 then
    redis.call('UNLINK', larger) -- what another group has left behind
  end
  local score = redis.call('ZSCORE', larger, text(limit))
  local number = (score and score % counts or 0) + by
  if number > 0 then
    redis.call('ZADD', larger, text(limit * counts + number), text(limit))
    group.other = score and group.other or group.other + 1
  elseif score then
    redis.call('ZREM', larger, text(limit))
    group.other = group.other - 1
  end
end

-- count_on notes that a member more, or one less, counts on so many permits.
local function count_on(limit, by)
  if limit == group.limit then
    group.agree = group.agree + by
  elseif limit > group.limit then
    tally(limit, by)
  else
    if group.agree > 0 then
      tally(group.limit, group.agree)
    end
    group.limit, group.agree = limit, by
  end
  if group.agree == 0 and group.other > 0 then
    local next = redis.call('ZRANGE', larger, 0, 0, 'WITHSCORES')
    redis.call('ZREM', larger, next[1])
    group.limit, group.agree, group.other = tonumber(next[1]), next[2] % counts, group.other - 1
  end
end

-- uncount subtracts what a member has that leaves. The permits of one that can't be read are
-- counted until the group ends.
local function uncount(value)
  local weight, limit = string.match(value, <% pattern member | weight limit %>)
  if weight then
    group.used = group.used - weight
    count_on(tonumber(limit), -1)
  end
end

-- expel takes members out of the group, at most 100. The group ends with the last one. A server out of memory
-- allows the first write, and then allows the rest.
local function expel(owners)
  if #owners > 0 then
    local values = redis.call('HMGET', details, unpack(owners))
    group.size = group.size - redis.call('ZREM', members, unpack(owners))
    redis.call('HDEL', details, unpack(owners))
    for _, value in ipairs(group.kind == '=p' and values or {}) do
      uncount(value or '')
    end
    changed = true
  end
  if group.size == 0 then
    group = nil
  end
end

-- save writes the lock's value, and lets all end with the last member.
local function save()
  local latest = tonumber(redis.call('ZRANGE', members, -1, -1, 'WITHSCORES')[2])
  redis.call('SET', lock, <% group group.kind | group.token | group.shown | group.kept | group.used | group.limit | group.agree | group.other | group.writer %>, 'PXAT', text(latest))
  local left = text(latest - now_ms + outlive)
  redis.call('PEXPIRE', members, left)
  redis.call('PEXPIRE', details, left)
  if group.other > 0 then
    redis.call('PEXPIRE', larger, left)
  end
  changed = false
end

-- expired returns members whose time is over, at most so many as one step drops.
local function expired()
  local first = redis.call('ZRANGE', members, 0, 0, 'WITHSCORES')[2]
  if not first or tonumber(first) > now_ms then
    return {} -- usually
  end
  return redis.call('ZRANGE', members, '-inf', text(now_ms), 'BYSCORE', 'LIMIT', 0, most_dropped)
end

-- open reads the group, after load, and drops the members whose time is over. Like load, it
-- returns the name of a Redis key that this library can't have written, and then has changed
-- nothing. If there may be more to drop, it returns again.
local function open()
  if not members then
    return
  end
  local count, described = read('ZCARD', members), read('HLEN', details)
  if type(count) ~= 'number' then
    return members
  end
  if type(described) ~= 'number' then
    return details
  end
  local value = read('GET', ceiling)
  if value then
    most = type(value) == 'string' and #value <= 7 and string.find(value, '^[1-9]%d*$') and tonumber(value)
    if not most or most > most_permits then
      return ceiling
    end
  end
  if not shared then
    return
  end
  local kind, token, shown, kept, used, limit, agree, other, writer = string.match(shared, <% pattern group %>)
  -- No number of a group is larger than a token may be.
  token, shown, kept = read_token(token or ''), read_token(shown or ''), read_token(kept or '')
  used, limit, agree, other = read_token(used or ''), read_token(limit or ''), read_token(agree or ''), read_token(other or '')
  if not (token and shown and kept and used and limit and agree and other) then
    return lock
  end
  if other > 0 and read('ZCARD', larger) ~= other then
    return larger
  end
  if count ~= described then
    return details
  end
  last = math.max(last, token, shown)
  group = {
    kind = kind, token = token, shown = shown, kept = kept, used = used, limit = limit, agree = agree, other = other,
    writer = writer, size = count,
  }
  changed = count == 0
  local dropped = expired()
  expel(dropped)
  if changed and group then
    save() -- now, since the script may change nothing else
  end
  return group and #dropped == most_dropped and again
end

-- in_force returns how many permits there are for who counts on so many: as many as the key is
-- said to have, or the smallest number that it or a member counts on.
local function in_force(limit)
  return most or math.min(limit, group and group.kind == '=p' and group.limit or limit)
end

-- too_much says whether these flags request more permits than the key is said to have.
local function too_much(flags)
  local weight = most and <% permits flags %>
  return weight and tonumber(weight) > most
end

-- fits says whether a waiter with these flags can have its share beside what is held.
--
-- After a loss, nobody joins readers from before it. Their record may have outlived a writer
-- whom this server has forgotten. A later reader would get a token below that writer's.
local function fits(flags)
  if not group then
    return not record
  end
  local weight, _, limit = <% permits flags %>
  if weight then
    return group.kind == '=p' and group.used + weight <= in_force(tonumber(limit))
  end
  return group.kind == '=r' and string.find(flags, 'r', 1, true) and group.shown > past
end

-- has_its_turn says whether a waiter with these flags leaves the queue, if it is the first: because
-- its share fits, or because it requests too much.
local function has_its_turn(flags)
  return fits(flags) or not record and too_much(flags)
end

-- seat writes a member. Its details come last, so a server out of memory refuses the first
-- command of the two.
local function seat(owner, deadline, value)
  redis.call('ZADD', members, text(deadline), owner)
  redis.call('HSET', details, owner, value)
  changed = true
end

-- nobodys says whether all that the group has is held back, as far as those show who last the longest.
local function nobodys()
  for _, owner in ipairs(group.kept > now_ms and redis.call('ZRANGE', members, -most_told, -1) or {'a member'}) do
    if string.sub(owner, 1, 2) ~= '- ' then
      return false
    end
  end
  return true
end

-- touch is the first write for who has the key. A server out of memory allows it, and then allows
-- the rest of the script. A replica refuses it.
local function touch()
  redis.call('PEXPIRE', lock, redis.call('PTTL', lock))
end

-- found makes a group of nobody yet. It removes the members that an earlier one has left behind.
local function found(kind, token)
  if redis.call('EXISTS', members, details) > 0 then
    redis.call('UNLINK', members, details)
  end
  group = {
    kind = kind, shown = token, kept = 0, used = 0, limit = kind == '=p' and most_permits or 0, agree = 0, other = 0,
    writer = '-', size = 0,
  }
  record, vacant = nil, nil
end

-- watches returns the flags of a member: what it wants to hear.
local function watches(flags)
  flags = string.gsub(flags, '[^hw]', '')
  return flags == '' and '-' or flags
end

-- allot gives owner a share, with a number of its own. Readers have a token in common, which
-- is the number of the first of them. Permits are more than needed if nobody else waits. It
-- returns the number, the fence and the weight. As in grant, the group has a number that is the clock's time.
local function allot(owner, channel, ttl, flags, holder)
  local token = count()
  if token ~= now then
    store()
  end
  local weight, extra, limit = <% permits flags %>
  if not group then
    found(weight and '=p' or '=r', token)
  end
  weight, limit = tonumber(weight or 0), tonumber(limit or 0)
  if extra then
    group.shown = token
    if size == 0 then
      weight = weight + math.max(0, math.min(tonumber(extra), in_force(limit) - group.used - weight))
    end
    group.used = group.used + weight
  end
  group.token, group.size = token, group.size + 1
  local wants = watches(flags)
  seat(owner, now_ms + ttl, <% member channel | wants | text(weight) | text(limit) | text(token) | holder %>)
  if extra then
    count_on(limit, 1)
  end
  return token, extra and 0 or group.shown, weight
end

-- take makes a waiter the holder, of all of the key or of its share. It returns the reply to
-- its request, if that is under way.
local function take(owner, channel, ttl, flags, holder)
  if <% sharing flags %> then
    local token, fence, weight = allot(owner, channel, ttl, flags, holder)
    return {9, token, size, fence, weight, 0}
  end
  local clocked = grant(owner, channel, ttl, flags, holder)
  changed = false
  return {1, last, size, clocked}
end

-- full says whether nobody can join the group, whoever waits: all permits are out. With a ceiling
-- somebody who requests too much could have to leave the queue.
local function full()
  return group and group.kind == '=p' and not most and group.used >= group.limit
end

-- nudge tells the last waiter to ask. Its request drops the dead before it, and serves the others.
local function nudge()
  local owner = redis.call('ZRANGE', queue, -1, -1)[1]
  local channel = owner and string.match(redis.call('HGET', waiters, owner) or '', <% pattern entry | channel %>)
  if channel then
    mail[#mail + 1] = {channel, <% wake owner %>}
  end
end

-- serve gives the key to the first in its queue, and to the next ones, as long as their shares
-- fit. The owner that asks, if there is one, has its turn in its place and gets its reply. Any
-- other is notified. A waiter that requests too much leaves, and is told to ask. serve returns false if the
-- queue is damaged, and it has done nothing. It drops 100 who have died at most. If there may be more, it returns
-- again to the owner that asks, unless it has served somebody. Otherwise the last waiter is told to ask.
local function serve(asker)
  local served, passed = 0, 0
  while not record do
    if served > 0 and not asker and full() then
      return true
    end
    local choice = choose(asker and asker.owner, asker and asker.place, has_its_turn, passed)
    if not choice then
      return served > 0
    end
    if choice.more then
      remove(choice.leaving)
      if asker and served == 0 then
        return again
      end
      nudge()
      return true
    end
    passed = passed + #choice.leaving - (choice.owner and 1 or 0)
    local mine = not choice.owner and not choice.blocked and asker
    if choice.blocked or mine and not fits(asker.flags) then
      if choice.leaving[#choice.leaving] == (mine and asker.owner) then
        table.remove(choice.leaving)
      end
      remove(choice.leaving)
      return true
    elseif mine then
      remove(choice.leaving)
      served = served + 1
      asker.reply = take(asker.owner, asker.channel, asker.ttl, asker.flags, asker.holder)
      asker = nil
    elseif not choice.owner then
      remove(choice.leaving)
      return true
    elseif served == most_served then
      mail[#mail + 1] = {choice.channel, <% wake choice.owner %>} -- its request serves the next ones
      return true
    elseif too_much(choice.flags) then
      remove(choice.leaving)
      served = served + 1
      mail[#mail + 1] = {choice.channel, <% wake choice.owner %>} -- its request is refused
    else
      remove(choice.leaving)
      served = served + 1
      local reply = take(choice.owner, choice.channel, choice.ttl, choice.flags, choice.holder)
      unnoted = true
      if reply[1] == 9 then
        local message = <% admitted choice.owner | text(reply[2]) | choice.ttl | text(size) | text(reply[4]) | text(reply[5]) %>
        mail[#mail + 1] = {choice.channel, message}
      else
        if reply[4] == 1 then
          store()
        end
        mail[#mail + 1] = {choice.channel, <% granted choice.owner | text(last) | choice.ttl | text(size) | reply[4] %>}
      end
    end
  end
  return true
end

-- tell sends the members a message, of which this is the beginning: those with the flag, or
-- all. In one step these are at most 128, who last the longest. The others learn of it by their
-- next renewal. tell returns 1 if it told anybody, else 0.
local function tell(message, flag)
  local told, owners = 0, redis.call('ZRANGE', members, -most_told, -1)
  for i, value in ipairs(redis.call('HMGET', details, unpack(owners))) do
    local channel, flags = string.match(value or '', <% pattern member | channel flags %>)
    if channel and channel ~= '-' and (not flag or string.find(flags, flag, 1, true)) then
      mail[#mail + 1] = {channel, message .. owners[i]}
      told = 1
    end
  end
  return told
end

-- described says who shares the key.
local function described()
  if group.size == 1 then
    local value = redis.call('HGET', details, redis.call('ZRANGE', members, 0, 0)[1]) or ''
    return string.match(value, <% pattern member | holder %>) or ''
  elseif group.kind == '=r' then
    return text(group.size) .. ' readers'
  end
  return text(group.size) .. ' holders of ' .. text(group.used) .. ' permits'
end

-- remaining returns the ms until who has these flags may have the key, if nobody renews or
-- releases. Permits may be free when the first member ends.
local function remaining(flags)
  local at = flags and string.find(flags, 'p', 1, true) and 0 or -1
  return math.max(tonumber(redis.call('ZRANGE', members, at, at, 'WITHSCORES')[2]) - now_ms, 0)
end

-- has answers the request of an owner that has its share. As in lock.lua, the TTL only grows,
-- and in the grace the owner may not have its share any more.
local function has(owner, ttl, ticket, deadline)
  local value = redis.call('HGET', details, owner) or ''
  local weight, token = string.match(value, <% pattern member | weight token %>)
  if not weight then
    return {-1, details}
  end
  touch()
  seat(owner, math.max(tonumber(deadline), grace == 0 and now_ms + ttl or 0), value)
  local limit = group.kind == '=p' and (most or group.limit) or 0
  if grace > 0 then
    local place = tonumber(ticket)
    return {2, 0, grace, place > 0 and place or tonumber(token), math.max(last, past), grace, 0, '', limit, group.used}
  end
  return {9, tonumber(token), size, group.kind == '=r' and group.shown or 0, tonumber(weight), limit}
end

-- refuse answers a request for more permits than there are. Those behind it may have waited only
-- for it. As in a withdrawal, who finds a damaged queue reports it with its own request.
local function refuse(owner)
  local first = redis.call('ZRANK', queue, owner) == 0
  remove({owner})
  if grace == 0 then
    serve()
  end
  if first and (group and group.kept > now_ms or record and record.owner == '-') then
    wake() -- the one behind it did not know that it would be the first
  end
  return {10, most}
end

-- waiting returns the reply of acquire in lock.lua to who does not have the key, with the limit in
-- force and how many permits are out.
local function waiting(reply, flags)
  local _, _, limit = <% permits flags %>
  if limit and reply ~= again and reply[1] >= 2 and reply[1] <= 4 then
    reply[#reply + 1] = in_force(tonumber(limit))
    reply[#reply + 1] = group and group.used or 0 -- of readers none are
  end
  return reply
end

-- request answers the request whose fields follow ARGV[before], as acquire in lock.lua does
-- where nobody shares the key.
local function request(before)
  local owner, channel, ttl, grant_ttl, liveness, wait, limit, ticket, flags, holder =
    unpack(ARGV, before + 1, before + 10)
  local deadline = group and redis.call('ZSCORE', members, owner)
  if deadline then
    return has(owner, ttl, ticket, deadline)
  end
  if too_much(flags) and not (record and record.owner == owner) and not dead(owner) then
    return refuse(owner)
  end
  local queued = redis.call('ZSCORE', queue, owner)
  if not record and grace == 0 and not dead(owner) then
    local place = tonumber(queued or ticket)
    local asker = {
      owner = owner, place = place ~= 0 and place or nil, channel = channel, ttl = ttl, flags = flags, holder = holder,
    }
    local done = serve(asker)
    if not done then
      return {-1, waiters}
    elseif done == again or not (asker.reply or group or record) then
      return again -- those before the owner were refused or have died, and more of them may follow
    end
    if asker.reply then
      asker.reply[3] = size -- some behind it may have been served, too
      if group and group.kind == '=p' then
        asker.reply[6] = most or group.limit
      end
      return asker.reply
    end
  end
  if not group then
    return waiting(acquire(before), flags)
  end
  -- It is acquire of lock.lua that queues. To it the group is a holder that wants to hear nothing.
  record = {token = group.shown, owner = '- ', channel = '-', flags = '-', holder = described()}
  wanted = function() return tell(<% wanted '' %>, 'w') end
  local reply = acquire(before)
  record = nil
  if reply == again then
    return again
  end
  if reply[1] == 2 or reply[1] == 3 then
    reply[3] = math.max(remaining(flags), grace)
  end
  if reply[1] == 2 and size == 1 and not queued then
    tell(<% contended '' %>, 'h')
  end
  return waiting(reply, flags)
end

-- finish writes what is true now, and sends the messages. As in grant, the counter need not have the last number of
-- the group. But a handoff does not note the clock.
local function finish()
  if changed and group then
    save()
    if last > stored and (unnoted or last ~= group.token) then
      store()
    end
  elseif changed and not record then
    vacate()
  end
  for _, message in ipairs(mail) do
    notify(message[1], message[2])
  end
end
