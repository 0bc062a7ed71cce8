-- What a request leaves behind: counts of its session and its loop, the calls it issued, private blocks.
--
-- KEYS     the session, if there is one; the loop, likewise; calls; the key of blocks, if there are some. All of
--          one tenant. What they hold: see state_load.lua
-- ARGV[1]  <BBBBI4I4I4I4: 1 if there is a session; what becomes of it: 0 it is counted, 1 it begins, 2 it ends;
--          1 if there is a loop; 1 if there are blocks; the number of calls; for how many ms a session, a loop
--          with its calls, and blocks live on
-- ARGV[2]  requests; [3] tokens; [4] nano-USD: in digits, each below 2^53
-- ARGV[5]  revision of a session that begins; [6] the record of every call; [7] blocks; [8] the place
--          that a loop has from now on, or '': it stays where it was
-- returns  1 if a session has ended, else 0
local has_session, becomes, has_loop, has_blocks, calls, session_ms, loop_ms, blocks_ms =
	struct.unpack('<BBBBI4I4I4I4', ARGV[1])
local at, ended = 0, 0

-- A sum that is full stays as it is.
local function add(key, field, n)
	if n ~= '0' then redis.pcall('HINCRBY', key, field, n) end
end

if has_session == 1 then
	at = 1
	if becomes == 1 then redis.call('HSET', KEYS[1], 'revision', ARGV[5]) end
	if becomes == 2 then
		ended = redis.call('DEL', KEYS[1])
	elseif redis.call('PEXPIRE', KEYS[1], session_ms) == 1 then -- it is there
		add(KEYS[1], 'requests', ARGV[2])
		add(KEYS[1], 'tokens', ARGV[3])
		add(KEYS[1], 'usd', ARGV[4])
	end
end
if has_loop == 1 then
	at = at + 1
	if ARGV[8] ~= '' then
		redis.call('HSET', KEYS[at], 'place', ARGV[8])
	else
		redis.call('HINCRBY', KEYS[at], 'tokens', 0) -- it is there from now on, whatever it has spent
	end
	add(KEYS[at], 'tokens', ARGV[3])
	add(KEYS[at], 'usd', ARGV[4])
	redis.call('PEXPIRE', KEYS[at], loop_ms)
end
for i = at + 1, at + calls do redis.call('SET', KEYS[i], ARGV[6], 'PX', loop_ms) end
if has_blocks == 1 then redis.call('SET', KEYS[at + calls + 1], ARGV[7], 'PX', blocks_ms) end
return ended
