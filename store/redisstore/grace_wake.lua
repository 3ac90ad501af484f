-- grace_wake: have the first waiters for a key that nobody has alone ask again, because a grace was ended before its time.
-- More than one, because the first may have died.
--
-- KEYS  lock, queue, waiters (see lock.lua)
--
-- Reply: how many were notified

local value = redis.pcall('GET', KEYS[1])
if value and (type(value) ~= 'string' or string.sub(value, 1, 1) ~= '=') then
  return 0
end
local woken = 0
for _, owner in ipairs(redis.call('ZRANGE', KEYS[2], 0, 9)) do
  local entry = redis.call('HGET', KEYS[3], owner)
  local mode, name = string.match(type(entry) == 'string' and entry or '', <% pattern entry | mode name %>)
  if mode and mode ~= '-' then
    local message = <% wake owner %>
    <% publish mode | name | message %>
    woken = woken + 1
  end
end
return woken
