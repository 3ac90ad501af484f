-- force: take the key from its holder, even from Java, or from nobody if it is held back.
-- Everybody who can be notified is notified. Side keys that somebody has damaged are replaced,
-- whether anybody holds the key or not. Otherwise nobody could have the key after it.
--
-- KEYS  lock, counter, gone (see shared.lua)
-- ARGV  which command to delete with, the channel of the key, that of old
--       releases, what a message to an owner begins with, token of the holding
--       that is meant (0: any, also one of Java)
--
-- Reply: {1, command that deleted}, {-2, 0} if nobody held the key, what inspect.lua
-- answers of the holder if its token is another one, or {-1, Redis key} if that key
-- holds something foreign.

--include shared.lua
local meant = tonumber(ARGV[5])
if value and meant ~= 0 and meant ~= token then
  return held()
end
local last, bad = last_token()
local gone = redis.pcall('ZCARD', KEYS[3])
gone = type(gone) == 'table' and foreign(gone, KEYS[3])
if bad and bad.err or gone and gone.err then
  return bad and bad.err and bad or gone
end
local left = value and redis.call('PTTL', lock)
local deleted = value and delete(tonumber(ARGV[1]))
if gone then
  redis.call('DEL', KEYS[3])
end
if not last then
  last = math.max(token or 0, now())
  store_token(last)
end
if not value then
  return {-2, 0}
end
if clock == 't' and owner then
  -- The old holder may pass the key on inside its client, with a token for each microsecond,
  -- until it is notified or stops trusting its TTL. The next holder's token has to be larger
  -- than all of these, so that resources refuse them. No client counts on a TTL of more than
  -- a day, whatever somebody has made of it.
  if left < 0 or left > 86400000 then
    left = 86400000
  end
  store_token(math.max(last, now() + left * 1000))
end
if owner and owner ~= '-' then
  redis.pcall('PUBLISH', ARGV[2], ARGV[4] .. owner)
end
announce(ARGV[2], ARGV[3])
return {1, deleted}
