-- leave: end holdings of keys that nobody waits for, and leave a vacancy in each. It does in one run
-- what release_fast.lua does for each by its first shortcut, and leaves the others to that.
--
-- KEYS  the lock of each holding (see lock.lua); then queue, counter and gone of each
-- ARGV  the counter's TTL (ms), then for each holding the beginning of its record, which is the token
--       and the owner, and the token by itself, which is the last one used
--
-- Reply: 0, or {0, numbers of those for which nothing was changed}

local n = #KEYS / 4
local bare = redis.pcall('EXISTS', unpack(KEYS, n + 1)) == 0
local refused
for i = 1, n do
  local value, at = redis.pcall('GET', KEYS[i]), n + 3 * i
  if not (type(value) == 'string'
    and string.find(value, ARGV[2 * i], 1, true) == 1
    and (bare or redis.pcall('EXISTS', unpack(KEYS, at - 2, at)) == 0)
    and redis.pcall('SET', KEYS[i], ARGV[2 * i + 1], 'PX', ARGV[1]).ok) then
    refused = refused or {0}
    refused[#refused + 1] = i
  end
end
return refused or 0
