-- KEYS  the fence, then the key of each command
-- ARGV  the token, how long the fence is kept in milliseconds, then of each command
--       how many words it has without its key, and these words
local token, newest = ARGV[1], redis.pcall('GET', KEYS[1]) or '0'
if type(newest) == 'table' then
	if string.find(newest.err, 'WRONGTYPE', 1, true) then return {-1} end
	return newest
end
if not string.find(newest, '^%d+$') then return {-1} end
-- Tokens of equal length compare as text. As numbers they would be doubles.
if #token < #newest or #token == #newest and token < newest then return {0, newest} end
redis.call('SET', KEYS[1], token, 'PX', ARGV[2])
local replies, at = {1}, 3
for i = 2, #KEYS do
	local last = at + ARGV[at]
	replies[i] = redis.call(ARGV[at + 1], KEYS[i], unpack(ARGV, at + 2, last))
	at = last + 1
end
return replies
