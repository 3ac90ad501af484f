-- The guard against what a server has forgotten, for the scripts that grant,
-- give back or write anew. Like lock.lua, which it comes before, it is not a
-- script by itself.
--
-- A server that was restarted, a replica that was promoted: either may lack the
-- last writes, and with them holdings that are still trusted. It shows by the id
-- of its replication history, which is a new one then. From when that is noticed
-- nobody is made a holder, until the longest TTL has passed; holders write theirs
-- anew meanwhile (reassert.lua).
--
-- epoch  string  of each bucket of keys: the id, the ms from which on it grants,
--                the longest TTL (ms) of this period and of the one before, and
--                the ms at which the period ends

local epoch = KEYS[6]
local least = tonumber(ARGV[#ARGV]) -- ms, the shortest such time; 0: there is no guard

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local now_ms = math.floor(now / 1000)
local day = <% day %> -- ms

local grace = 0 -- ms; nobody is made a holder for so long
local past = 0 -- no token of an earlier life of this server is larger, nor one of this life smaller
local hidden = false -- the server does not say what history it has
local stale -- what the epoch is to say, if it does not yet

-- look reads the epoch, for a holding of this TTL. It only reads, and returns the
-- epoch's name if that can't be what this library wrote. If the server is not the
-- one any more that wrote it, grace begins now. lost says that the server has
-- certainly forgotten something.
local function look(ttl, lost)
  if least == 0 then
    return
  end
  local value = redis.pcall('GET', epoch)
  local was, ready, longest, older, turn
  if value then
    if type(value) == 'string' and #value < 120 then
      was, ready, longest, older, turn = string.match(value, <% pattern epoch %>)
    end
    if not was then
      return epoch
    end
    ready, longest, older, turn = tonumber(ready), tonumber(longest), tonumber(older), tonumber(turn)
  end
  local reach = math.max(least, ttl)
  local info = redis.pcall('INFO', 'replication')
  local incarnation = type(info) == 'string' and string.match(info, 'master_replid:(%x+)')
  if not incarnation then
    hidden = true -- and there can't be a guard
    return
  end
  if not value then
    -- The first use of the bucket, or the server was restarted empty. What it forgot
    -- then is older than its process, whose age is in whole seconds and may be one
    -- too many.
    local server = not lost and redis.pcall('INFO', 'server')
    local uptime = type(server) == 'string' and string.match(server, 'uptime_in_seconds:(%d+)') or 0
    local age = math.max(0, uptime - 1) * 1000 -- ms
    ready, longest, older, turn = now_ms + math.max(0, reach - age), reach, 0, now_ms + day
    stale = true
  end
  -- A TTL is remembered for one to two periods of a day, which no lease outlives
  -- without a renewal that says it again. If the clock was set back, a period begins,
  -- but none has passed.
  if turn > now_ms + day then
    longest, older, turn, stale = reach, math.max(longest, older), now_ms + day, true
  elseif now_ms >= turn then
    longest, older, turn, stale = reach, longest, now_ms + day, true
  elseif reach > longest then
    longest, stale = reach, true
  end
  local wait = math.max(longest, older)
  if was and was ~= incarnation -- the history is another one
    or ready > now_ms + wait then -- the clock was set back
    ready, stale = now_ms + wait, true
  end
  if stale then
    stale = <% epoch incarnation | ready | longest | older | turn %>
  end
  grace, past = math.max(0, ready - now_ms), ready * 1000 - 1
end

-- note writes down what look found. It outlasts every lease that it is about.
local function note()
  if stale then
    redis.call('SET', epoch, stale, 'PX', 3 * day)
  end
end
