-- A session of /mcp/{server}, as all gateways know it: who is its home, and what its home and others note.
--
-- KEYS[1]  its record
-- ARGV[1]  home: who is it; saw: an event came; refused: the upstream has no GET for it; freed: the home lets go;
--          note; call: one of the client's has begun or is over
-- ARGV[2]  the gateway that asks, 5 bytes; [3] for how many ms the record lives on
-- ARGV[4]  of home: the worker that asks, 1 byte; of saw: the event's id; of note: a number; of call: 1 or -1
-- ARGV[5]  of home: take, if the worker becomes it where there is none that lives; [6] steady: a gateway whose key is
--          gone is dead
-- returns  of home: M the home is this worker now; O it is another; N there is none; R the upstream has no GET; E the
--          session is over. Then the note (<I4), where the home is (6 bytes), and of M the last event's id
--
-- The record is a hash: home (gateway and worker), last, refused, ended, note, ids (mcp_claim.lua), and c: with a
-- gateway's name: how many calls are open there.
local what, own, record = ARGV[1], ARGV[2], KEYS[1]

-- The gateway of its home, or false. One that was stopped may speak of a session that another has by now.
local function home()
	local found = redis.call('HGET', record, 'home')
	return found and string.sub(found, 1, 5)
end

if what == 'home' then
	local function lives(gateway)
		local name = string.gsub(gateway, '.', function(c) return string.format('%02x', string.byte(c)) end)
		return redis.call('EXISTS', 'sluice:gateway:1:' .. name) == 1
	end
	local found = redis.call('HMGET', record, 'ended', 'refused', 'home', 'note', 'last')
	local at, worker = found[3] or '', own .. ARGV[4]
	local function answer(letter, address)
		return letter .. struct.pack('<I4', tonumber(found[4] or 0)) .. (address or string.rep('\0', 6))
	end
	if found[1] then return answer('E') end
	if found[2] then return answer('R') end
	local gateway = string.sub(at, 1, 5)
	local take = ARGV[5] == 'take'
	-- of its own workers a gateway knows by itself which one it is
	local free = at == '' or (take and gateway == own)
	if not free and gateway ~= own and ARGV[6] == 'steady' then
		-- where the asking one's own key is not, either, what is not there says nothing
		free = not lives(gateway) and lives(own)
	end
	if not free and at ~= worker then return answer('O', at) end
	if free and not take then return answer('N') end
	if take then
		redis.call('HSET', record, 'home', worker)
		redis.call('PEXPIRE', record, ARGV[3])
	end
	return answer('M', worker) .. (found[5] or '')
end

if what == 'freed' then
	if home() == own then redis.call('HDEL', record, 'home') end
	return 1
end
if what == 'saw' then
	if (home() or own) ~= own then return 0 end
	redis.call('HSET', record, 'last', ARGV[4])
elseif what == 'refused' then
	if (home() or own) ~= own then return 0 end
	redis.call('HDEL', record, 'home')
	redis.call('HSET', record, 'refused', 1)
elseif what == 'note' then
	redis.call('HSET', record, 'note', ARGV[4])
elseif redis.call('HINCRBY', record, 'c:' .. own, ARGV[4]) <= 0 then
	redis.call('HDEL', record, 'c:' .. own)
end
redis.call('PEXPIRE', record, ARGV[3])
return 1
