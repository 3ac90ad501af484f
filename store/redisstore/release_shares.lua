-- release_shares: what release.lua does, where others share the key, or the next waiter will,
-- or the owner keeps a part of what it has.
--
-- KEYS  lock, queue, waiters, counter, gone (see lock.lua), epoch (epoch.lua), members, details,
--       ceiling (shares.lua)
-- ARGV  owner, last token used, ms to keep back what is released (0: none), uncertain (0 or 1; 2:
--       it is clean), the rest ('-': nothing, 'r': a reader's share, or how many permits), then, to queue
--       again, a request as in acquire_shares.lua; the counter's TTL (ms), least grace (ms; 0:
--       no guard)
--
-- Reply: as of release.lua, but never 8, and with a rest
--   {1, number, the readers' token}  the owner has the rest; 0 and 0 of permits
--   -5                               the rest is no part of what the owner has; nothing was changed

-- A clean release without a waiter leaves nothing to remember in the grace, so it does not look at
-- the epoch. The owner never released its share before, and has no renewal under way (see
-- store.ReleaseRequest.Clean). The same is true of release_fast.lua.
--
-- The common cases come before any function definition, as in acquire_shares.lua, and check everything
-- before they write anything. The owner gives back all that it has, nobody is withdrawn, and no ceiling
-- is set. Then one of three things happens. The first waiter gets permits, and nobody else can have any.
-- Or nobody waits, and the group ends. Or nobody waits, and others remain.
do
  local common = #ARGV == 7 and ARGV[3] == '0' and ARGV[4] ~= '1' and ARGV[5] == '-'
  local value, last = common and redis.pcall('GET', KEYS[1])

  -- The group is sound.
  local kind, token, shown, kept, used, limit, agree, other, writer
  if type(value) == 'string' then
    kind, token, shown, kept, used, limit, agree, other, writer = string.match(value, <% pattern group %>)
  end
  common = kind and #token <= 16 and math.max(token, shown, kept, used, limit, agree, other) <= <% maxToken %>

  -- Usually nobody waits, and the counter is idle. Or it is a token, and the first two who wait are known.
  local head
  if common and redis.call('EXISTS', KEYS[2], KEYS[4], KEYS[5], KEYS[9]) ~= 0 then
    last = redis.pcall('GET', KEYS[4])
    common = not last or type(last) == 'string' and <% token last %>
    if common and redis.call('EXISTS', KEYS[2], KEYS[5], KEYS[9]) ~= 0 then
      head = redis.pcall('ZRANGE', KEYS[2], '0', '1')
      common = kind == '=p' and head[1] ~= nil and redis.call('EXISTS', KEYS[5], KEYS[9]) == 0
    end
  end

  -- The owner is one of the members. They are sound, and no member's time is over.
  local size, weight, time, now, ms, known
  if common then
    local early = redis.pcall('ZRANGE', KEYS[7], '0', '1', 'WITHSCORES')
    local ends = early[1] == ARGV[1] and early[2]
    size = #early / 2
    if size > 1 then
      size, ends = redis.call('ZCARD', KEYS[7]), redis.call('ZSCORE', KEYS[7], ARGV[1])
    end
    ends = ends and size == redis.pcall('HLEN', KEYS[8])
    weight = string.match(ends and redis.call('HGET', KEYS[8], ARGV[1]) or '', <% pattern member | weight %>)
    time = redis.call('TIME')
    now = time[1] * 1000000 + time[2]
    ms = math.floor(now / 1000)
    known = math.max(last or 0, token, shown)
    common = weight and early[2] + 0 > ms
  end

  -- The grace is over; see epoch.lua.
  if common and ARGV[7] ~= '0' and (head or ARGV[4] ~= '2') then
    local epoch, info = redis.pcall('GET', KEYS[6]), redis.pcall('INFO', 'replication')
    local id, ready, noted
    if type(epoch) == 'string' and type(info) == 'string' then
      id, ready, noted = string.match(epoch, <% pattern epoch | id ready noted %>)
    end
    common = id -- the epoch is sound
      and <% hasHistory info | id %> -- this server wrote it
      and <% graceLeft ready | ms %> <= 0
      and not (head and <% beforeNoted noted | ms %>) -- the clock was not set back
  end

  -- Without the owner the group ends, or it is smaller; see uncount in shares.lua.
  if common and size == 1 and head then -- it ends, and another one begins
    kept, used, limit, agree, other, writer = '0', 0, 0, 0, '0', '-'
  elseif common and size > 1 and kind == '=p' then
    used, agree = used - weight, agree - 1
    common = other == '0' and agree > 0 -- all count on the same limit, which stays
  end

  -- The first waiter gets its permits.
  local waiter
  if common and head then
    waiter = redis.pcall('HGET', KEYS[3], head[1])
  end
  local deadline, mode, name, ttl, flags, holder, needed, extra, believed, gets
  if type(waiter) == 'string' then
    deadline, mode, name, ttl, flags, holder = string.match(waiter, <% pattern entry | deadline mode name ttl flags holder %>)
  end
  if deadline then
    needed, extra, believed = <% permits flags %>
  end
  if needed then
    needed, extra, believed = needed + 0, extra + 0, believed + 0
    limit, agree = size == 1 and believed or limit + 0, agree + 1
    extra = head[2] and 0 or math.max(0, math.min(extra, limit - used - needed))
    used = used + needed + extra
    if used <= limit and believed == limit and believed <= 1000000 -- its permits are free
      and (not head[2] or used == limit) -- and nobody else's
      and deadline + 0 >= ms -- it is alive
      and #ttl <= 15 and string.find(head[1], '^%S+$') -- the entry is sound; see choose in lock.lua
      and now > known and now <= <% maxToken %> -- the clock is a token
      and kept + 0 <= ms -- nobody has to know another time
      and (mode == 'u' or mode == '-' or <% receivers mode | name %>[2] ~= 0) then
      gets = true
    end
  end
  if head then
    common = gets
  elseif common and size > 1 then
    common = known == token + 0 or last and known == last + 0 -- the group knows the last token, or the counter does
  end

  -- Now it is certain. A server out of memory allows the first write, and then the others, too.
  if common and size == 1 and not head then
    redis.call('DEL', KEYS[7], KEYS[8], KEYS[4])
    -- The key is vacant.
    local vacancy = known == token + 0 and token or string.format('%.0f', known)
    local ahead = known > now and math.ceil((known - now) / 1000) or 0 -- ms
    redis.call('SET', KEYS[1], vacancy, 'PX', ahead > 0 and string.format('%.0f', ARGV[6] + ahead) or ARGV[6])
    return 1
  elseif common then
    redis.call('ZREM', KEYS[7], ARGV[1])
    redis.call('HDEL', KEYS[8], ARGV[1])
  end
  local message
  if common and head then
    local waiting = 0
    if head[2] then
      redis.call('ZREM', KEYS[2], head[1])
      redis.call('HDEL', KEYS[3], head[1])
      waiting = redis.call('ZCARD', KEYS[2])
    else -- the queue ends with this waiter
      redis.call('DEL', KEYS[2], KEYS[3])
    end
    local text, granted = time[1] .. string.sub('00000' .. time[2], -6), string.format('%.0f', needed + extra)
    local wants = string.gsub(flags, '[^hw]', '')
    wants = wants == '' and '-' or wants
    redis.call('ZADD', KEYS[7], string.format('%.0f', ms + ttl), head[1])
    redis.call('HSET', KEYS[8], head[1], <% member mode .. name | wants | granted | string.format('%.0f', believed) | text | holder %>)
    redis.call('SET', KEYS[4], text, 'PX', ARGV[6])
    token, shown = text, text
    message = <% admitted head[1] | text | ttl | waiting | '0' | granted %>
  end
  if common then
    local latest = size == 1 and ms + ttl or redis.call('ZRANGE', KEYS[7], '-1', '-1', 'WITHSCORES')[2] + 0
    local left = string.format('%.0f', latest - ms + 1000) -- outlive
    if kind == '=p' then
      used, limit, agree = string.format('%.0f', used), string.format('%.0f', limit + 0), string.format('%.0f', agree)
    end
    redis.call('SET', KEYS[1], <% groupOfTexts kind | token | shown | kept | used | limit | agree | other | writer %>, 'PXAT', string.format('%.0f', latest))
    redis.call('PEXPIRE', KEYS[7], left)
    redis.call('PEXPIRE', KEYS[8], left)
    if message and mode ~= '-' then
      <% publish mode | name | message %>
    end
    return 1
  end
end

<% include epoch.lua %>

<% include lock.lua %>

<% include shares.lua %>

local damaged = load() or look(tonumber(ARGV[8] or 0)) or open()
if damaged then
  return damaged == again and again or {-1, damaged}
end

local owner, used, keep, uncertain, rest = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4], ARGV[5]

-- keep_a_part holds back what the owner had. A part has no owner, so nobody can renew it.
local function keep_a_part(name, weight, limit, token, holder)
  local ends = now_ms + keep
  seat(name, ends, <% member '-' | '-' | weight | limit | token | holder %>)
  group.kept = math.max(group.kept, ends)
end

-- leave ends the share of a member.
local function leave(value)
  if keep == 0 then
    expel({owner})
    return
  end
  local weight, limit, token, holder = string.match(value, <% pattern member | weight limit token holder %>)
  redis.call('ZREM', members, owner)
  redis.call('HDEL', details, owner)
  keep_a_part('- ' .. token, weight, limit, token, holder)
end

-- shrink makes the permits of a member fewer, and never more.
local function shrink(value, deadline)
  local channel, flags, weight, limit, token, holder = string.match(value, <% pattern member %>)
  if tonumber(rest) >= tonumber(weight) then
    return
  end
  seat(owner, deadline, <% member channel | flags | rest | limit | token | holder %>)
  if keep > 0 then
    keep_a_part('- ' .. token .. ' ' .. weight, text(weight - rest), limit, token, holder)
    group.size = group.size + 1
    count_on(tonumber(limit), 1)
  else
    group.used = group.used - weight + rest
  end
end

-- read_on makes a holder of all of the key a reader, with a number and a token of its own. The
-- time that it has left stays.
local function read_on()
  local holder, left = record, redis.call('PTTL', lock)
  -- In the grace the number is not the clock's. A writer who had the key since, and whom the server has
  -- forgotten, has a larger token than all that were used here, and is written anew.
  local token = grace > 0 and used + 1 or count()
  last, unnoted = math.max(last, token), true
  local wants = watches(holder.flags)
  found('=r', token)
  group.token, group.size, group.writer = token, 1, holder.owner
  seat(owner, now_ms + left, <% member holder.channel | wants | '0' | '0' | text(token) | holder.holder %>)
  return {1, token, token}
end

local deadline = group and tonumber(redis.call('ZSCORE', members, owner) or '')
local value = deadline and (redis.call('HGET', details, owner) or '')
if value and not string.find(value, <% pattern member %>) then
  return {-1, details}
end
local choice = {}
if (deadline or record and record.owner == owner) and size > 0 and grace == 0 then
  choice = choose()
end
if not choice then
  return {-1, waiters}
elseif choice.more then
  remove(choice.leaving)
  return again
end
local held, reply
local first = false -- it was the first to wait
if record and record.owner == owner then
  if rest ~= '-' and rest ~= 'r' then
    return -5
  end
  held = 1
  touch()
  used = math.max(used, record.token)
  last = math.max(last, used)
  if rest == 'r' then
    reply = read_on()
  elseif keep > 0 then
    hold_back(used, keep)
  else
    record, changed = nil, true
  end
elseif deadline then
  if rest ~= '-' and (rest == 'r') ~= (group.kind == '=r') then
    return -5
  end
  held = 1
  touch()
  if rest == '-' then
    leave(value)
  elseif rest == 'r' then
    reply = {1, read_token(string.match(value, <% pattern member | token %>)), group.shown}
  else
    reply = {1, 0, 0}
    shrink(value, deadline)
  end
else
  held = record and record.owner ~= '-' and -3 or -2 -- who shared it has expired, as others share it
  first = (group and group.kept > now_ms or record and record.owner == '-') and redis.call('ZRANK', queue, owner) == 0
  remove({owner})
  -- Of what was forgotten nothing is left to keep.
  if rest == '-' and forgot(used, record and record.token or group and group.token) then
    held = 1
  end
end

if uncertain == '1' or grace > 0 and not reply then
  tombstone(owner)
end
if grace == 0 then
  serve() -- after a withdrawal, who finds a damaged queue reports it with its own request
end
if grace > 0 and changed and not record and not group then
  vacate() -- now: to queue again tells for how long the key is kept
  changed = false
end
if #ARGV > 7 then
  note()
  reply = request(5)
  if reply == again then
    reply = {again}
  end
  table.insert(reply, 1, held)
end
finish()
if first or held == 1 and group and group.kept > now_ms then
  wake() -- it knows another time
end
return reply or held
