-- Tells the clock of the server that has KEYS[1], and what it answers to each argument. An argument is a
-- command of two words that only reads, such as INFO memory. The answer is '-' and the error if there is one.
local time = redis.call('TIME')
local reply = {time[1], time[2]}
for i, question in ipairs(ARGV) do
  local said = redis.pcall(string.match(question, '(%S+) (%S+)'))
  if type(said) == 'table' and said.err then
    said = '-' .. said.err
  elseif type(said) == 'table' then -- of CLUSTER SLOTS; a line is: first and last slot, host and port of the primary
    for n, range in ipairs(said) do
      said[n] = table.concat({range[1], range[2], tostring(range[3][1]), range[3][2]}, ' ')
    end
    said = table.concat(said, '\n')
  end
  reply[i + 2] = said
end
return reply
