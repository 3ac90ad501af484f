-- renew_shares: what renew.lua does, for those who share their key.
--
-- KEYS  lock, members, details (see shares.lua), queue (lock.lua), ceiling (shares.lua) and epoch
--       (epoch.lua) of each holding. While a cluster moves their slot, only the first three of a single holding: these
--       are all there, or all have moved. The reply is then that somebody waits.
-- ARGV  owner, ttl (ms), watch (as in renew.lua), what it has ('=r': a reader's share, '=p':
--       permits, 'x': all of the key), how many permits (0: none) of each holding; the counter's
--       TTL (ms, for renew.lua only), least grace (ms; 0: no guard)
--
-- Reply: as of renew.lua, but never -5. A share that the server does not know has ended. To how many
--        wait, 2^32 times the limit in force is added for who has permits.

local reply = {}
local least = tonumber(ARGV[#ARGV])
local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
local day = <% day %> -- ms
local outlive = 1000 -- ms, as in shares.lua
local seen = {} -- epochs that know the TTL
local each = #KEYS == 3 and 3 or 6 -- keys of a holding

-- lost returns the answer to an owner that is no member. Its share has expired if others hold
-- the key in the same way. A part that is held back is nobody's. lost looks at the 16 who last the longest.
local function lost(members, alike)
  local latest = alike and {} or redis.call('ZRANGE', members, '-16', '-1', 'WITHSCORES')
  for i = 1, #latest, 2 do
    if string.sub(latest[i], 1, 2) ~= '- ' and tonumber(latest[i + 1]) > now_ms then
      return -3
    end
  end
  return -2
end

-- rewrite renews a member of which something else changes than its time. value is the lock's and entry
-- the member's, and both can be read. latest is until when a member holds its share.
local function rewrite(lock, details, owner, value, entry, latest, watch, permits)
  local kind, token, shown, kept, used, limit, agree, other, writer = string.match(value, <% pattern group %>)
  local channel, flags, weight, most, number, holder = string.match(entry, <% pattern member %>)
  token, shown, kept, used, limit, agree, other = tonumber(token), tonumber(shown), tonumber(kept), tonumber(used), tonumber(limit), tonumber(agree), tonumber(other)
  if tonumber(permits) > 0 and tonumber(permits) < tonumber(weight) then
    used, weight = used - weight + permits, permits
  end
  if watch == '1' and not string.find(flags, 'h', 1, true) then
    flags = <% addFlag flags | h %>
  end
  redis.call('HSET', details, owner, <% member channel | flags | weight | most | number | holder %>)
  redis.call('SET', lock, <% group kind | token | shown | kept | used | limit | agree | other | writer %>, 'PXAT', latest)
end

for i = 1, (#ARGV - 2) / 5 do
  local lock, members, details = KEYS[each * (i - 1) + 1], KEYS[each * (i - 1) + 2], KEYS[each * (i - 1) + 3]
  local queue, ceiling, epoch = each == 6 and KEYS[6 * i - 2], each == 6 and KEYS[6 * i - 1], each == 6 and KEYS[6 * i]
  local mine, ttl, watch, mode, permits = ARGV[5 * i - 4], ARGV[5 * i - 3], ARGV[5 * i - 2], ARGV[5 * i - 1], ARGV[5 * i]
  local value = redis.pcall('GET', lock)
  local answer
  local bad -- the foreign value of a key, or the server's error
  local held = false
  local limit = 0 -- of permits
  if not value then
    answer = -2
  elseif type(value) ~= 'string' then
    bad = value
  elseif string.sub(value, 1, 1) == '=' then
    local kind, smallest, other = string.match(value, <% pattern group | kind limit other %>)
    local top = kind and redis.pcall('ZRANGE', members, '-1', '-1', 'WITHSCORES')
    local entry = top and redis.pcall('HGET', details, mine)
    local deadline = top and top[2] -- of the member that lasts the longest
    if top and not top.err and top[1] ~= mine then
      deadline = redis.pcall('ZSCORE', members, mine)
    end
    if not kind then
      answer = -1
    elseif top.err or type(entry) == 'table' or type(deadline) == 'table' then
      bad = top.err and top or type(entry) == 'table' and entry or deadline
    elseif not deadline or deadline + 0 <= now_ms then
      answer = lost(members, kind == mode)
    else
      local flags, weight, holder = string.match(entry or '', <% pattern member | flags weight holder %>)
      if not flags then
        bad = true
      else
        held, limit = true, kind == '=p' and smallest + 0 or 0
        local later = math.max(deadline, now_ms + ttl)
        local latest = math.max(top[2], later)
        local left, ends = string.format('%.0f', latest - now_ms + outlive), string.format('%.0f', latest)
        -- This write comes first because a server out of memory allows it, and then allows the rest.
        redis.call('PEXPIRE', members, left)
        redis.call('PEXPIRE', details, left)
        if other ~= '0' then
          redis.pcall('PEXPIRE', string.sub(lock, 1, -2) .. 'c', left) -- larger, in shares.lua; it may have moved
        end
        redis.call('ZADD', members, string.format('%.0f', later), mine)
        if watch == '1' and not string.find(flags, 'h', 1, true)
          or permits ~= '0' and permits ~= weight and permits + 0 < weight + 0 then
          rewrite(lock, details, mine, value, entry, ends, watch, permits)
        else
          redis.call('SET', lock, value, 'PXAT', ends)
        end
      end
    end
  else
    local token, owner, channel, flags, holder = string.match(value, <% pattern record %>)
    if not owner then
      answer = <% vacant value %> and -2 or -1
    elseif owner ~= mine then
      answer = owner == '-' and -2 or -3
    else -- it has all of the key, as the server has forgotten that it keeps a part only
      held = true
      local left = math.max(redis.call('PTTL', lock), ttl)
      redis.call('PEXPIRE', lock, left)
      if watch == '1' and not string.find(flags, 'h', 1, true) then
        flags = <% addFlag flags | h %>
        redis.call('SET', lock, <% record token | owner | channel | flags | holder %>, 'PX', left)
      end
    end
  end
  if held then
    <% include reach.lua %>
    answer = queue and redis.pcall('ZCARD', queue) or 1
    if type(answer) ~= 'number' then
      answer = 0 -- the next acquire reports the damage; the holding is sound
    end
    local stored = limit > 0 and ceiling and redis.pcall('GET', ceiling)
    stored = type(stored) == 'string' and tonumber(stored)
    answer = answer + (stored or limit) * 4294967296
  end
  if bad then
    answer = type(bad) == 'table' and not string.find(bad.err, 'WRONGTYPE', 1, true) and -4 or -1
  end
  reply[i] = answer
end
return reply
