-- The guard against a server that has forgotten something, for the scripts that
-- grant, release or write a holding anew. This file is not a script by itself. A
-- script includes it before lock.lua.
--
-- A server that was restarted may lack its last writes, and so may a replica that was
-- promoted. The lost writes may include holdings that are still trusted. The id of the
-- server's replication history shows it, because it is a new one then. From when a
-- script notices that, nobody is made a holder until the longest TTL has passed. That
-- time is the grace. Holders write their holdings anew meanwhile (reassert.lua).
--
-- epoch  string  of each bucket of keys; fragments.go describes it

local epoch = KEYS[6]
local least = tonumber(ARGV[#ARGV]) -- ms; the shortest grace; 0: there is no guard

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local now_ms = math.floor(now / 1000)
local day = <% day %> -- ms

local grace = 0 -- ms; how much of it is left
local past = 0 -- at least each token from before the grace, and at most each later token
local hidden = false -- the server does not say what history it has
local begins = false -- the grace begins now: the history is another one, or the clock was set back
local floor = 0 -- at least each token from before the clock was set back; 0 if it was not
local stale -- the epoch that has to be written; nil if there is none

-- A holder that dies takes its token with it. If the clock is set back then, or is that of
-- another server, the next token could be smaller. So the epoch notes the clock every second of
-- use. Until the clock is past what was noted, tokens begin above all that may have been given
-- since the note. A client may choose tokens for a second after it has seen the clock
-- (vacancy.go). A clock that is set back by more than a day was probably wrong before, and
-- counts anew. The note can't show a clock that is set back to less than two seconds before
-- the grant of a holder that died.

-- look reads the epoch, for a holding of this TTL. It only reads. It returns the
-- epoch's name if this library can't have written that. The grace begins now if
-- another server wrote the epoch. lost says that the server has certainly forgotten
-- something.
local function look(ttl, lost)
  if least == 0 then
    return
  end
  local value = redis.pcall('GET', epoch)
  local was, ready, longest, older, turn, noted
  if value then
    if type(value) == 'string' and #value < 120 then
      was, ready, longest, older, turn, noted = string.match(value, <% pattern epoch %>)
    end
    if not was then
      return epoch
    end
    ready, longest, older, turn = tonumber(ready), tonumber(longest), tonumber(older), tonumber(turn)
    noted = tonumber(noted)
  end
  local reach = math.max(least, ttl)
  local info = redis.pcall('INFO', 'replication')
  local incarnation = type(info) == 'string' and string.match(info, 'master_replid:(%x+)')
  if not incarnation then
    hidden = true -- there can't be a guard
    return
  end
  if not value then
    -- The bucket is used for the first time, or the server was restarted empty. Forgotten
    -- holdings are older than the process. Redis gives the age of the process in whole
    -- seconds, and it may be one second too many.
    local server = not lost and redis.pcall('INFO', 'server')
    local uptime = type(server) == 'string' and string.match(server, 'uptime_in_seconds:(%d+)') or 0
    local age = math.max(0, uptime - 1) * 1000 -- ms
    ready, longest, older, turn = now_ms + math.max(0, reach - age), reach, 0, now_ms + day
    noted, stale = now_ms, true
  end
  <% include period.lua %>
  local wait = math.max(longest, older)
  if was and not <% hasHistory info | was %> -- the history is another one
    or ready > now_ms + wait then -- the clock was set back
    ready, stale, begins = now_ms + wait, true, true
  end
  local behind = <% beforeNoted noted | now_ms %>
  if behind and noted <= now_ms + day then
    floor = (noted + <% givenAfter %>) * 1000
  elseif behind or now_ms >= noted + <% noteEvery %> then
    noted, stale = now_ms, true
  end
  if stale then
    stale = <% epoch incarnation | ready | longest | older | turn | noted %>
  end
  grace, past = math.max(0, <% graceLeft ready | now_ms %>), <% graceMark ready %>
end

-- note writes the epoch that look found stale. The epoch outlasts every lease of it.
local function note()
  if stale then
    redis.call('SET', epoch, stale, 'PX', 3 * day)
  end
end
