-- A resource that checks tokens.
--
-- KEYS  a hash of the largest token seen and the value, a list of what was written
-- ARGV  token, request; and to write: the value that was read, the new value
--
-- Reply: the value, or nil if the token is smaller than one that was seen.

local largest = redis.call('HGET', KEYS[1], 'token') or '0'
-- Of equal length, digits compare as text; doubles would do here, too, but need
-- an argument.
if #ARGV[1] < #largest or #ARGV[1] == #largest and ARGV[1] < largest then
  return false
end
redis.call('HSET', KEYS[1], 'token', ARGV[1])
if ARGV[4] then
  redis.call('HSET', KEYS[1], 'value', ARGV[4])
  redis.call('RPUSH', KEYS[2], ARGV[1] .. ' ' .. ARGV[2] .. ' ' .. ARGV[3] .. ' ' .. ARGV[4])
end
return tonumber(redis.call('HGET', KEYS[1], 'value') or '0')
