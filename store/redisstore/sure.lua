-- Whether a shortcut may grant, for a TTL of ARGV[3] and a least grace that is the last argument: the grace
-- is over for sure, and the clock was not set back. This is no script by itself, but a part of those
-- of acquire.lua and acquire_shares.lua. See epoch.lua.
local time = redis.call('TIME')
local now, ms = time[1] * 1000000 + time[2], time[1] * 1000 + time[2] / 1000
local sure, past, stale, id, ready, longest, older, turn, noted = ARGV[#ARGV] == '0', 0
if not sure then
  local epoch, info = redis.pcall('GET', KEYS[6]), redis.pcall('INFO', 'replication')
  if type(epoch) == 'string' and type(info) == 'string' then
    id, ready, longest, older, turn, noted = string.match(epoch, <% pattern epoch %>)
    sure = id -- the epoch is sound
      and <% hasHistory info | id %> -- this server wrote it
      and <% graceLeft ready | ms %> <= 0
      and not <% periodOver turn | ms %>
      and not <% beforePeriod turn | ms %>
      and not <% beforeNoted noted | ms %>
      and ARGV[3] + 0 <= longest + 0 -- the next grace would be as long as this TTL
      and ARGV[#ARGV] + 0 <= longest + 0 -- and as long as is asked for
    past = sure and <% graceMark ready %>
    stale = sure and ms >= noted + <% noteEvery %> and <% epoch id | ready | longest | older | turn | math.floor(ms) %>
  end
end
