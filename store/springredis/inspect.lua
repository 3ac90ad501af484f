-- inspect: who holds the key. It changes nothing and never shows an owner of ours.
--
-- KEYS  lock (see shared.lua)
--
-- Reply: {0}, or what held in shared.lua answers, or {-1, Redis key} if that key holds
-- something foreign.

--include shared.lua
if not value then
  return {0}
end
return held()
