-- acquire: take the key if nobody has it. A repetition for the same owner sets the TTL and
-- answers the same.
--
-- KEYS  lock, counter, gone (see shared.lua)
-- ARGV  owner, ttl (ms), description of the holder
--
-- Reply, by its first element:
--   1 granted   token, whether it came from the clock
--   3 held      remaining ms (-1: it has no TTL), whether the value is ours, the
--               holder's token and description; else 0 and the value
--   5 gone      this owner was withdrawn
--  -1 foreign   the Redis key that holds something else; nothing was changed

--include shared.lua
-- The TTL never becomes shorter, because a renewal may have come before. A user who may not extend
-- it learns so before it takes a free key. Otherwise its lease would be lost.
local function extend()
  redis.call('PEXPIRE', lock, math.max(redis.call('PTTL', lock), ARGV[2]))
end

if owner == ARGV[1] then
  extend()
  return {1, token, clock == 't' and 1 or 0}
end
local refused = redis.pcall('ZSCORE', KEYS[3], ARGV[1])
if type(refused) == 'table' then
  return foreign(refused, KEYS[3])
end
if refused and tonumber(refused) > now() / 1000 then
  return {5}
end
if value then
  return {3, redis.call('PTTL', lock), owner and 1 or 0, token or 0, owner and holder or value}
end

local last, bad = last_token()
if not last then
  return bad
end
local given = now()
clock = 't'
if last + 1 > given then
  given, clock = last + 1, '-'
end
if given > 9e15 then
  return {-1, KEYS[2]}
end
-- The counter comes first: a server out of memory refuses that, and would allow it behind an extension.
store_token(given)
extend()
redis.call('SET', lock, 'asynclock ' .. string.format('%.0f', given) .. ' ' .. clock .. ' ' .. ARGV[1] .. ' ' .. ARGV[3], 'PX', ARGV[2])
return {1, given, clock == 't' and 1 or 0}
