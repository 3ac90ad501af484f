-- renew: extend a holding. It never shortens a holding. It never brings back one that is
-- gone, because that would hide that somebody else had the key.
--
-- KEYS  lock, counter (see shared.lua)
-- ARGV  owner, ttl (ms), last token used
--
-- Reply: {1}, {-2} if nobody holds the key, {-3} if somebody else does, or
-- {-1, Redis key} if that holds something foreign.

--include shared.lua
if not value or owner == '-' then
  return {-2}
end
if owner ~= ARGV[1] then
  return {-3}
end
local used = tonumber(ARGV[3])
local last, bad = last_token()
if used > token and not last then
  return bad
end
-- This write comes first because a server out of memory allows it, and then the
-- rest of the script too.
local left = math.max(redis.call('PTTL', lock), ARGV[2])
redis.call('PEXPIRE', lock, left)
if used > token then
  redis.call('SET', lock, 'asynclock ' .. string.format('%.0f', used) .. ' ' .. clock .. ' ' .. owner .. ' ' .. holder, 'PX', left)
  if used > last then
    store_token(used)
  end
end
return {1}
