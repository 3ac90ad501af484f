-- renew_fast: extend the usual holdings, many per call. It does in one run what renew.lua does for each, if the
-- record shows the owner and the last token used. It leaves the others to that.
--
-- The epoch (epoch.lua) is not told of the TTLs here. Within the last minute it was, by renew.lua (reach.go).
--
-- KEYS  the lock of each holding (see lock.lua); then the queue of each
-- ARGV  how many of the first holders don't ask to be notified when somebody queues behind them; then for each the
--       beginning of its record, which is the token and the owner, and the TTL (ms)
--
-- Reply: 0, or for each holding that was left alone, or that somebody waits for: its number, and -1 or how many wait

local n = #KEYS / 2
local quiet = tonumber(ARGV[1])
local bare = redis.pcall('EXISTS', unpack(KEYS, n + 1)) == 0
local reply
for i = 1, n do
  local lock, ttl, answer = KEYS[i], ARGV[2 * i + 1], -1
  local value = redis.pcall('GET', lock)
  if type(value) == 'string'
    and string.find(value, ARGV[2 * i], 1, true) == 1
    and (i <= quiet or string.find(value, '^%S+ %S+ %S+ %l*h')) then -- the record has the flag already
    -- As in renew.lua, a longer TTL is set again.
    local left = redis.call('PTTL', lock)
    if left < ttl + 0 then
      left = ttl
    end
    redis.call('PEXPIRE', lock, left)
    answer = bare and 0 or redis.pcall('ZCARD', KEYS[n + i])
    if type(answer) ~= 'number' then
      answer = 0 -- the next acquire reports the damage; the holding is sound
    end
  end
  if answer ~= 0 then
    reply = reply or {}
    reply[#reply + 1] = i
    reply[#reply + 1] = answer
  end
end
return reply or 0
