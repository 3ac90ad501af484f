-- take: grant free keys, each to an owner of its own. A key is free if nobody has it, waits for it or was
-- withdrawn from it. acquire.lua answers for those that are not.
--
-- KEYS  the lock of each request (see lock.lua); then queue, counter and gone of each of the last
--       requests: the first ones find a vacancy, or are refused; then the epoch of the first request's
--       bucket; then other epochs
-- ARGV  the id of the history in which the client has seen the server grant, about the least that the clock
--       can be since (µs), how many epochs there are; then for each request what follows the token in
--       its record, the TTL (ms), and of the last requests the number of their epoch
--
-- Reply: 0 if nothing is granted, or a number, or {that, numbers of the requests that are refused}. The number
-- is the token of the last requests, and 1 if there are none. The token of the first ones is the least that the
-- clock can be.

-- A vacancy is looked at by itself: nobody else is there, and no token is larger. The server has the history in which
-- it granted keys of each bucket a moment ago. So it has forgotten nothing that the vacancy does not say. The first
-- epoch shows a slot that came from another server, for only then all requests are of one bucket.
local first = #KEYS - ARGV[3]
local epoch, info = redis.pcall('GET', KEYS[first + 1]), redis.pcall('INFO', 'replication')
if type(epoch) ~= 'string'
  or string.find(epoch, ARGV[1], 1, true) ~= 1
  or type(info) ~= 'string'
  or not <% hasHistory info | ARGV[1] %> then
  return 0
end
local n = #ARGV / 3 - 1
local vacant = n - (first - n) / 3 -- how many requests name their lock alone
local number, token, bare, sound = 1

if vacant < n then
  -- A server that has lost its data may have its history still, but not its epochs. So the grace has to be over in each
  -- of these. Tokens come from the clock. It was not set back since the client saw it, nor forward, or the request
  -- was long under way: a token must not be far above the clock that the epoch has noted (see epoch.lua).
  local time = redis.call('TIME')
  number, sound = time[1] * 1000000 + time[2], {}
  token = string.format('%.0f', number) -- Lua itself prints 14 digits
  bare = redis.pcall('EXISTS', unpack(KEYS, n + 1, first)) == 0
  local timely = number >= ARGV[2] + 0 and number <= ARGV[2] + 900000
  for i = 1, ARGV[3] + 0 do
    local value = redis.pcall('GET', KEYS[first + i])
    local id, ready = string.match(type(value) == 'string' and value or '', '^(%x+) (%d+) ')
    sound[i] = timely and id == ARGV[1] and <% graceLeft ready | number / 1000 %> <= 0
  end
end

local refused
for i = 1, n do
  local value, mine, free = redis.pcall('GET', KEYS[i]), ARGV[2]
  if i > vacant then
    mine = token
    free = sound[ARGV[3 * i + 3] + 0]
  end
  if value then
    free = (free or i <= vacant) and type(value) == 'string' and <% token value %> and value + 0 < mine + 0
  elseif free then
    local at = n + 3 * (i - vacant)
    free = bare or redis.pcall('EXISTS', unpack(KEYS, at - 2, at)) == 0
  end
  -- A server out of memory refuses the write.
  if not (free and redis.pcall('SET', KEYS[i], mine .. ' ' .. ARGV[3 * i + 1], 'PX', ARGV[3 * i + 2]).ok) then
    refused = refused or {number}
    refused[#refused + 1] = i
  end
end
return refused or number
