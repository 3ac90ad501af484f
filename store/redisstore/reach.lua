-- Tells the epoch of a holding that was renewed of a long TTL. This is no script by itself, but a part of
-- renew.lua and renew_shares.lua, for one holding.
if least > 0 and epoch and seen[epoch] ~= ttl then
  seen[epoch] = ttl
  -- look in epoch.lua does the same. Here it is done for leases that last for
  -- days. The next acquire reports an epoch that can't be read.
  local known = redis.pcall('GET', epoch)
  known = type(known) == 'string' and known or ''
  local id, ready, longest, older, turn, noted = string.match(known, <% pattern epoch %>)
  if id then
    ready, longest, older, turn = tonumber(ready), tonumber(longest), tonumber(older), tonumber(turn)
    local reach, stale = math.max(ttl, least), false
    <% include period.lua %>
    if stale then
      redis.call('SET', epoch, <% epoch id | ready | longest | older | turn | noted %>, 'PX', 3 * day)
      local beside = string.sub(epoch, 1, -2) .. 'g'
      if redis.pcall('PEXPIRE', beside, 3 * day) == 0 then -- there is no cause yet, as after an upgrade
        local said, server = redis.pcall('INFO', 'replication'), redis.pcall('INFO', 'server')
        local process = type(server) == 'string' and string.match(server, 'run_id:(%x+)')
        if process and type(said) == 'string' and <% hasHistory said | id %> then
          redis.pcall('SET', beside, <% cause id | process | ready | now_ms | '?' | '-' | 0 | 0 | 0 %>, 'PX', 3 * day)
        end
      end
    end
  end
end
