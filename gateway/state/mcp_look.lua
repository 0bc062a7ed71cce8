-- Which gateways that share sessions of /mcp/{server} live; and the claims of one that is dead are this one's from now on.
--
-- KEYS     the gateways; this one's claims (mcp_claim.lua); which of them it was given last
-- ARGV[1]  this gateway, 5 bytes; [2] steady: one whose key is gone is dead; [3] came, if the last answer did
-- ARGV[4]  how many claims it takes at most; [5] after how many bytes no more; [6] for how many ms all of it lives on
-- returns  J if those that are not named are dead, else -, and the names of those that live; then the claims that are
--          this gateway's now, and again those of the last answer if that did not come
local own = ARGV[1]

local function hex(gateway)
	return (string.gsub(gateway, '.', function(c) return string.format('%02x', string.byte(c)) end))
end

local function lives(gateway)
	return redis.call('EXISTS', 'sluice:gateway:1:' .. hex(gateway)) == 1
end

redis.call('SADD', KEYS[1], own)
redis.call('PEXPIRE', KEYS[1], ARGV[6])
local living, dead = own, {}
for _, gateway in ipairs(redis.call('SMEMBERS', KEYS[1])) do
	if gateway ~= own then
		if lives(gateway) then living = living .. gateway else dead[#dead + 1] = gateway end
	end
end
-- where this one's own key is not, either, what is not there says nothing
local judges = ARGV[2] == 'steady' and lives(own)
local answer = { (judges and 'J' or '-') .. living }

if ARGV[3] == 'came' then
	redis.call('DEL', KEYS[3])
else
	for _, field in ipairs(redis.call('SMEMBERS', KEYS[3])) do
		answer[#answer + 1] = redis.call('HGET', KEYS[2], field) or nil
	end
end
if not judges or #answer > 1 then return answer end

for _, gateway in ipairs(dead) do
	local theirs = 'sluice:mcp:1:c:' .. hex(gateway)
	if redis.call('EXISTS', theirs) == 0 then
		redis.call('SREM', KEYS[1], gateway)
	elseif #answer == 1 then
		local bytes = 0
		for _, field in ipairs(redis.call('HRANDFIELD', theirs, ARGV[4])) do
			if bytes >= tonumber(ARGV[5]) then break end
			local claim = redis.call('HGET', theirs, field)
			redis.call('HSET', KEYS[2], field, claim)
			redis.call('HDEL', theirs, field)
			redis.call('SADD', KEYS[3], field)
			answer[#answer + 1] = claim
			bytes = bytes + #claim
		end
		redis.call('PEXPIRE', KEYS[2], ARGV[6])
		redis.call('PEXPIRE', KEYS[3], ARGV[6])
	end
end
return answer
