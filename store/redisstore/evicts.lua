-- Tells which policy the server deletes keys by when its memory is full. It is '' for none, and where the
-- server does not say.
local said = redis.pcall('INFO', 'memory')
if type(said) ~= 'string' or not string.find(said, '\nmaxmemory:[1-9]') then return '' end
local policy = string.match(said, '\nmaxmemory_policy:([%l-]+)')
return policy and policy ~= 'noeviction' and policy or ''
