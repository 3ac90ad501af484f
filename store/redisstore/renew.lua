-- renew: extend holdings, many per call. It never shortens a holding. It never brings
-- back a holding that is gone, because that would hide that somebody else had the key.
-- In the grace reassert.lua does that.
--
-- KEYS  lock, queue, counter (see lock.lua) and epoch (epoch.lua) of each holding.
--       While a cluster moves their slot, only the lock of a single holding. A server
--       then refuses any script that names a key that is there and one that is not. So
--       the token is written back later, and the reply is that somebody waits.
-- ARGV  owner, ttl (ms), last token used, watch (1: notify the holder when somebody
--       queues behind it; 0: as before) of each holding; the counter's TTL (ms), least
--       grace (ms; 0: no guard)
--
-- Reply: for each holding how many wait for the key, or
--   -1 foreign: one of its keys holds something else
--   -2 nobody holds the key
--   -3 somebody else holds the key
--   -4 the user may not read one of its keys
--   -5 others share the key; renew_shares.lua answers

local reply = {}
local idle, least = tonumber(ARGV[#ARGV - 1]), tonumber(ARGV[#ARGV])
local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
local day = <% day %> -- ms
local seen = {} -- epochs that know the TTL
for i = 1, (#ARGV - 2) / 4 do
  local lock, queue, counter, epoch = KEYS[4 * i - 3], KEYS[4 * i - 2], KEYS[4 * i - 1], KEYS[4 * i]
  local mine, ttl, used, watch = ARGV[4 * i - 3], ARGV[4 * i - 2], ARGV[4 * i - 1], ARGV[4 * i]
  local value = redis.pcall('GET', lock)
  local answer
  local bad -- the foreign value of a key, or the server's error
  if not value then
    answer = -2
  elseif type(value) ~= 'string' then
    bad = value
  else
    local token, owner, flags = string.match(value, <% pattern record | token owner flags %>)
    if not owner and #value <= 16 and <% vacant value %> then
      answer = -2
    elseif not (owner and <% tokenDigits token %>) then
      answer = string.sub(value, 1, 1) == '=' and -5 or -1
    elseif owner ~= mine then
      answer = owner == '-' and -2 or -3 -- nobody holds a key that is kept back
    else
      local raise = counter and used ~= token and tonumber(used) > tonumber(token)
      local set = watch == '1' and not string.find(flags, 'h', 1, true)
      local last = raise and redis.pcall('GET', counter)
      if last
        and (type(last) ~= 'string' -- the counter is of another type, or must not be read
          or not <% token last %>) then
        bad = last
      else
        -- This write comes first because a server out of memory allows it, and then
        -- allows the rest of the script, for other holdings too. The TTL is set even if
        -- it was longer already, because a replica may be out of date and must refuse.
        local left = redis.call('PTTL', lock)
        if left < ttl + 0 then
          left = ttl -- text takes Redis half as long as a number
        end
        redis.call('PEXPIRE', lock, left)
        if raise then
          token = used
          if not last or tonumber(used) > tonumber(last) then
            local kept = idle + math.max(0, math.ceil(used / 1000 - now_ms)) -- as in lock.lua
            redis.call('SET', counter, used, 'PX', string.format('%.0f', kept))
          end
        end
        if set then
          flags = <% addFlag flags | h %>
        end
        if raise or set then
          local channel, holder = string.match(value, <% pattern record | channel holder %>)
          redis.call('SET', lock, <% record token | owner | channel | flags | holder %>, 'PX', left)
        end
        <% include reach.lua %>
        if queue then
          answer = redis.pcall('ZCARD', queue)
          if type(answer) ~= 'number' then
            answer = 0 -- the next acquire reports the damage; the holding is sound
          end
        else
          answer = 1 -- somebody may wait, so the client must not keep the key for long
        end
      end
    end
  end
  if bad then
    answer = type(bad) == 'table' and not string.find(bad.err, 'WRONGTYPE', 1, true) and -4 or -1
  end
  reply[i] = answer
end
return reply
