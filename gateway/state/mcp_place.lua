-- How many sessions of /mcp/{server} a tenant and a server have at all gateways.
--
-- KEYS     the tenant's sessions; the server's; but for place and unplaced the session's record (mcp_record.lua)
-- ARGV[1]  place: for a session that is about to begin; unplaced: it did not; begun: it did; used: a message of it came;
--          ended: it is over
-- ARGV[2]  the place, or the session, 16 bytes; [3] for how many ms it counts; [4] for how many ms a session does
-- ARGV[5]  of place: how many the tenant may have; of begun: the place; [6] of place: how many the server may have
-- returns  of place: R there was room; T the tenant has too many; S the server
--
-- Sessions are members of sorted sets, by the ms in which they are idle.
local what, member, record = ARGV[1], ARGV[2], KEYS[3]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function add()
	for i = 1, 2 do
		redis.call('ZADD', KEYS[i], now + ARGV[3], member)
		redis.call('PEXPIRE', KEYS[i], ARGV[4])
	end
end

local function remove(which)
	for i = 1, 2 do redis.call('ZREM', KEYS[i], which) end
end

if what == 'place' then
	for i, full in ipairs({ 'T', 'S' }) do
		redis.call('ZREMRANGEBYSCORE', KEYS[i], '-inf', now)
		if redis.call('ZCARD', KEYS[i]) >= tonumber(ARGV[4 + i]) then return full end
	end
	add()
	return 'R'
end
if what == 'unplaced' then
	remove(member)
elseif what == 'ended' then
	remove(member)
	redis.call('DEL', record)
	redis.call('HSET', record, 'ended', 1)
	redis.call('PEXPIRE', record, ARGV[4])
elseif what == 'begun' then
	remove(ARGV[5])
	-- the upstream has used the id of one that is over once more
	if redis.call('HEXISTS', record, 'ended') == 1 then redis.call('DEL', record) end
	add()
elseif redis.call('HEXISTS', record, 'ended') == 0 then
	add()
	redis.call('PEXPIRE', record, ARGV[4])
end
return 1
