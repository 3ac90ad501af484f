-- grace_end: end the grace of a bucket before its time, because somebody knows that the server has forgotten nothing.
-- It also ends a grace that would begin with the next request.
--
-- Tokens still begin above all that were given before the grace: the clock may be behind them. So the epoch still says
-- when the grace would be over, and the cause says from when on keys are granted (see epoch.lua).
--
-- KEYS  the epoch six times (epoch.lua has it sixth)
-- ARGV  the id of the history that is meant; the id of the history before, of which nothing is missing ('-': there was no
--       epoch); the id of the process that had it, if that is the evidence ('-': the caller knows it); the shortest
--       grace (ms)
--
-- A bucket without an epoch was not used under the history before, if nothing is missing. A history has one process, so
-- a cause that does not know it is that of a script from before causes were written.
--
-- Reply: a number, and for how many ms nothing is granted yet. The number is
--   0  nothing was to be done
--   1  done
--   2  the server hides its history
--   3  the epoch is not one
--   4  the server has another history
--   5  this bucket's grace is about another history before, or another process had it

-- A right of its own, which clients don't need.
redis.call('SCAN', '0', 'COUNT', '1')

<% include epoch.lua %>

if look(least) then
  return {3, 0}
elseif hidden then
  return {2, 0}
elseif not <% hasHistory info | ARGV[1] %> or not string.find(info, 'role:master', 1, true) then
  return {4, 0}
elseif grace == 0 then
  return {0, 0}
end
-- Without a cause, a client that writes none has noticed the new history: it is not known what was before.
local of, run, ready, since, was, ran, used, before, again = string.match(cause or '', <% pattern cause %>)
if not of or was ~= ARGV[2] and was ~= '-'
  or was == of -- the clock was set back
  or ARGV[3] ~= '-' and not ((ran == ARGV[3] or ran == '-') and string.find(info, 'master_replid2:' .. ARGV[2] .. '\r', 1, true)) then
  return {5, grace}
end
-- The history before may have had a grace of its own.
local opened = math.min(math.max(now_ms, before + 0), now_ms + grace)
note()
-- If this server is lost before its clock is past the tokens that it gives from now on, the next one begins above
-- them: as if they were of a clock that was seen. They begin above all that may have come after a clock that was
-- seen in fact.
if again == '0' then
  local id, _, longest, older, turn, noted = string.match(redis.call('GET', epoch), <% pattern epoch %>)
  noted = math.max(ready, <% beforeNoted noted | now_ms %> and noted + <% givenAfter %> or 0)
  redis.call('SET', epoch, <% epoch id | ready | longest | older | turn | noted %>, 'PX', 3 * day)
end
redis.call('SET', beside, <% cause ARGV[1] | run | ready | since | was | ran | used | before | opened %>, 'PX', 3 * day)
return {1, opened - now_ms}
