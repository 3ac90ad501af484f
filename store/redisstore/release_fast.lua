-- release_fast: the common ends of a holding. Either nobody waits, or the first
-- waiter is alive and is given the key. release.lua does both too, and the less common
-- cases. lock.lua says why each step is as it is.
--
-- KEYS  lock, queue, waiters, counter, gone (see lock.lua)
-- ARGV  owner, last token used, the counter's TTL (ms)
--
-- Reply:
--   0  the case is another one, and nothing was changed
--   1  nobody waits, or the first waiter has the key and others wait
--   2  the only waiter has the key
--   3  nobody waits, and the vacancy has the last token used
--   8  others share the key, or the first waiter will, and nothing was changed
--
-- Waiters wait for this script. It finds the processor cold, because commands on one
-- key come seldom. So it is a script of its own, has few keys and arguments and
-- creates no function. It compares numbers as text, which must have equally many
-- digits, or at most as many as now.
--
-- It hands the key on without a look at the epoch (epoch.lua). Its owner trusts its
-- lease, never released the key before, and has no renewal under way (see
-- store.ReleaseRequest.Clean). The record is there, and has longer to live than
-- clocks of servers differ. So the holding was over on no server, and nobody was
-- granted the key after it.

local lag = 1000 -- ms

local value = redis.pcall('GET', KEYS[1])
if type(value) ~= 'string' then
  return 0
end
local token, kept = ARGV[2], ARGV[3]
if string.find(value, token .. ' ' .. ARGV[1] .. ' ', 1, true) ~= 1 then
  local owner
  token, owner = string.match(value, <% pattern record | token owner %>)
  if owner ~= ARGV[1] then
    return string.sub(value, 1, 1) == '=' and 8 or 0
  end
  -- Another token was used, which may be ahead of the clock. Then it is kept for longer.
  if #token == #ARGV[2] and token < ARGV[2] then
    local time = redis.call('TIME')
    kept = string.format('%.0f', kept + math.max(0, math.ceil((ARGV[2] - time[1] * 1000000 - time[2]) / 1000)))
  end
end
-- Nobody waits, nobody is withdrawn, and no token is larger than the one used. A server
-- out of memory refuses this write, and release.lua does without.
if token <= ARGV[2] and #token == #ARGV[2] and redis.call('EXISTS', KEYS[2], KEYS[4], KEYS[5]) == 0 then
  return redis.pcall('SET', KEYS[1], ARGV[2], 'PX', kept).ok and 3 or 0
end
local head = redis.pcall('ZRANGE', KEYS[2], '0', '1')
local last = redis.pcall('GET', KEYS[4])
if last and (type(last) ~= 'string' or not string.find(last, '^%d+$')) then
  return 0
end

local first = head[1]
if not first then
  if head.err or token ~= ARGV[2] or last and (#last ~= #token or last > token) then
    return 0
  end
  -- The token may be ahead of the clock. Then it is kept for longer.
  kept = last and math.max(redis.call('PTTL', KEYS[4]), ARGV[3]) or ARGV[3]
  if redis.call('EXISTS', KEYS[5]) == 1 then
    -- A vacancy would say that nobody is.
    redis.call('DEL', KEYS[1]) -- first, because a server out of memory allows it, and then the rest
    redis.call('SET', KEYS[4], token, 'PX', kept)
    return 1
  end
  redis.call('DEL', KEYS[4]) -- first, likewise
  redis.call('SET', KEYS[1], token, 'PX', kept)
  return 3
end
if not last then
  return 0
end

local entry = redis.pcall('HGET', KEYS[3], first)
if type(entry) ~= 'string' then
  return 0
end
local deadline, mode, name, ttl, flags, holder =
  string.match(entry, <% pattern entry | deadline mode name ttl flags holder %>)
local time = redis.call('TIME')
local now = time[1] .. string.sub('00000' .. time[2], -6)
if deadline -- the entry is sound
  -- The waiter is alive. Both texts have as many digits, so they compare like numbers.
  and #deadline + 3 == #now and deadline .. '000' >= now
  -- The clock is ahead of the counter, the record's token and the last token used.
  and #last <= #now and last < now
  and #token <= #now and token < now
  and #ARGV[2] <= #now and ARGV[2] < now
  -- Redis accepts the TTL.
  and #ttl < 16
  -- A record can hold the owner.
  and string.find(first, '^%S+$')
  -- The waiter takes all of the key, and believes a token of today's clock; see the flags.
  and not string.find(flags, '[grp]')
  -- The waiter can be notified, or polls.
  and (mode == 'u' or mode == '-' or <% receivers mode | name %>[2] ~= 0)
  -- The holding would have gone on; see above.
  and redis.call('PTTL', KEYS[1]) > lag then
  -- Numbers are given as text, which takes Redis half as long.
  local size = 0
  if head[2] then
    redis.call('ZREM', KEYS[2], first)
    redis.call('HDEL', KEYS[3], first)
    size = redis.call('ZCARD', KEYS[2])
  else -- the queue ends with this waiter
    redis.call('DEL', KEYS[2], KEYS[3])
  end
  redis.call('SET', KEYS[4], now, 'PX', ARGV[3])
  flags = <% addFlag flags | t %>
  redis.call('SET', KEYS[1], <% record now | first | mode .. name | flags | holder %>, 'PX', ttl)
  if mode ~= '-' then
    local message = <% granted first | now | ttl | size | '1' %>
    <% publish mode | name | message %>
  end
  return size == 0 and 2 or 1
end
return flags and <% sharing flags %> and 8 or 0
