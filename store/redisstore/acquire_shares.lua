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
local taken, last = redis.pcall('GET', KEYS[1])
local weight, extra, limit = <% permits ARGV[9] %>
local kind = weight and '=p' or string.find(ARGV[9], 'r', 1, true) and '=r'
local vacant = type(taken) == 'string' and <% vacant taken %>

-- In both cases the request is for a share, of as many permits as there can be. The counter is idle, or a token.
local common = kind and (not limit or limit + 0 <= 1000000)

-- First, the key is free. Usually there is no counter either.
local free = common and (not taken or vacant and <% tokenDigits vacant %>)
if common and (not free or redis.call('EXISTS', KEYS[2], KEYS[4], KEYS[5], KEYS[7], KEYS[8], KEYS[9]) ~= 0) then
  last = redis.pcall('GET', KEYS[4])
  common = not last or type(last) == 'string' and <% token last %>
  free = free and common and redis.call('EXISTS', KEYS[2], KEYS[5], KEYS[7], KEYS[8], KEYS[9]) == 0
end
local known = math.max(common and last or 0, vacant or 0) -- at least each token that was given

-- The group. Its numbers are texts, because those that stay are written as they were read.
local shown, kept, used, smallest, agree, other, writer = nil, '0', '0', limit or '0', '0', '0', '-'

-- Second, a group shares the key likewise, and this owner is none of it.
local shared = common and type(taken) == 'string' and not vacant
if shared then
  local alike, token
  alike, token, shown, kept, used, smallest, agree, other, writer = string.match(taken, <% pattern group %>)
  shared = alike == kind
    and math.max(token, shown, kept, used, smallest, agree, other) <= <% maxToken %> -- the group is sound
    and redis.call('EXISTS', KEYS[2], KEYS[5], KEYS[9]) == 0
    and redis.pcall('ZCARD', KEYS[7]) == redis.pcall('HLEN', KEYS[8]) -- its members are sound
    and not redis.call('ZSCORE', KEYS[7], ARGV[1])
  known = shared and math.max(known, token, shown)
end
if shared and weight then
  shared = limit == smallest -- all count on the same limit
    and other == '0'
    and used + weight <= smallest + 0 -- the permits are free
end
local first, final -- the times of the members that last the shortest and the longest
if shared then
  first = redis.call('ZRANGE', KEYS[7], '0', '0', 'WITHSCORES')[2]
  final = redis.call('ZRANGE', KEYS[7], '-1', '-1', 'WITHSCORES')[2]
  shared = first and string.find(final, '^%d+$') -- somebody has it, and the time can be written as it is
end

if free or shared then
  <% include sure.lua %>
  local clock = math.floor(ms)
  if sure then
    sure = now > known -- the clock is no token that was given
      and now <= <% maxToken %>
  end
  if sure and shared then
    sure = first + 0 > clock -- no member's time is over
      and (weight or shown + 0 > past) -- the readers are from after a loss
  end
  if sure then
    -- The texts of a token are cheaper to join than to print. '%.0f' prints all digits, and Lua itself only 14.
    local text, wants = time[1] .. string.sub('00000' .. time[2], -6), string.gsub(ARGV[9], '[^hw]', '')
    wants = wants == '' and '-' or wants
    local ends = string.format('%.0f', clock + ARGV[3])
    local latest = final and final + 0 > ends + 0 and final or ends
    local left = string.format('%.0f', latest - clock + 1000) -- outlive
    shown = not weight and shown or text
    if weight then
      weight = string.format('%.0f', weight + math.max(0, math.min(extra, smallest - used - weight)))
      used, agree = string.format('%.0f', used + weight), string.format('%.0f', agree + 1)
    end
    redis.call('ZADD', KEYS[7], ends, ARGV[1])
    redis.call('HSET', KEYS[8], ARGV[1], <% member ARGV[2] | wants | (weight or '0') | (limit or '0') | text | ARGV[10] %>)
    redis.call('SET', KEYS[1], <% groupOfTexts kind | text | shown | kept | used | smallest | agree | other | writer %>, 'PXAT', latest)
    redis.call('PEXPIRE', KEYS[7], left)
    redis.call('PEXPIRE', KEYS[8], left)
    if stale then
      redis.call('SET', KEYS[6], stale, 'PX', '259200000') -- three days
    end
    return {9, now, 0, weight and 0 or shown + 0, weight and weight + 0 or 0, weight and smallest + 0 or 0}
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
