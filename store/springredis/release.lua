-- release: end an owner's holding or waiting. If the owner holds the key, the key is free
-- afterwards, or held back, and waiters are notified.
--
-- KEYS  lock, counter, gone (see shared.lua)
-- ARGV  owner, last token used, ms to keep the key back (0: none), uncertain (0
--       or 1), which command to delete with, the channel of the key, that of old
--       releases
--
-- Reply: {1, command that deleted} if the owner held the key until now ({1, 0} if
-- it is kept back), {-2, 0} if nobody holds it, {-3, 0} if somebody else does, or
-- {-1, Redis key} if that key holds something foreign, and then nothing was changed.

--include shared.lua
local held = owner == ARGV[1]
local uncertain = ARGV[4] == '1'
local last, bad = last_token()
if held and not last then
  return bad
end
local gone = uncertain and redis.pcall('ZCARD', KEYS[3])
if type(gone) == 'table' then
  return foreign(gone, KEYS[3])
end

-- The key is deleted first, because a server out of memory allows that, and then allows the
-- rest, too.
local deleted = 0
if held then
  local keep = tonumber(ARGV[3])
  if keep > 0 then
    redis.call('PEXPIRE', lock, keep)
    redis.call('SET', lock, 'asynclock ' .. string.format('%.0f', token) .. ' ' .. clock .. ' - ' .. holder, 'PX', keep)
  else
    deleted = delete(tonumber(ARGV[5]))
  end
  if tonumber(ARGV[2]) > last then
    store_token(tonumber(ARGV[2]))
  end
end
local refused
if uncertain then
  -- The owner is remembered even if it held the key. A repeated request may have taken the
  -- key while the first one is still under way. The kernel resends what it had buffered for
  -- about 100 s.
  local ms = math.floor(now() / 1000)
  -- In the other order the first command might delete the whole set. While a Cluster moves
  -- the slot, the second one would then fail.
  refused = redis.pcall('ZADD', KEYS[3], string.format('%.0f', ms + 120000), ARGV[1])
  if type(refused) == 'number' then
    redis.call('PEXPIRE', KEYS[3], 120000)
    refused = redis.pcall('ZREMRANGEBYSCORE', KEYS[3], '-inf', string.format('%.0f', ms))
  end
end
if deleted > 0 then
  announce(ARGV[6], ARGV[7])
end
if type(refused) == 'table' then
  return refused
end
if held then
  return {1, deleted}
end
return {value and owner ~= '-' and -3 or -2, 0}
