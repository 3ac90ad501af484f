-- inspect: who holds the key. It changes nothing and never shows an owner of ours.
--
-- KEYS  lock (see shared.lua)
--
-- Reply: {0}, or {3, remaining ms (-1: it has no TTL), whether the value is ours,
-- the holder's token and description; else 0 and the value}, or {-1, Redis key}
-- if that key holds something foreign.

--include shared.lua
if not value then
  return {0}
end
return {3, redis.call('PTTL', lock), owner and 1 or 0, token or 0, owner and holder or value}
