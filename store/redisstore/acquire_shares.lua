-- acquire_shares: what acquire.lua does, where the request is for a share of the key, or
-- others share it.
--
-- KEYS  lock, queue, waiters, counter, gone (see lock.lua), epoch (epoch.lua), members, details,
--       ceiling (shares.lua)
-- ARGV  owner, channel, ttl, ttl if granted by message, liveness (all ms), wait (0 or 1),
--       queue limit (0: none), ticket (0: none), flags, holder, the counter's TTL (ms), least
--       grace (ms; 0: no guard)
--
-- Reply: as of acquire.lua, but never 8, or
--   9 granted a share   its number, waiters, the readers' token (0 of permits), how many
--                       permits, and how many there are (0 and 0 of a reader)
--  10 too much          how many permits there are; the owner is not in the queue
-- or -6, as of release.lua.
-- A reply of 2, 3 or 4 to a request for permits ends with how many there are, and how many are out.

-- The common cases come before any function definition, as in acquire.lua, and check everything
-- before they write anything. Nobody waits or is withdrawn, and no ceiling is set. The key is free,
-- or a group has it beside which the share fits. shares.lua says why each step is as it is.
local taken, last = redis.pcall('GET', KEYS[1]), redis.pcall('GET', KEYS[4])
local weight, extra, limit = <% permits ARGV[9] %>
local kind = weight and '=p' or string.find(ARGV[9], 'r', 1, true) and '=r'
local vacant = type(taken) == 'string' and <% vacant taken %>
weight, extra, limit = weight and weight + 0, extra and extra + 0, limit and limit + 0
local common = kind -- the request is for a share
  and (not last or type(last) == 'string' and #last <= 16 and string.find(last, '^%d+$')) -- the counter is a number, or idle
  and (not limit or limit <= 1000000) -- there are as many permits as there can be
local first, final, shown, kept, used, smallest, least, other, writer -- of the group, and of its members the times
local known = math.max(common and last or 0, vacant or 0)
if not common then
  -- The rest reports the damage, or takes all of the key.
elseif not taken or vacant then
  common = (not vacant or #vacant <= 16)
    and redis.call('EXISTS', KEYS[2], KEYS[5], KEYS[7], KEYS[8], KEYS[9]) == 0
  kept, used, smallest, least, other, writer = 0, 0, limit or 0, 0, 0, '-'
elseif type(taken) == 'string' then
  local alike, token
  alike, token, shown, kept, used, smallest, least, other, writer = string.match(taken, <% pattern group %>)
  common = alike == kind -- the group is sound, and shares the key likewise
  if common then -- some servers' Lua prints no text as a number
    token, shown, kept, used, smallest, least, other = token + 0, shown + 0, kept + 0, used + 0, smallest + 0, least + 0, other + 0
  end
  common = common
    and math.max(token, shown, kept, used, smallest, least, other) <= 9e15 -- its numbers are some
    and redis.call('EXISTS', KEYS[2], KEYS[5], KEYS[9]) == 0
    and redis.pcall('ZCARD', KEYS[7]) == redis.pcall('HLEN', KEYS[8]) -- its members are sound
    and not redis.call('ZSCORE', KEYS[7], ARGV[1]) -- the owner is none of them
  if common and weight then
    common = limit == smallest and other == 0 -- all count on the same limit
      and used + weight <= smallest -- the permits are free
  end
  if common then
    first = redis.call('ZRANGE', KEYS[7], '0', '0', 'WITHSCORES')[2]
    final = redis.call('ZRANGE', KEYS[7], '-1', '-1', 'WITHSCORES')[2]
    common = first -- somebody has it
    known = math.max(known, token, shown)
  end
else
  common = false
end
if common then
  local epoch, info
  <% include sure.lua %>
  local clock = math.floor(ms)
  if sure
    and now > known and now <= 9e15 -- the clock is a token; see whole in lock.lua
    and (not first or first + 0 > clock) -- no member's time is over
    and (not first or weight or shown > past) then -- the readers are from after a loss
    -- '%.0f' prints all digits, and Lua itself only 14.
    local text, wants = string.format('%.0f', now), string.gsub(ARGV[9], '[^hw]', '')
    wants = wants == '' and '-' or wants
    local ends = clock + ARGV[3]
    local latest = math.max(ends, final or 0)
    local left = string.format('%.0f', latest - clock + 1000) -- outlive
    shown = not weight and shown or now
    if weight then
      weight = weight + math.max(0, math.min(extra, smallest - used - weight))
      used = used + weight
      least = least + 1
    end
    redis.call('ZADD', KEYS[7], string.format('%.0f', ends), ARGV[1])
    redis.call('HSET', KEYS[8], ARGV[1], <% member ARGV[2] | wants | string.format('%.0f', weight or 0) | string.format('%.0f', limit or 0) | text | ARGV[10] %>)
    redis.call('SET', KEYS[1], <% group kind | now | shown | kept | used | smallest | least | other | writer %>, 'PXAT', string.format('%.0f', latest))
    redis.call('PEXPIRE', KEYS[7], left)
    redis.call('PEXPIRE', KEYS[8], left)
    redis.call('SET', KEYS[4], text, 'PX', ARGV[11])
    if stale then
      redis.call('SET', KEYS[6], stale, 'PX', 3 * <% day %>)
    end
    return {9, now, 0, weight and 0 or shown, weight or 0, weight and smallest or 0}
  end
end

<% include epoch.lua %>

<% include lock.lua %>

<% include shares.lua %>

local damaged = load() or look(tonumber(ARGV[3]))
if damaged then
  return {-1, damaged}
end
if hidden then
  return {7}
end
damaged = open()
if damaged then
  return damaged == again and again or {-1, damaged}
end
note()
local reply = request(0)
finish()
return reply
