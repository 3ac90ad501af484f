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
-- cause  string  beside it: how its grace began, and whether somebody has ended it before its time (grace_end.lua)

local epoch = KEYS[6]
local beside = string.sub(epoch, 1, -2) .. 'g' -- the cause's Redis key
local least = tonumber(ARGV[#ARGV]) -- ms; the shortest grace; 0: there is no guard

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local now_ms = math.floor(now / 1000)
local day = <% day %> -- ms

local grace = 0 -- ms; how much of it is left
local early -- the id of the server's history, if somebody has ended its grace and that would still last; else nil
local past = 0 -- at least each token from before the grace, and less than each later token
local info -- what the server says of its replication
local hidden = false -- the server does not say what history it has
local begins = false -- the grace begins now: the history is another one, or the clock was set back
local floor = 0 -- the least next token, if the clock was set back or the grace was ended before its time
local stale -- the epoch that has to be written; nil if there is none
local cause -- that of the epoch; nil if there is none
local renewed = false -- the cause has to be written, with the epoch

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
  local was, ready, longest, older, turn, noted, used, before
  if value then
    if type(value) == 'string' and #value < 120 then
      was, ready, longest, older, turn, noted = string.match(value, <% pattern epoch %>)
    end
    if not was then
      return epoch
    end
    ready, longest, older, turn = tonumber(ready), tonumber(longest), tonumber(older), tonumber(turn)
    noted = tonumber(noted)
    used, before = noted, ready
  end
  local reach = math.max(least, ttl)
  info = redis.pcall('INFO', 'replication')
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
  local passed = turn
  <% include period.lua %>
  passed = not value or passed ~= turn
  local wait = math.max(longest, older)
  if was and not <% hasHistory info | was %> -- the history is another one
    or ready > now_ms + wait then -- the clock was set back
    ready, stale, begins = now_ms + wait, true, true
  end
  local behind = <% beforeNoted noted | now_ms %>
  if behind and noted <= now_ms + day + wait then -- a grace that was ended may have noted its end
    floor = (noted + <% givenAfter %>) * 1000
  elseif behind or now_ms >= noted + <% noteEvery %> then
    noted, stale = now_ms, true
  end
  if stale then
    stale = <% epoch incarnation | ready | longest | older | turn | noted %>
  end
  grace, past = math.max(0, <% graceLeft ready | now_ms %>), <% graceMark ready %>
  if not (passed or begins or grace > 0) then
    return
  end

  -- The cause. Clients from before it write none. No grant depends on it, except after an end before its time.
  local known = redis.pcall('GET', beside)
  known = type(known) == 'string' and known or ''
  local of, run, until_ms, _, _, _, _, _, opened = string.match(known, <% pattern cause %>)
  local same = of and of == was and tonumber(until_ms) == before -- it is that of the epoch
  opened, renewed = same and tonumber(opened) or 0, passed or begins
  if same and not begins then
    cause = known
    if opened > 0 and grace > 0 then
      -- Keys are granted, but the clock is not past the tokens of before. Those of now begin with what was noted at the
      -- end (see grace_end.lua), which is above the mark.
      grace, floor, early = math.max(0, math.min(grace, opened - now_ms)), noted * 1000, incarnation
      past = floor - 1
    end
  elseif renewed then
    local server = redis.pcall('INFO', 'server')
    local process = type(server) == 'string' and string.match(server, 'run_id:(%x+)') or '-'
    if not begins then
      was, used, before = value and '?' or '-', 0, 0
    elseif opened > 0 then
      before = math.min(before, opened)
    end
    cause = <% cause incarnation | process | ready | now_ms | was | of == was and run or '-' | used | before | 0 %>
  end
  if floor > past and grace > 0 then
    past = floor - 1 -- the server before may have given tokens ahead of its clock
  end
end

-- note writes the epoch that look found stale. The epoch outlasts every lease of it.
local function note()
  if stale then
    redis.call('SET', epoch, stale, 'PX', 3 * day)
    if renewed then
      redis.pcall('SET', beside, cause, 'PX', 3 * day)
    end
  end
end
