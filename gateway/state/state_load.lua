-- What is known of a session, of a tool loop by its calls, and private blocks.
--
-- KEYS     the session, if one is asked for; calls; keys of blocks. All of one tenant: sluice:state:1:{tenant}...
-- ARGV[1]  <BBI4I4I4I4: 1 if a session is asked for; 1 if blocks are wanted whole or not at all; the number of calls; for
--          how many ms a session and blocks that are found live on; how many bytes of blocks there may be in the answer
-- ARGV[2]  what the key of a loop begins with, before the 32 digits of its id: those are known from calls only
-- Blocks are looked for from the latest turn back. Those in front of a turn that has none are of no use, unless the
-- gateway has what is missing itself; so the search ends with the eighth that is not there (or was asked for before:
-- ids that come twice are not replayed), and with the room. What it has not come to counts as not there.
-- returns  the session's revision or nil; how many of the calls are known; the most rounds that one of them came
--          after; of the loop with most tokens that one leads to: its id ('' if there is none), tokens, nano-USD,
--          and the place where it was last, or ''; the session's requests, tokens, nano-USD; then blocks, each a
--          text, '' where they are of no use any more, or nil; or 1 for one and nil for all others: they are too many
--          to be wanted
--
-- A session is a hash: revision, requests, tokens, usd. A loop is one, too: tokens, usd, place. A call is a string,
-- <c32I4: the id of its loop, and the rounds it came after.
local has_session, whole, calls, session_ms, blocks_ms, room = struct.unpack('<BBI4I4I4I4', ARGV[1])
local answer = { false, 0, 0, '', '0', '0', '', '0', '0', '0' }

if has_session == 1 then
	local session = redis.call('HMGET', KEYS[1], 'revision', 'requests', 'tokens', 'usd')
	answer[1] = session[1]
	for i = 2, 4 do answer[6 + i] = session[i] or '0' end
	if answer[1] then redis.call('PEXPIRE', KEYS[1], session_ms) end
end

local seen, most = {}, -1
for _, record in ipairs(calls > 0 and redis.call('MGET', unpack(KEYS, has_session + 1, has_session + calls)) or {}) do
	if record and #record == 36 then
		local id, rounds = struct.unpack('<c32I4', record)
		answer[2] = answer[2] + 1
		answer[3] = math.max(answer[3], rounds)
		if not seen[id] then
			seen[id] = true
			local spent = redis.call('HMGET', ARGV[2] .. id, 'tokens', 'usd', 'place')
			local tokens = tonumber(spent[1]) or 0
			if tokens > most then
				most, answer[4], answer[5], answer[6] = tokens, id, spent[1] or '0', spent[2] or '0'
				answer[7] = spent[3] or ''
			end
		end
	end
end

local first, missed, had = has_session + calls + 1, 0, {}
local last = 11 + #KEYS - first
for i = 11, last do answer[i] = false end
for i = #KEYS, first, -1 do
	local text = not had[KEYS[i]] and redis.call('GETEX', KEYS[i], 'PX', blocks_ms)
	had[KEYS[i]] = true
	if not text then missed = missed + 1 else room = room - #text end
	if room < 0 and whole == 1 then
		for j = 11, last do answer[j] = false end
		answer[11 + i - first] = true
	end
	if missed == 8 or room < 0 then break end
	answer[11 + i - first] = text
end
return answer
