-- Limits of a tenant and of its parts: what was used since the last call, then one attempt's claim on all
-- of them or on none.
--
-- KEYS     per scope two hashes: rates, money, and who has told his share    sluice:1:{tenant}...
--          places in use, by worker                                         sluice:1:{tenant}...:places
-- ARGV     process and worker; its connection; 1 for a claim, else 0; places and money (h l) claimed;
--          then per scope: places it holds as far as the hash must know; places given back;
--          requests to give back (time h l); tokens settled (sign h l);
--          number of periods told of, each: d or m, number, share h l, change (sign h l);
--          for a claim: 1 if it counts only; requests cost, most (h l each); tokens cost, most;
--          most places; most money a day; a month (-1: no limit)
-- returns  {0: granted (or no claim), 1..5: the limit in the way, 6: more tokens than its burst;
--           the server's second; wait h l; the scope in the way, from 0;
--           limits that would have refused but count only, a bit each, five a scope}
--
-- Lua's numbers are exact up to 2^53 only, so that times (ns) and money (nano-USD) are pairs of a
-- billion's worth: h * 1e9 + l. tenants/quota.c has the same arithmetic in 64 bits.
local BASE, TTL_MS, PLACES_TTL_MS, LEASE_MS = 1000000000, 40 * 86400000, 60000, 30000

local function less(ah, al, bh, bl) return ah < bh or (ah == bh and al < bl) end
local function plus(ah, al, bh, bl)
	local h, l = ah + bh, al + bl
	if l >= BASE then h, l = h + 1, l - BASE end
	return h, l
end
local function minus(ah, al, bh, bl) -- never below nothing
	if less(ah, al, bh, bl) then return 0, 0 end
	local h, l = ah - bh, al - bl
	if l < 0 then h, l = h - 1, l + BASE end
	return h, l
end
local function later(ah, al, bh, bl)
	if less(ah, al, bh, bl) then return bh, bl end
	return ah, al
end
local function month_of(days) -- quota_month
	days = days + 719468
	local day = days % 146097
	local year = math.floor((day - math.floor(day / 1460) + math.floor(day / 36524) - math.floor(day / 146096)) / 365)
	local of_year = day - (365 * year + math.floor(year / 4) - math.floor(year / 100))
	return (math.floor(days / 146097) * 400 + year) * 12 + math.floor((5 * of_year + 2) / 153) + 2
end

local time = redis.call('TIME')
local nh, nl = tonumber(time[1]), tonumber(time[2]) * 1000
local now_ms = nh * 1000 + math.floor(nl / 1000000)
local next_arg = 0
local function arg()
	next_arg = next_arg + 1
	return ARGV[next_arg]
end
local function number() return tonumber(arg()) end
local me, link, claiming = arg(), arg(), number() == 1
local places_asked, uh, ul = number(), number(), number()
local today = math.floor(nh / 86400)
local this_month = month_of(today)

local NAMES = { 'rh', 'rl', 'th', 'tl', 'd0', 'd0h', 'd0l', 'd1', 'd1h', 'd1l',
	'm0', 'm0h', 'm0l', 'm1', 'm1h', 'm1l' }

-- ---- what is there, with what this worker tells ----

local function period(new, kind, n) -- the slot's name; nil when a later period has it
	local slot = kind .. (n % 2)
	if new[slot] > n then return nil end
	if new[slot] < n then new[slot], new[slot .. 'h'], new[slot .. 'l'] = n, 0, 0 end
	return slot
end

local function read_money(new, told)
	for _ = 1, number() do
		local kind, n = arg(), number()
		local bh, bl, sign, ch, cl = number(), number(), number(), number(), number()
		local slot = period(new, kind, n)
		if slot then
			local h, l = new[slot .. 'h'], new[slot .. 'l']
			if not told then h, l = plus(h, l, bh, bl) end
			if sign < 0 then h, l = minus(h, l, ch, cl) else h, l = plus(h, l, ch, cl) end
			new[slot .. 'h'], new[slot .. 'l'] = h, l
		end
	end
end

local function read_places(s, held, given_back) -- leases of this and of all other workers
	local places = redis.call('HGETALL', s.places_key)
	s.others, s.gone = 0, {}
	for i = 1, #places, 2 do
		local count, expiry = string.match(places[i + 1], '^(%d+) (%d+)$')
		if places[i] == me .. '/' .. link then
			s.had = tonumber(count)
		elseif string.sub(places[i], 1, #me + 1) == me .. '/' or not expiry or tonumber(expiry) <= now_ms then
			s.gone[#s.gone + 1] = places[i]
		else
			s.others = s.others + tonumber(count)
		end
	end
	s.mine = math.max(0, (s.had or held) - given_back)
end

local function read_scope(key, places_key)
	local s = { key = key, places_key = places_key, old = {}, new = {} }
	local values = redis.call('HMGET', key, 'rh', 'rl', 'th', 'tl', 'd0', 'd0h', 'd0l', 'd1', 'd1h', 'd1l',
		'm0', 'm0h', 'm0l', 'm1', 'm1h', 'm1l', 'w:' .. me)
	for i = 1, #NAMES do
		local value = tonumber(values[i] or 0)
		s.old[NAMES[i]], s.new[NAMES[i]] = value, value
	end
	s.told = values[#NAMES + 1] -- false: what this worker had told is lost, or was never told
	local new, held, given_back = s.new, number(), number()
	read_places(s, held, given_back)
	new.rh, new.rl = later(new.rh, new.rl, nh, nl)
	new.th, new.tl = later(new.th, new.tl, nh, nl)
	new.rh, new.rl = minus(new.rh, new.rl, number(), number())
	new.rh, new.rl = later(new.rh, new.rl, nh, nl)
	local sign, ch, cl = number(), number(), number()
	if sign < 0 then
		new.th, new.tl = minus(new.th, new.tl, ch, cl)
		new.th, new.tl = later(new.th, new.tl, nh, nl)
	else
		new.th, new.tl = plus(new.th, new.tl, ch, cl)
	end
	read_money(new, s.told)
	return s
end

-- ---- the claim ----

local verdict, wh, wl, in_the_way, over = 0, 0, 0, 0, 0

-- Refuses, or remembers that it would have.
local function exceed(s, limit, code, h, l)
	if s.count_only then
		over = over + 2 ^ (s.number * 5 + limit - 1)
		return
	end
	if verdict == 0 then verdict, wh, wl, in_the_way = code, h, l, s.number end
end

local function rate(s, limit, h, l)
	local qh, ql, mh, ml = number(), number(), number(), number()
	local th, tl = s.new[h], s.new[l]
	if qh == 0 and ql == 0 then return th, tl end
	local ah, al = plus(th, tl, qh, ql)
	local dh, dl = minus(ah, al, nh, nl)
	if not less(mh, ml, dh, dl) then return ah, al end
	if less(mh, ml, qh, ql) then
		exceed(s, limit, 6, 0, 0)
	else
		exceed(s, limit, limit, minus(dh, dl, mh, ml))
	end
	return th, tl
end

local function budget(s, limit, slot)
	local mh, ml = number(), number()
	if mh < 0 or (uh == 0 and ul == 0) or not slot then return end
	local h, l = plus(s.new[slot .. 'h'], s.new[slot .. 'l'], uh, ul)
	if less(mh, ml, h, l) then exceed(s, limit, limit, 0, 0) end
end

local function look(s)
	s.count_only = number() == 1
	s.rh, s.rl = rate(s, 1, 'rh', 'rl')
	s.th, s.tl = rate(s, 2, 'th', 'tl')
	local most = number()
	if places_asked > 0 and s.others + s.mine + places_asked > most then exceed(s, 3, 3, 1, 0) end
	s.day, s.month = period(s.new, 'd', today), period(s.new, 'm', this_month)
	budget(s, 4, s.day)
	budget(s, 5, s.month)
end

local function take(s)
	local new = s.new
	new.rh, new.rl, new.th, new.tl = s.rh, s.rl, s.th, s.tl
	s.mine = s.mine + places_asked
	if s.day then new[s.day .. 'h'], new[s.day .. 'l'] = plus(new[s.day .. 'h'], new[s.day .. 'l'], uh, ul) end
	if s.month then
		new[s.month .. 'h'], new[s.month .. 'l'] = plus(new[s.month .. 'h'], new[s.month .. 'l'], uh, ul)
	end
end

-- ---- what is left ----

-- The first word of this worker this month: who was silent for two is forgotten.
local function forget_silent(key)
	local fields = redis.call('HGETALL', key)
	for i = 1, #fields, 2 do
		if string.sub(fields[i], 1, 2) == 'w:' and tonumber(fields[i + 1]) < this_month - 1 then
			redis.call('HDEL', key, fields[i])
		end
	end
end

local function write(s)
	local changed = {}
	for name, value in pairs(s.new) do
		if value ~= s.old[name] then
			changed[#changed + 1] = name
			changed[#changed + 1] = string.format('%.0f', value)
		end
	end
	if tonumber(s.told or 0) ~= this_month then
		forget_silent(s.key)
		changed[#changed + 1] = 'w:' .. me
		changed[#changed + 1] = string.format('%.0f', this_month)
	end
	if #changed > 0 then redis.call('HSET', s.key, unpack(changed)) end
	redis.call('PEXPIRE', s.key, TTL_MS)
	if s.mine > 0 then
		redis.call('HSET', s.places_key, me .. '/' .. link, string.format('%.0f %.0f', s.mine, now_ms + LEASE_MS))
		redis.call('PEXPIRE', s.places_key, PLACES_TTL_MS)
	elseif s.had then
		s.gone[#s.gone + 1] = me .. '/' .. link
	end
	if #s.gone > 0 then redis.call('HDEL', s.places_key, unpack(s.gone)) end
end

local scopes = {}
for i = 1, #KEYS / 2 do
	scopes[i] = read_scope(KEYS[2 * i - 1], KEYS[2 * i])
	scopes[i].number = i - 1
	if claiming then look(scopes[i]) end
end
for i = 1, #scopes do
	if claiming and verdict == 0 then take(scopes[i]) end
	write(scopes[i])
end
return { verdict, nh, wh, wl, in_the_way, over }
