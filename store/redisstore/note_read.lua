-- note_read: the note of a key, and how the key stands. It changes nothing, and never shows an
-- owner.
--
-- KEYS  lock (see lock.lua), note, members (shares.lua)
--
-- Reply: the server's time in microseconds; 1 if the key is held, else 0; the holder's token,
-- remaining ms, and description; the note's token, number and data. If several share the key, the
-- description is empty. Without a note its token is 0. The reply is {-1, Redis key} if that key
-- holds something foreign.

<% include foreign.lua %>

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local reply = {now, 0, 0, 0, '', 0, 0, ''}

local value = redis.pcall('GET', KEYS[1])
if value then
  if type(value) ~= 'string' then
    return foreign(value, KEYS[1])
  end
  local token, holder = string.match(value, <% pattern record | token holder %>)
  local kind, _, shown = string.match(value, <% pattern group | kind token shown %>)
  if token then
    reply[4], reply[5] = redis.call('PTTL', KEYS[1]), holder
  elseif kind then
    token = shown
    local last = redis.pcall('ZRANGE', KEYS[3], -1, -1, 'WITHSCORES')
    if last.err then
      return foreign(last, KEYS[3])
    end
    reply[4] = math.max(0, tonumber(last[2] or 0) - math.floor(now / 1000))
  elseif not (<% vacant value %>) then
    return {-1, KEYS[1]}
  end
  if token and not <% tokenDigits token %> then
    return {-1, KEYS[1]}
  end
  if token and not (kind and reply[4] == 0) then
    reply[2], reply[3] = 1, tonumber(token)
  end
end

local note = redis.pcall('GET', KEYS[2])
if note then
  if type(note) ~= 'string' then
    return foreign(note, KEYS[2])
  end
  local token, seq, data = string.match(note, <% pattern note %>)
  if not (token and <% tokenDigits token %> and <% tokenDigits seq %>) then
    return {-1, KEYS[2]}
  end
  reply[6], reply[7], reply[8] = tonumber(token), tonumber(seq), data
end
return reply
