-- acquire: take the key, or join its queue, or neither. The same owner may send it
-- again. Then it is the waiter's heartbeat. It brings a dropped waiter back to its
-- place, and finds a grant whose message was missed.
--
-- KEYS  lock, queue, waiters, counter, gone (see lock.lua), epoch (epoch.lua)
-- ARGV  owner, channel, ttl, ttl if granted by message, liveness (all ms),
--       wait (0 or 1), queue limit (0: none), ticket (0: none), flags, holder,
--       the counter's TTL (ms), least grace (ms; 0: no guard)
--
-- Reply, by its first element:
--   1 granted   token, waiters, whether the token came from the clock, and if the epoch was
--               looked at for it: the id of its history, and the longest TTL (ms) of it. Or 'o' before the
--               id, and 0, if somebody has ended the grace of this history, and it would still last
--   2 waiting   rank, the holder's remaining ms, ticket, the last token given,
--               for how long (ms) nobody is granted anything, then the holder's token
--               and description (0 and '' if nobody holds the key)
--   3 held      the holder's token and remaining ms, waiters, its description,
--               whether (0 or 1) it was notified of the request
--   4 full      waiters
--   5 gone      this owner was withdrawn
--   6 grace     for how long (ms) nobody is granted anything
--   7 hidden    the server hides its history; nothing was changed
--   8 wide      others share the key; nothing was changed. acquire_shares.lua answers
--  -1 foreign   the Redis key that holds something else; nothing was changed

-- Two common cases come before any function definition, because the creation of
-- functions makes a short script slow. lock.lua does them too, and says why each step
-- is as it is. This part checks everything before it writes anything. take.lua is for keys
-- that are free, if the client has seen the server grant lately.
--
-- In both the counter is idle, or a token.
local taken, last = redis.pcall('GET', KEYS[1]), redis.pcall('GET', KEYS[4])
local counted = not last or type(last) == 'string' and <% token last %>
local vacant = type(taken) == 'string' and <% vacant taken %>

-- First, the key is free, and its queue empty.
local free = counted and (not taken or vacant and <% tokenDigits vacant %>)
if free and redis.call('EXISTS', KEYS[2], KEYS[5]) ~= 0 then
  -- Nobody waits, and those who are withdrawn are others.
  free = redis.call('EXISTS', KEYS[2]) == 0
    and not redis.pcall('ZSCORE', KEYS[5], ARGV[1])
end

-- Second, somebody holds the key, and this owner joins the queue or keeps its place.
local held = counted
  and type(taken) == 'string'
  and not vacant
  and ARGV[6] == '1' -- the owner waits
local token, owner, channel, flags, holder, queued
if held then
  token, owner, channel, flags, holder = string.match(taken, <% pattern record %>)
  queued = redis.pcall('ZSCORE', KEYS[2], ARGV[1])
  held = token -- the record is sound
    and <% tokenDigits token %>
    and owner ~= ARGV[1] -- the holder does not request what it has
    and not redis.pcall('ZSCORE', KEYS[5], ARGV[1]) -- the owner is not withdrawn
end
if held and queued then
  held = type(queued) == 'string' -- the queue is sound
    and <% token queued %> -- the place is a ticket
elseif held then
  held = ARGV[8] == '0' -- the owner was not dropped from the queue
end

if free or held then
  <% include sure.lua %>
  if not sure then
    -- The rest decides.
  elseif free then
    if now > math.max(last or 0, vacant or 0) -- the clock is no token that was given
      and now <= <% maxToken %> then
      -- '%.0f' prints all digits, and Lua itself only 14.
      local text, flags = string.format('%.0f', now), <% addFlag ARGV[9] | t %>
      redis.call('SET', KEYS[1], <% record text | ARGV[1] | ARGV[2] | flags | ARGV[10] %>, 'PX', ARGV[3])
      if stale then
        redis.call('SET', KEYS[6], stale, 'PX', 3 * <% day %>)
      end
      return {1, now, 0, 1, id, longest and longest + 0}
    end
  else
    local size = queued and 0 or redis.call('ZCARD', KEYS[2])
    local room = queued or ARGV[7] == '0' or size < ARGV[7] + 0 -- in the queue
    local deadline = string.format('%.0f', math.floor(ms) + ARGV[5])
    local entry = <% entry deadline | ARGV[2] | ARGV[4] | ARGV[9] | ARGV[10] %>
    -- This write comes first because it fails if the waiters' key is damaged, and if
    -- the server is out of memory. The rest reports both.
    if room and type(redis.pcall('HSET', KEYS[3], ARGV[1], entry)) == 'number' then
      local known = math.max(last or 0, token)
      if not queued then
        known = math.max(known + 1, now)
        queued = string.format('%.0f', known)
        local kept = string.format('%.0f', ARGV[11] + math.ceil((known - now) / 1000))
        redis.call('SET', KEYS[4], queued, 'PX', kept)
        redis.call('ZADD', KEYS[2], queued, ARGV[1])
        if size == 0 and string.find(flags, 'h', 1, true) and channel ~= '-' then
          local message = <% contended owner %>
          <% publish string.sub(channel, 1, 1) | string.sub(channel, 2) | message %>
        end
      end
      redis.call('PEXPIRE', KEYS[2], '<% day %>')
      redis.call('PEXPIRE', KEYS[3], '<% day %>')
      if stale then
        redis.call('SET', KEYS[6], stale, 'PX', 3 * <% day %>)
      end
      local rank = redis.call('ZRANK', KEYS[2], ARGV[1])
      if rank == 0 and string.find(flags, 'w', 1, true) and channel ~= '-' then
        local message = <% wanted owner %>
        <% publish string.sub(channel, 1, 1) | string.sub(channel, 2) | message %>
      end
      return {2, rank, math.max(redis.call('PTTL', KEYS[1]), 0), queued + 0, math.max(known, past), 0, token + 0, holder}
    end
  end
end

<% include epoch.lua %>

<% include lock.lua %>

local damaged = load() or look(tonumber(ARGV[3]))
if damaged then
  return {-1, damaged}
end
if hidden then
  return {7}
end
if shared then
  return {8}
end
note()
return acquire(0)
