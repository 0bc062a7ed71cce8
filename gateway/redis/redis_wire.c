#include "gateway/redis/redis_wire.h"

#include "codec/base/clock.h"
#include "codec/base/must.h"
#include "tenants/quota.h"

#include <endian.h>
#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

enum { BUFFER_AT_START = 16384, NUMBER_ROOM = 20, LINE_ROOM = NUMBER_ROOM + 3 };
enum { NUMBER_BYTES = 4, AMOUNT_BYTES = 2 * NUMBER_BYTES, UNITS_BYTES = 5, SECOND_BYTES = 3 };

#define PAIR_BASE UINT64_C(1000000000)

/* ---- requests ---- */

void redis_buffer_clear(struct redis_buffer *buffer)
{
	buffer->len = 0;
	buffer->failed = false;
}

void redis_buffer_fini(struct redis_buffer *buffer)
{
	if (buffer->at != NULL)
		explicit_bzero(buffer->at, buffer->room); /* it may have had a password */
	free(buffer->at);
	*buffer = (struct redis_buffer){ .most = buffer->most };
}

static bool make_room(struct redis_buffer *buffer, size_t more)
{
	size_t room = buffer->room == 0 ? BUFFER_AT_START : buffer->room;

	if (buffer->failed || more > buffer->most - buffer->len) {
		buffer->failed = true;
		return false;
	}
	while (room < buffer->len + more)
		room *= 2;
	if (room != buffer->room) {
		char *grown = realloc(buffer->at, room);
		buffer->failed = grown == NULL;
		if (buffer->failed)
			return false;
		buffer->at = grown;
		buffer->room = room;
	}
	return true;
}

/* The digits of `number` at the end of `text`; returns where they begin. */
static size_t digits_of(char text[NUMBER_ROOM], uint64_t number)
{
	size_t at = NUMBER_ROOM;

	do {
		text[--at] = (char)('0' + number % 10);
		number /= 10;
	} while (number != 0);
	return at;
}

/* '*' or '$', a number, the line's end: at `to`, which has room for it. Returns how long it is. */
static size_t write_line(char *to, char type, uint64_t number)
{
	char text[NUMBER_ROOM];
	const size_t at = digits_of(text, number), digits = NUMBER_ROOM - at;

	to[0] = type;
	(void)memcpy(to + 1, text + at, digits);
	(void)memcpy(to + 1 + digits, "\r\n", 2);
	return 1 + digits + 2;
}

void redis_put_count(struct redis_buffer *buffer, uint32_t count)
{
	if (make_room(buffer, LINE_ROOM))
		buffer->len += write_line(buffer->at + buffer->len, '*', count);
}

void redis_put(struct redis_buffer *buffer, struct slice argument)
{
	if (argument.len > buffer->most || !make_room(buffer, 2 * LINE_ROOM + argument.len)) {
		buffer->failed = true;
		return;
	}
	char *to = buffer->at + buffer->len;
	to += write_line(to, '$', argument.len);
	if (argument.len != 0)
		(void)memcpy(to, argument.at, argument.len);
	(void)memcpy(to + argument.len, "\r\n", 2);
	buffer->len = (size_t)(to - buffer->at) + argument.len + 2;
}

void redis_put_number(struct redis_buffer *buffer, uint32_t number)
{
	char text[NUMBER_ROOM];
	const size_t at = digits_of(text, number);

	redis_put(buffer, slice_of(text + at, NUMBER_ROOM - at));
}

size_t redis_number_text(char *out, uint32_t number)
{
	char text[NUMBER_ROOM];
	const size_t at = digits_of(text, number);

	(void)memcpy(out, text + at, NUMBER_ROOM - at);
	return NUMBER_ROOM - at;
}

void redis_put_pack(struct redis_buffer *buffer, const struct redis_pack *pack)
{
	redis_put(buffer, slice_of((const char *)pack->at, pack->len));
}

/* ---- packed numbers ---- */

void redis_pack_bytes(struct redis_pack *pack, const void *bytes, size_t len)
{
	must(len <= sizeof(pack->at) - pack->len);
	(void)memcpy(pack->at + pack->len, bytes, len);
	pack->len += len;
}

static void pack_low(struct redis_pack *pack, uint64_t value, size_t bytes)
{
	value = htole64(value);
	redis_pack_bytes(pack, &value, bytes);
}

void redis_pack_byte(struct redis_pack *pack, uint8_t value)
{
	pack_low(pack, value, 1);
}

void redis_pack_number(struct redis_pack *pack, uint32_t value)
{
	pack_low(pack, value, NUMBER_BYTES);
}

void redis_pack_amount(struct redis_pack *pack, uint64_t value)
{
	const uint64_t high = value / PAIR_BASE;

	pack_low(pack, high < UINT32_MAX ? high : UINT32_MAX, NUMBER_BYTES);
	pack_low(pack, value % PAIR_BASE, NUMBER_BYTES);
}

void redis_pack_units(struct redis_pack *pack, uint64_t units)
{
	must(units < UINT64_C(1) << 8 * UNITS_BYTES);
	pack_low(pack, units, UNITS_BYTES);
}

void redis_pack_no_place(struct redis_pack *pack)
{
	pack_low(pack, 0, NUMBER_BYTES);
	pack_low(pack, UINT32_MAX, NUMBER_BYTES);
}

void redis_pack_unbound(struct redis_pack *pack)
{
	pack_low(pack, UINT32_MAX, NUMBER_BYTES);
	pack_low(pack, 0, NUMBER_BYTES);
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
	return code == REDIS_OVER_DAY || code == REDIS_OVER_MONTH;
}

static bool about_money(uint32_t code)
{
	return code == REDIS_DAY || code == REDIS_MONTH || over_budget(code);
}

bool redis_read_verdict(const struct redisReply *reply, uint32_t scopes, struct redis_verdict *out)
{
	enum { FIXED = 1 + 1 + 2 * NUMBER_BYTES + AMOUNT_BYTES };

	must(scopes >= 1 && scopes <= REDIS_VERDICT_SCOPES);
	if (!is_string(reply) || reply->len < FIXED)
		return false;
	struct unpacked from = { reply->str };
	struct redis_verdict verdict = { .code = (uint32_t)unpack_low(&from, 1) };
	verdict.scope = (uint32_t)unpack_low(&from, 1);
	if (verdict.code >= REDIS_VERDICTS || verdict.scope >= scopes ||
	    (size_t)reply->len != FIXED + (over_budget(verdict.code) ? (size_t)AMOUNT_BYTES : 0) +
					  scopes * REDIS_BIRTH_BYTES)
		return false;
	verdict.over = (uint32_t)unpack_low(&from, NUMBER_BYTES);
	verdict.server_s = unpack_low(&from, NUMBER_BYTES);
	uint64_t *amount = about_money(verdict.code) ? &verdict.left : &verdict.wait_ns;
	*amount = unpack_amount(&from);
	if (over_budget(verdict.code))
		verdict.budget = unpack_amount(&from);
	(void)memcpy(verdict.births, from.at, scopes * REDIS_BIRTH_BYTES);
	*out = verdict;
	return true;
}

static bool read_digits(const struct redisReply *reply, uint64_t *out)
{
	char *end;

	if (!is_string(reply) || reply->len == 0 || reply->len > 18) /* below 10^18 */
		return false;
	*out = strtoull(reply->str, &end, 10);
	return end == reply->str + reply->len && reply->str[0] != '-';
}

bool redis_read_time(const struct redisReply *reply, uint64_t *wall_ns)
{
	uint64_t s, us;

	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 ||
	    !read_digits(reply->element[0], &s) || !read_digits(reply->element[1], &us) ||
	    s >= UINT64_MAX / SEC || us >= SEC / USEC)
		return false;
	*wall_ns = s * SEC + us * USEC;
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
		from->at += REDIS_WORKER_BYTES + NUMBER_BYTES;
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

static void read_rates(struct unpacked *from, uint64_t now_s, struct redis_state *state)
{
	struct redis_rate *const rates[] = { &state->requests, &state->tokens };

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

bool redis_read_state(const struct redisReply *reply, uint64_t wall_ns, struct redis_state *out)
{
	enum {
		PERIOD = NUMBER_BYTES + 2 * AMOUNT_BYTES, /* top-up included */
		FIXED = REDIS_BIRTH_BYTES + 2 * AMOUNT_BYTES + 2 * NUMBER_BYTES + 4 * PERIOD,
		ENTRY = REDIS_WORKER_BYTES + 3 * NUMBER_BYTES,
	};
	struct redis_state state = { 0 };
	uint32_t day = UINT32_MAX, month = UINT32_MAX; /* their places: none yet */

	if (reply->type == REDIS_REPLY_NIL) {
		*out = state;
		return true;
	}
	if (!is_string(reply) || reply->len < FIXED || (reply->len - FIXED) % ENTRY != 0)
		return false;
	struct unpacked from = { reply->str + REDIS_BIRTH_BYTES };
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
