-- Limits of a tenant and of its parts: what was used since the last call, then one attempt's claim on all
-- of them or on none, or a top-up.
--
-- KEYS     one per scope, sluice:2:{tenant}...: a STATE, TOPPED_UP, then an ENTRY per worker that spoke lately
-- ARGV[1]  HEADER: the worker, its connection, what is asked (0 nothing, 1 a claim, 2 a top-up, 3 a claim that is
--          told what is left), the places and the money claimed, or the money of the top-up
-- then two for each scope:
--   NEWS   the state's epoch as the worker knows it; places it holds as far as the state must know; places
--          given back; 1 if USED follows; the FIGURES that it claims under, or has claimed under and its times
--          are of; USED: requests given back, sign and amount of tokens, number of periods, each a CHANGE: 0 day
--          or 1 month, its number, sign and amount; for a claim: CLAIM
--   TOLD   all that this worker has ever told: number of periods, each: kind, number, money, topped up.
--          Read only when the state was lost since
-- returns  ANSWER: 0 granted (or no claim), 1..5 the limit in the way, 6 more tokens than its burst, 7 or 8 more
--          money than a whole day's or month's budget; the scope in the way, from 0; limits that would have refused
--          but count only, a bit each, five a scope; the server's second; how long to wait, or of 4, 5, 7 and 8 the
--          money that is left; of 7 and 8 BUDGET; then the epoch of each scope's state; if it is told what is left,
--          LEFT: the server's nanoseconds, and of each scope when requests and tokens are free again
--
-- One GET and one SET a scope, few and long strings, nothing unpacked that is not needed, and few functions
-- that capture little, since all of them are made anew at every call: that is what makes it cheap, and why
-- formats and places stand here as literals:
--   HEADER <c8I4BI4I4I4   ANSWER <BBI4I4I4I4   BUDGET <I4I4   LEFT <I4 and I4I4I4I4   NEWS <c8I4I4Bc52   USED <I4I4BI4I4B   CHANGE <BI4BI4I4
--   TOLD <BI4I4I4I4I4   CLAIM <B 13 I4: counts only; requests, tokens: cost, most; places; a day's, a month's money
--   STATE <c8 18 I4, 80 bytes: 1 epoch; 2 when requests, 4 when tokens are free again; 6 places in use; 7 when to
--     sweep the entries; 8 and 11 two days, 14 and 17 two months, by parity: number, money spent
--   TOPPED_UP of these four periods: 4 x <I4I4, 32 bytes
--   RATES, 80 bytes: FIGURES, NO_PLACE, then for requests and tokens when that burst was used last, and when the larger
--     one: <I3I3I3I3, seconds modulo 2^24, and NO_PLACE. Like four ENTRYs without a place that are leased for ever, so
--     that a gateway of a version before, which has no rates, leaves them where they are
--   FIGURES <I5I5c2 NO_PLACE I5I5c2 NO_PLACE I5I5c2, 52 bytes: of requests and of tokens the units a minute that their
--     time is of, 0 where there is no such limit, and the burst; then, of each, a larger burst that was used lately, 0
--     as a rule
--   ENTRY <c8I4I4I4, 20 bytes: the worker, its connection, its places, the second until which they are leased
-- Lua's numbers are exact up to 2^53 only, so that times (ns) and money (nano-USD) are pairs of a billion's
-- worth: h * 1e9 + l. tenants/quota.c has the same arithmetic in 64 bits; limiter_redis_wire.c reads a state too.
if #KEYS == 0 then return '' end -- a greeting: it is known from now on, and no caller waits for that
local time = redis.call('TIME')
local now, now_l = tonumber(time[1]), time[2] * 1000
local me, link, asked, places, uh, ul = struct.unpack('<c8I4BI4I4I4', ARGV[1])
local tells = asked == 3
if tells then asked = 1 end

local function add(s, i, h, l) -- never beyond what 4 bytes hold, 136 years or 4 billion USD
	h, l = s[i] + h, s[i + 1] + l
	if l >= 1000000000 then h, l = h + 1, l - 1000000000 end
	if h > 4294967295 then h = 4294967295 end
	s[i], s[i + 1] = h, l
end

local function subtract(s, i, h, l, least_h, least_l) -- never below the least
	h, l = s[i] - h, s[i + 1] - l
	if l < 0 then h, l = h - 1, l + 1000000000 end
	if h < least_h or (h == least_h and l < least_l) then h, l = least_h, least_l end
	s[i], s[i + 1] = h, l
end

local function top_up(s, i, h, l)
	local at = (i - 8) / 3 * 8 + 1
	local sum = { struct.unpack('<I4I4', s.rest, at) }
	add(sum, 1, h, l)
	s.rest = string.sub(s.rest, 1, at - 1) .. struct.pack('<I4I4', sum[1], sum[2]) .. string.sub(s.rest, at + 8)
end

local floor, today = math.floor, math.floor(now / 86400) -- quota_day, quota_month
local day = today + 719468
local era = floor(day / 146097)
day = day - era * 146097
local year = floor((day - floor(day / 1460) + floor(day / 36524) - floor(day / 146096)) / 365)
day = day - (365 * year + floor(year / 4) - floor(year / 100))
local this_month = (era * 400 + year) * 12 + floor((5 * day + 2) / 153) + 2

-- Where the money of a period (kind 0: day, 1: month) is. Nil when a later one has taken the place. None is later than
-- the next by this clock: a gateway whose own is ahead means the present one, and would else take its place.
local function period(s, kind, n)
	local present = kind == 0 and today or this_month
	if n > present + 1 then n = present end
	local i = 8 + kind * 6 + n % 2 * 3
	if s[i] == n then return i end
	if s[i] > n and s[i] <= present + 1 then return nil end
	s[i], s[i + 1], s[i + 2] = n, 0, 0
	local at = (i - 8) / 3 * 8 + 1
	s.rest = string.sub(s.rest, 1, at - 1) .. string.rep('\0', 8) .. string.sub(s.rest, at + 8)
	return i
end

local verdict, in_the_way, wait_h, wait_l, over = 0, 0, 0, 0, 0

-- Refuses, or remembers that it would have.
local function exceed(s, limit, code, h, l)
	if s.count_only then
		over = over + 2 ^ (s.number * 5 + limit - 1)
	elseif verdict == 0 then
		verdict, wait_h, wait_l, in_the_way = code, h, l, s.number
	end
end

local function rate_fits(s, i, h, l, most_h, most_l) -- at 2 requests, limit 1; at 4 tokens, limit 2
	if h == 0 and l == 0 then return true end
	if h > most_h or (h == most_h and l > most_l) then
		exceed(s, i / 2, 6, 0, 0)
		return false
	end
	h, l = s[i] + h - now - most_h, s[i + 1] + l - now_l - most_l -- beyond what may be
	while l < 0 do h, l = h - 1, l + 1000000000 end
	if l >= 1000000000 then h, l = h + 1, l - 1000000000 end
	if h < 0 or (h == 0 and l == 0) then return true end
	exceed(s, i / 2, i / 2, h, l)
	return false
end

-- Of the differences only the sign is used, which is right for any h. A claim is of the present periods, which are
-- always there.
local function check_money(s, limit, i, most_h, most_l)
	if uh == 0 and ul == 0 then return end
	local h, l = s[i + 1] + uh - most_h, s[i + 2] + ul - most_l
	if h * 1000000000 + l <= 0 then return end
	local more_h, more_l = struct.unpack('<I4I4', s.rest, (i - 8) / 3 * 8 + 1)
	if (h - more_h) * 1000000000 + l - more_l <= 0 then return end
	local left, code = { most_h, most_l }, limit
	add(left, 1, more_h, more_l)
	h, l = left[1], left[2]
	if h + l > 0 and (uh - h) * 1000000000 + ul - l > 0 then
		code, s.budget = limit + 3, s.budget or struct.pack('<I4I4', h, l)
	end
	subtract(left, 1, s[i + 1], s[i + 2], 0, 0)
	exceed(s, limit, code, left[1], left[2])
end

-- A claim under other figures than the last one, or in another second, finds its debt under its own: quota_align of
-- tenants/quota.c. What others tell of is `told` under the rates that the state has.
local function align(s, figures, asked, now, now_l, add)
	local NO_PLACE, floor, second = '\0\0\0\0\255\255\255\255', math.floor, now % 16777216

	-- A time of the rate `by` as it is of `over`, rounded up where `up` is 1; three digits at a time stay below 2^53.
	local function convert(h, l, by, over, up)
		local digits, carry, rest = {}, 0, 0
		for i = 1, 12 do
			if i == 4 then l = h end
			carry = carry + l % 1000 * by
			l, digits[i], carry = floor(l / 1000), carry % 1000, floor(carry / 1000)
		end
		h, l = 0, 0
		for i = 12, 1, -1 do
			rest = rest * 1000 + digits[i]
			local digit = floor(rest / over)
			rest = rest - digit * over
			if i > 3 then h = h * 1000 + digit else l = l * 1000 + digit end
		end
		if rest > 0 then l = l + up end
		if l >= 1000000000 then h, l = h + 1, l - 1000000000 end
		return math.min(h, 4294967295), l
	end

	local function lasts(used) -- or is to come: of a clock that was set back
		local age = (second - used) % 16777216
		return age <= 60 or age > 8388608
	end

	if string.sub(s.rest, 45, 52) ~= NO_PLACE then -- a new state, or one of a version before
		if asked ~= 1 then return end
		s.rest = string.sub(s.rest, 1, 32) .. string.rep(string.rep('\0', 12) .. NO_PLACE, 4) .. string.sub(s.rest, 33)
	end
	local mine = { struct.unpack('<I5I5c10I5I5', figures) }
	local its = { struct.unpack('<I5I5c10I5I5c10I5I5c10I3I3I3I3', s.rest, 33) }
	if asked ~= 1 then
		s.told = function(at, h, l, up)
			if its[at] == mine[at] or its[at] == 0 or mine[at] == 0 then return h, l end
			return convert(h, l, mine[at], its[at], up)
		end
		return
	end
	for kind = 1, 2 do
		local at, i = 3 * kind - 2, 2 * kind
		local rate, burst, was, last, larger = mine[at], mine[at + 1], its[at], its[at + 1], its[6 + kind]
		local ended = false
		if larger <= burst or not lasts(its[11 + kind]) then ended, larger = larger > burst, 0 end
		if last > burst and not lasts(its[9 + kind]) then
			ended = true
		elseif last > burst and last >= larger then
			larger, its[11 + kind] = last, its[9 + kind]
		elseif last > burst and (its[9 + kind] - its[11 + kind]) % 16777216 < 8388608 then
			its[11 + kind] = its[9 + kind] -- of three bursts the largest stands for the second
		end
		if rate == 0 then
			if s[i] > now or s[i + 1] > now_l then rate, burst, larger = was, last, its[6 + kind] else larger = 0 end
		elseif was ~= rate or ended then
			local h, l, most_h, most_l = s[i] - now, s[i + 1] - now_l, convert(60, 0, math.max(burst, larger), rate, 1)
			if l < 0 then h, l = h - 1, l + 1000000000 end
			if was ~= rate and was > 0 then h, l = convert(h, l, was, rate, 1) end
			if h > most_h or (h == most_h and l > most_l) then h, l = most_h, most_l end
			s[i], s[i + 1] = now, now_l
			add(s, i, h, l)
		end
		its[at], its[at + 1], its[6 + kind], its[9 + kind] = rate, burst, larger, second
	end
	s.rest = string.sub(s.rest, 1, 32) ..
		struct.pack('<I5I5c10I5I5c10I5I5c10I3I3I3I3', unpack(its, 1, 13)) .. string.sub(s.rest, 105)
	s.changed = true
end

local scopes, second = {}, now % 16777216
for number = 1, #KEYS do
	-- what is there
	local text, news = redis.call('GET', KEYS[number]), ARGV[2 * number]
	if not text or #text < 112 or (#text - 112) % 20 ~= 0 then
		text = struct.pack('<I4I4', now, now_l) .. string.rep('\0', 104)
	end
	local s = { rest = string.sub(text, 81), at = nil, mine = 0, changed = false, number = number - 1,
		count_only = false, claim = nil, struct.unpack('<c8I4I4I4I4I4I4I4I4I4I4I4I4I4I4I4I4I4I4', text) }
	if now >= s[7] then
		-- Places whose lease is over are free, and workers that were silent for two minutes are forgotten.
		local kept, in_use, next_sweep = { string.sub(s.rest, 1, 32) }, 0, now + 30
		for i = 33, #s.rest, 20 do
			local worker, its_link, count, until_s = struct.unpack('<c8I4I4I4', s.rest, i)
			if until_s <= now then its_link, count = 0, 0 end -- it says what it holds when it speaks again
			if until_s + 90 > now then
				kept[#kept + 1] = struct.pack('<c8I4I4I4', worker, its_link, count, until_s)
				in_use = in_use + count
				if count > 0 and until_s < next_sweep then next_sweep = until_s end
			end
		end
		s.rest, s[6], s[7] = table.concat(kept), in_use, next_sweep
	end
	subtract(s, 2, 0, 0, now, now_l)
	subtract(s, 4, 0, 0, now, now_l)
	local epoch, held, given_back, used, figures, after = struct.unpack('<c8I4I4Bc52', news)
	if string.sub(s.rest, 33, 84) ~= figures then
		align(s, figures, asked, now, now_l, add)
	elseif asked == 1 then
		local a, b, c = string.byte(s.rest, 93, 95)
		if a + b * 256 + c * 65536 ~= second then
			s.rest = string.sub(s.rest, 1, 92) .. struct.pack('<I3I3', second, second) .. string.sub(s.rest, 99)
			s.changed = true
		end
	end
	local at, had = string.find(s.rest, me, 33, true), nil
	while at and at % 20 ~= 13 do at = string.find(s.rest, me, at + 1, true) end
	if at then
		local _, its_link, count = struct.unpack('<c8I4I4', s.rest, at)
		if its_link == link then had = count end
		s[6] = s[6] - count -- those of all others from now on
		s.at = at
	end

	-- what the worker tells
	s.mine = math.max((had or held) - given_back, 0)
	s.changed = s.changed or asked ~= 1 or given_back > 0 or used > 0 or not at
	if epoch ~= s[1] and not at then -- nobody had a state yet, or it was lost
		local told, place = ARGV[2 * number + 1], 2
		for _ = 1, string.byte(told) do
			local kind, n, h, l, more_h, more_l
			kind, n, h, l, more_h, more_l, place = struct.unpack('<BI4I4I4I4I4', told, place)
			local i = period(s, kind, n)
			if i then
				add(s, i + 1, h, l)
				top_up(s, i, more_h, more_l)
			end
		end
	end
	if used > 0 then
		local less_h, less_l, sign, h, l, changes, kind, n
		less_h, less_l, sign, h, l, changes, after = struct.unpack('<I4I4BI4I4B', news, after)
		if s.told then
			less_h, less_l = s.told(1, less_h, less_l, 0)
			h, l = s.told(4, h, l, 1 - sign)
		end
		subtract(s, 2, less_h, less_l, now, now_l)
		if sign == 0 then add(s, 4, h, l) else subtract(s, 4, h, l, now, now_l) end
		for _ = 1, changes do
			kind, n, sign, h, l, after = struct.unpack('<BI4BI4I4', news, after)
			local i = period(s, kind, n)
			if i and sign == 0 then add(s, i + 1, h, l) elseif i then subtract(s, i + 1, h, l, 0, 0) end
		end
	end

	-- what it claims
	if asked ~= 0 then s.day, s.month = period(s, 0, today), period(s, 1, this_month) end
	if asked == 1 then
		local c = { struct.unpack('<BI4I4I4I4I4I4I4I4I4I4I4I4I4', news, after) }
		s.count_only = c[1] == 1
		if not rate_fits(s, 2, c[2], c[3], c[4], c[5]) then c[2], c[3] = 0, 0 end
		if not rate_fits(s, 4, c[6], c[7], c[8], c[9]) then c[6], c[7] = 0, 0 end
		if places > 0 and s[6] + s.mine + places > c[10] then exceed(s, 3, 3, 1, 0) end
		check_money(s, 4, s.day, c[11], c[12])
		check_money(s, 5, s.month, c[13], c[14])
		s.claim = c
	elseif asked == 2 then
		top_up(s, s.day, uh, ul)
		top_up(s, s.month, uh, ul)
	end
	scopes[number] = s
end

local answer = struct.pack('<BBI4I4I4I4', verdict, in_the_way, over, now, wait_h, wait_l)
if verdict > 6 then answer = answer .. scopes[in_the_way + 1].budget end
for number = 1, #KEYS do
	local s = scopes[number]
	if asked == 1 and verdict == 0 then
		local c = s.claim
		add(s, 2, c[2], c[3])
		add(s, 4, c[6], c[7])
		add(s, s.day + 1, uh, ul)
		add(s, s.month + 1, uh, ul)
		s.mine, s.changed = s.mine + places, true
	end
	if s.changed then
		local rest, at = s.rest, s.at or #s.rest + 1
		s[6] = s[6] + s.mine
		if s[7] > now + 30 then s[7] = now + 30 end
		redis.call('SET', KEYS[number],
			struct.pack('<c8I4I4I4I4I4I4I4I4I4I4I4I4I4I4I4I4I4I4', unpack(s, 1, 19)) ..
			string.sub(rest, 1, at - 1) .. struct.pack('<c8I4I4I4', me, link, s.mine, now + 30) ..
			string.sub(rest, at + 20), 'PX', 3456000000) -- 40 days: longer than a month
	end
	answer = answer .. s[1]
end
if tells then
	answer = answer .. struct.pack('<I4', now_l)
	for number = 1, #KEYS do
		local s = scopes[number]
		answer = answer .. struct.pack('<I4I4I4I4', s[2], s[3], s[4], s[5])
	end
end
return answer
