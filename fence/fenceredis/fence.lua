-- KEYS  the fences, then the key of each command
-- ARGV  how long fences are kept in milliseconds, how many there are, the token for each, then of each command
--       how many words it has without its key, and these words
local fences = tonumber(ARGV[2])
for i = 1, fences do
	local token, newest = ARGV[2 + i], redis.pcall('GET', KEYS[i]) or '0'
	if type(newest) == 'table' then
		if string.find(newest.err, 'WRONGTYPE', 1, true) then return {-1, i} end
		return newest
	end
	if not string.find(newest, '^%d+$') then return {-1, i} end
	-- Tokens of equal length compare as text. As numbers they would be doubles.
	if #token < #newest or #token == #newest and token < newest then return {0, i, newest} end
end
for i = 1, fences do redis.call('SET', KEYS[i], ARGV[2 + i], 'PX', ARGV[1]) end
local replies, at = {1}, 3 + fences
for i = fences + 1, #KEYS do
	local last = at + ARGV[at]
	replies[i - fences + 1] = redis.call(ARGV[at + 1], KEYS[i], unpack(ARGV, at + 2, last))
	at = last + 1
end
return replies
