-- A request that is not made twice: who has it in flight, and what it was answered with.
--
-- KEYS[1]  the request's
-- ARGV[1]  claim: it is about to be made; done: it was answered; drop: it was not, and may be made anew
-- ARGV[2]  digest of its body, 32 bytes; [3] the gateway that asks, 5 bytes, and which of its claims of this
--          key it means, 3 bytes; [4] for how many ms the record
--          lives on; [5] of done: the answer, or '' if it is too long to be kept; of claim: how many ms old another
--          gateway's claim has to be that may be taken over when that gateway's key is gone, or '': none may
--          [6] of claim: '' or '?', or '-' or '?' and [4] again if the gateway has a key by which it may be judged;
--          '?': the digest is a guess, which may have to be claimed in other words
-- returns  L: the gateway's to make (or to end, or over already); E: another one has it in flight; C: the key is another
--          request's; D: it was answered before; A and the answer, if that is no older than a minute
--
-- The record is R or D, the digest, [3]; of R: [6]; of D: the second in which it was answered (<I4), the answer.
-- Only a record's own gateway ends it: one whose claim was taken over changes nothing any more.
local record = redis.call('GET', KEYS[1])
local mine = record and string.sub(record, 1, 41) == 'R' .. ARGV[2] .. ARGV[3]
-- in whatever words, whichever claim: a gateway decides by itself which of its own requests is the first
local own = record and string.sub(record, 1, 1) == 'R' and string.sub(record, 34, 38) == string.sub(ARGV[3], 1, 5)

-- whether the claim of ARGV[3] is an earlier one of its gateway's than the record's; the numbers begin anew
local function late()
	local function number(owner)
		local low, middle, high = string.byte(owner, 6, 8)
		return low + 256 * middle + 65536 * high
	end
	local since = (number(string.sub(record, 34, 41)) - number(ARGV[3])) % 16777216
	return since > 0 and since < 8388608
end

if ARGV[1] == 'drop' then
	if mine then redis.call('DEL', KEYS[1]) end
	return 'L'
end
local now = tonumber(redis.call('TIME')[1])
if ARGV[1] == 'done' then
	if not record or mine then
		redis.call('SET', KEYS[1], 'D' .. ARGV[2] .. ARGV[3] .. struct.pack('<I4', now) .. ARGV[5], 'PX', ARGV[4])
	end
	return 'L'
end
if own and late() then return 'L' end
local running = record and string.sub(record, 1, 1) == 'R'
local free = not record or own
if not free and running and ARGV[5] ~= '' and #record > 42 then
	local function lives(gateway)
		local name = string.gsub(gateway, '.', function(c) return string.format('%02x', string.byte(c)) end)
		return redis.call('EXISTS', 'sluice:gateway:1:' .. name) == 1
	end
	local age = tonumber(string.sub(record, 43)) - redis.call('PTTL', KEYS[1])
	-- where the asking one's own key is not, either, what is not there says nothing
	free = age >= tonumber(ARGV[5]) and not lives(string.sub(record, 34, 38)) and lives(string.sub(ARGV[3], 1, 5))
end
if free then
	redis.call('SET', KEYS[1], 'R' .. ARGV[2] .. ARGV[3] .. ARGV[6], 'PX', ARGV[4])
	return 'L'
end
-- a guess may yet turn out to be the same
if string.sub(record, 2, 33) ~= ARGV[2] and not (running and string.sub(record, 42, 42) == '?') then return 'C' end
if running then return 'E' end
if #record <= 45 or now - struct.unpack('<I4', record, 42) >= 60 then return 'D' end
return 'A' .. string.sub(record, 46)
