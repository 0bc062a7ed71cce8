#include "gateway/limits/limiter_redis_wire.h"

#include "codec/base/clock.h"
#include "codec/base/must.h"
#include "tenants/quota.h"

#include <endian.h>
#include <hiredis/hiredis.h>
#include <string.h>

enum { NUMBER_BYTES = 4, AMOUNT_BYTES = 2 * NUMBER_BYTES, UNITS_BYTES = 5, SECOND_BYTES = 3 };

#define PAIR_BASE UINT64_C(1000000000) /* of an amount */

void limiter_pack_units(struct redis_pack *pack, uint64_t units)
{
	must(units < UINT64_C(1) << 8 * UNITS_BYTES);
	redis_pack_low(pack, units, UNITS_BYTES);
}

void limiter_pack_no_place(struct redis_pack *pack)
{
	redis_pack_low(pack, 0, NUMBER_BYTES);
	redis_pack_low(pack, UINT32_MAX, NUMBER_BYTES);
}

void limiter_pack_unbound(struct redis_pack *pack)
{
	redis_pack_low(pack, UINT32_MAX, NUMBER_BYTES);
	redis_pack_low(pack, 0, NUMBER_BYTES);
}

/* What is left of a packed answer. Its length is checked before anything is taken. */
struct unpacked {
	const char *at;
};

static uint64_t unpack_low(struct unpacked *from, size_t bytes)
{
	uint64_t value = 0;

	(void)memcpy(&value, from->at, bytes);
	from->at += bytes;
	return le64toh(value);
}

static uint64_t unpack_amount(struct unpacked *from)
{
	const uint64_t high = unpack_low(from, NUMBER_BYTES);

	return high * PAIR_BASE + unpack_low(from, NUMBER_BYTES);
}

/* ---- answers ---- */

static bool is_string(const struct redisReply *reply)
{
	return reply->type == REDIS_REPLY_STRING;
}

static bool over_budget(uint32_t code)
{
	return code == VERDICT_OVER_DAY || code == VERDICT_OVER_MONTH;
}

static bool about_money(uint32_t code)
{
	return code == VERDICT_DAY || code == VERDICT_MONTH || over_budget(code);
}

/* Bytes of what is left. */
static size_t left_bytes(uint32_t scopes)
{
	return NUMBER_BYTES + scopes * (size_t)(2 * AMOUNT_BYTES);
}

void limiter_read_left(const struct redisReply *reply, uint32_t scopes, uint64_t server_s,
		       struct limiter_told *out)
{
	struct unpacked from = { reply->str + reply->len - left_bytes(scopes) };

	out->now_ns = server_s * SEC + unpack_low(&from, NUMBER_BYTES);
	for (uint32_t i = 0; i < scopes; i++) {
		out->free_at[i].requests = unpack_amount(&from);
		out->free_at[i].tokens = unpack_amount(&from);
	}
}

bool limiter_read_verdict(const struct redisReply *reply, uint32_t scopes, bool tells,
			  struct limiter_verdict *out)
{
	enum { FIXED = 1 + 1 + 2 * NUMBER_BYTES + AMOUNT_BYTES };

	must(scopes >= 1 && scopes <= LIMITER_VERDICT_SCOPES);
	if (!is_string(reply) || reply->len < FIXED)
		return false;
	struct unpacked from = { reply->str };
	struct limiter_verdict verdict = { .code = (uint32_t)unpack_low(&from, 1) };
	verdict.scope = (uint32_t)unpack_low(&from, 1);
	if (verdict.code >= VERDICT_COUNT || verdict.scope >= scopes ||
	    (size_t)reply->len != FIXED + (over_budget(verdict.code) ? (size_t)AMOUNT_BYTES : 0) +
					  scopes * LIMITER_EPOCH_BYTES +
					  (tells ? left_bytes(scopes) : 0))
		return false;
	verdict.over = (uint32_t)unpack_low(&from, NUMBER_BYTES);
	verdict.server_s = unpack_low(&from, NUMBER_BYTES);
	uint64_t *amount = about_money(verdict.code) ? &verdict.left : &verdict.wait_ns;
	*amount = unpack_amount(&from);
	if (over_budget(verdict.code))
		verdict.budget = unpack_amount(&from);
	(void)memcpy(verdict.epochs, from.at, scopes * LIMITER_EPOCH_BYTES);
	*out = verdict;
	return true;
}

/* Two places of a kind of period: the amount of the one that counts, and its place. */
static uint64_t read_period(struct unpacked *from, uint32_t period, uint32_t *place)
{
	uint64_t spent = 0;

	for (uint32_t i = 0; i < 2; i++) {
		const bool counts = unpack_low(from, NUMBER_BYTES) == period;
		const uint64_t amount = unpack_amount(from);
		if (counts) {
			spent = amount;
			*place = i;
		}
	}
	return spent;
}

/* Of the period that is at `place` of two, or at none. */
static uint64_t read_top_up(struct unpacked *from, uint32_t place)
{
	const uint64_t first = unpack_amount(from), second = unpack_amount(from);

	return place == 0 ? first : place == 1 ? second : 0;
}

static uint64_t read_places(struct unpacked *from, const char *end, uint64_t wall_s)
{
	uint64_t places = 0;

	while (from->at != end) {
		from->at += LIMITER_WORKER_BYTES + NUMBER_BYTES;
		const uint64_t count = unpack_low(from, NUMBER_BYTES);
		if (unpack_low(from, NUMBER_BYTES) > wall_s)
			places += count;
	}
	return places;
}

enum { RATES_SKIPPED = 2 + 2 * NUMBER_BYTES, RATES_ENTRY = 20, RATES = 4 * RATES_ENTRY };

/* Of a gateway of a version before there are none. */
static bool has_rates(const struct unpacked *from, const char *end)
{
	struct unpacked mark = { from->at + RATES_ENTRY - 2 * NUMBER_BYTES };

	return end - from->at >= RATES && unpack_low(&mark, NUMBER_BYTES) == 0 &&
	       unpack_low(&mark, NUMBER_BYTES) == UINT32_MAX;
}

/* A use that is to come, by a clock that was set back, is as good as of now. */
static uint32_t read_age(struct unpacked *from, uint64_t now_s)
{
	enum { SECONDS = 1 << 8 * SECOND_BYTES };
	const uint32_t age = (uint32_t)(now_s - unpack_low(from, SECOND_BYTES)) % SECONDS;

	return age <= SECONDS / 2 ? age : 0;
}

static void read_rates(struct unpacked *from, uint64_t now_s, struct limiter_state *state)
{
	struct limiter_rate *const rates[] = { &state->requests, &state->tokens };

	for (uint32_t i = 0; i < COUNT_OF(rates); i++) {
		rates[i]->written = unpack_low(from, UNITS_BYTES);
		rates[i]->bursts[0] = unpack_low(from, UNITS_BYTES);
		from->at += RATES_SKIPPED;
	}
	for (uint32_t i = 0; i < COUNT_OF(rates); i++)
		rates[i]->bursts[1] = unpack_low(from, UNITS_BYTES);
	from->at += RATES_SKIPPED;
	for (uint32_t use = 0; use < 2; use++)
		for (uint32_t i = 0; i < COUNT_OF(rates); i++)
			rates[i]->ages[use] = read_age(from, now_s);
	from->at += 2 * NUMBER_BYTES;
}

bool limiter_read_state(const struct redisReply *reply, uint64_t wall_ns, struct limiter_state *out)
{
	enum {
		PERIOD = NUMBER_BYTES + 2 * AMOUNT_BYTES, /* top-up included */
		FIXED = LIMITER_EPOCH_BYTES + 2 * AMOUNT_BYTES + 2 * NUMBER_BYTES + 4 * PERIOD,
		ENTRY = LIMITER_WORKER_BYTES + 3 * NUMBER_BYTES,
	};
	struct limiter_state state = { 0 };
	uint32_t day = UINT32_MAX, month = UINT32_MAX; /* their places: none yet */

	if (reply->type == REDIS_REPLY_NIL) {
		*out = state;
		return true;
	}
	if (!is_string(reply) || reply->len < FIXED || (reply->len - FIXED) % ENTRY != 0)
		return false;
	struct unpacked from = { reply->str + LIMITER_EPOCH_BYTES };
	state.requests.ns = unpack_amount(&from);
	state.tokens.ns = unpack_amount(&from);
	from.at += 2 * NUMBER_BYTES; /* the sum of places, as of the last sweep */
	state.day = read_period(&from, quota_day(wall_ns / SEC), &day);
	state.month = read_period(&from, quota_month(wall_ns / SEC), &month);
	state.day_more = read_top_up(&from, day);
	state.month_more = read_top_up(&from, month);
	if (has_rates(&from, reply->str + reply->len))
		read_rates(&from, wall_ns / SEC, &state);
	state.places = read_places(&from, reply->str + reply->len, wall_ns / SEC);
	*out = state;
	return true;
}
