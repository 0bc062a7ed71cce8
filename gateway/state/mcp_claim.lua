-- A server request of a session of /mcp/{server} is a gateway's to answer, once.
--
-- KEYS     the session's record (mcp_record.lua); the gateway's claims; the gateways that share sessions
-- ARGV[1]  the gateway, 5 bytes; [2] digest of the request's id, 8 bytes; [3] for how many ms record and claims live
--          on; [4] where the request lies among the claims; [5] the request, or '' if it is not kept
-- returns  C: it is this gateway's; B: it was claimed before, or the session is over. Then the session's note and, of
--          C, how many of the client's calls are open at gateways that live (<I4I4)
local all, session, calls = redis.call('HGETALL', KEYS[1]), {}, 0

local function lives(gateway)
	local name = string.gsub(gateway, '.', function(c) return string.format('%02x', string.byte(c)) end)
	return redis.call('EXISTS', 'sluice:gateway:1:' .. name) == 1
end

for i = 1, #all, 2 do
	session[all[i]] = all[i + 1]
	local gateway = string.match(all[i], '^c:(.*)$')
	if gateway and (gateway == ARGV[1] or lives(gateway)) then calls = calls + tonumber(all[i + 1]) end
end
local function answer(letter)
	return letter .. struct.pack('<I4I4', tonumber(session.note or 0), calls)
end
if session.ended then return answer('B') end

-- the newest 256, 8 bytes each
local ids, at = session.ids or '', 1
repeat
	at = string.find(ids, ARGV[2], at, true)
	if at and at % 8 == 1 then return answer('B') end
	at = at and at + 1
until not at
redis.call('HSET', KEYS[1], 'ids', string.sub(ids .. ARGV[2], -256 * 8))
redis.call('PEXPIRE', KEYS[1], ARGV[3])
if ARGV[5] ~= '' then
	redis.call('HSET', KEYS[2], ARGV[4], ARGV[5])
	redis.call('PEXPIRE', KEYS[2], ARGV[3])
	redis.call('SADD', KEYS[3], ARGV[1])
	redis.call('PEXPIRE', KEYS[3], ARGV[3])
end
return answer('C')
