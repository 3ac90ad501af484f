-- note_write: replace the note of a key, if the owner has all of the key. It changes nothing of
-- the holding.
--
-- KEYS  lock (see lock.lua), note
-- ARGV  owner, token, number among the notes of that lease, TTL (ms), data; then, to tell observers,
--       their channel, and the key as it is in the Redis key
--
-- Reply:
--   0                it is written
--   -2               nobody holds the key
--   -3               somebody else holds the key, or the note there is a later one
--   {-1, Redis key}  if that key holds something foreign

<% include foreign.lua %>

local value = redis.pcall('GET', KEYS[1])
if not value then
  return -2
end
if type(value) ~= 'string' then
  return foreign(value, KEYS[1])
end
local shown, owner = string.match(value, <% pattern record | token owner %>)
if not owner and <% vacant value %> then
  return -2
elseif not owner and string.sub(value, 1, 1) == '=' then
  return -3
elseif not (owner and <% tokenDigits shown %>) then
  return {-1, KEYS[1]}
elseif owner == '-' then
  return -2 -- it is held back
elseif owner ~= ARGV[1] then
  return -3
end
local before = redis.pcall('GET', KEYS[2])
if before then
  if type(before) ~= 'string' then
    return foreign(before, KEYS[2])
  end
  local token, seq = string.match(before, <% pattern note | token seq %>)
  if not (seq and <% tokenDigits token %> and <% tokenDigits seq %>) then
    return {-1, KEYS[2]}
  end
  local later = tonumber(token) - tonumber(ARGV[2])
  if later > 0 or later == 0 and tonumber(seq) > tonumber(ARGV[3]) then
    return -3
  end
end
redis.call('SET', KEYS[2], <% note ARGV[2] | ARGV[3] | ARGV[5] %>, 'PX', ARGV[4])
if ARGV[6] then
  local holder = string.match(value, <% pattern record | holder %>) or ''
  local message = <% announced ARGV[7] | ARGV[2] | ARGV[3] | math.max(redis.call('PTTL', KEYS[1]), 0) | holder | ARGV[5] %>
  <% publish string.sub(ARGV[6], 1, 1) | string.sub(ARGV[6], 2) | message %>
end
return 0
