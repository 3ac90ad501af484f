-- force: take the key from its holder, even from Java, or from nobody if it is held back.
-- Everybody who can be notified is notified.
--
-- KEYS  lock, counter (see shared.lua)
-- ARGV  which command to delete with, the channel of the key, that of old
--       releases, what a message to an owner begins with, token of the holding
--       that is meant (0: any, also one of Java)
--
-- Reply: {1, command that deleted}, {-2, 0} if nobody held the key, what inspect.lua
-- answers of the holder if its token is another one, or {-1, Redis key} if that key
-- holds something foreign.

--include shared.lua
if not value then
  return {-2, 0}
end
local meant = tonumber(ARGV[5])
if meant ~= 0 and meant ~= token then
  return held()
end
local last, bad = last_token()
if owner and not last then
  return bad
end
local left = redis.call('PTTL', lock)
local deleted = delete(tonumber(ARGV[1]))
if clock == 't' and owner then
  -- The old holder may pass the key on inside its client, with a token for each microsecond,
  -- until it is notified or stops trusting its TTL. The next holder's token has to be larger
  -- than all of these, so that resources refuse them.
  store_token(math.max(last, now() + left * 1000))
end
if owner and owner ~= '-' then
  redis.pcall('PUBLISH', ARGV[2], ARGV[4] .. owner)
end
announce(ARGV[2], ARGV[3])
return {1, deleted}
