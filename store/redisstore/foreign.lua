-- foreign answers for a key that is not what it has to be. The answer is that the key is
-- foreign, or the server's own error if we may not read the key.
local function foreign(found, key)
  if type(found) == 'table' and not string.find(found.err, 'WRONGTYPE', 1, true) then
    return found
  end
  return {-1, key}
end
