-- The longest TTLs that an epoch knows, after one of so many ms (reach). This is no script by itself, but a
-- part of epoch.lua and reach.lua.
--
-- A TTL is remembered for one to two periods of a day. No lease lasts longer without
-- a renewal, which repeats the TTL. A new period begins early if the clock was set
-- back. Then the old period does not count as passed.
if <% beforePeriod turn | now_ms %> then
  longest, older, turn, stale = reach, math.max(longest, older), now_ms + day, true
elseif <% periodOver turn | now_ms %> and ready <= now_ms then -- the grace lasts as long as when it began
  longest, older, turn, stale = reach, longest, now_ms + day, true
elseif reach > longest then
  longest, stale = reach, true
end
