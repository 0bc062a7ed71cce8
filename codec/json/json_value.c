/* json_value.c - the second half of json_read.h: what tokens mean. */
#include "codec/json/json_read.h"

#include "codec/base/must.h"
#include "codec/json/json_number.h"
#include "codec/json/json_scan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static inline bool has_escape(struct slice raw)
{
	return raw.len != 0 && memchr(raw.at, '\\', raw.len) != NULL;
}

/* Walks the meaning of a raw string piece by piece: one character, decoded. */
struct meaning {
	const char *at, *end;
	char out[4];
	size_t count, used; /* bytes in `out`, and of these the ones taken */
};

/* The next byte, or -1 at the end. */
static inline int meaning_next(struct meaning *m)
{
	if (m->used < m->count)
		return (unsigned char)m->out[m->used++];
	if (m->at == m->end)
		return -1;
	if (*m->at != '\\')
		return (unsigned char)*m->at++;
	m->count = scan_unescape(&m->at, m->out);
	m->used = 1;
	return (unsigned char)m->out[0];
}

static struct meaning meaning_of(struct slice raw)
{
	return (struct meaning){ .at = raw.at, .end = raw.len == 0 ? raw.at : raw.at + raw.len };
}

bool json_str_eq(struct slice raw, struct slice plain)
{
	if (raw.len < plain.len) /* an escape is never shorter than what it means */
		return false;
	if (raw.len == plain.len) /* so it would be longer than what it means if it had one */
		return slice_eq(raw, plain) && !has_escape(plain);
	if (!has_escape(raw))
		return false;
	struct meaning m = meaning_of(raw);
	for (size_t i = 0; i < plain.len; i++)
		if (meaning_next(&m) != (unsigned char)plain.at[i])
			return false;
	return meaning_next(&m) < 0;
}

bool json_str_same(struct slice a, struct slice b)
{
	if (slice_eq(a, b))
		return true;
	if (!has_escape(a) && !has_escape(b))
		return false;
	struct meaning left = meaning_of(a), right = meaning_of(b);
	int c;
	do {
		c = meaning_next(&left);
		if (c != meaning_next(&right))
			return false;
	} while (c >= 0);
	return true;
}

struct slice json_str_plain(struct slice raw, struct arena *into)
{
	if (!has_escape(raw))
		return raw;
	char *bytes = arena_take(into, raw.len), *out = bytes;
	if (bytes == NULL)
		return (struct slice){ NULL, 0 };
	const char *at = raw.at, *end = raw.at + raw.len;
	while (at < end) {
		const char *escape = memchr(at, '\\', (size_t)(end - at));
		size_t run = (size_t)((escape == NULL ? end : escape) - at);
		(void)memcpy(out, at, run);
		out += run;
		at += run;
		if (escape != NULL) {
			char piece[4];
			size_t count = scan_unescape(&at, piece);
			(void)memcpy(out, piece, count);
			out += count;
		}
	}
	return slice_of(bytes, (size_t)(out - bytes));
}

struct slice json_str_fit(struct slice raw, char *buffer, size_t room)
{
	struct meaning m = meaning_of(raw);
	size_t len = 0;
	int c;

	if (!has_escape(raw))
		return raw;
	while ((c = meaning_next(&m)) >= 0) {
		if (len == room)
			return (struct slice){ NULL, 0 };
		buffer[len++] = (char)c;
	}
	return slice_of(buffer, len);
}

/* ---- numbers ---- */

/* Far outside what any type holds, and far from overflow when added to a text's length. */
enum { EXPONENT_LIMIT = 1 << 30 };

static int64_t exponent_of(const char *at, const char *end)
{
	bool negative = at < end && *at == '-';
	int64_t value = 0;

	if (at < end && (*at == '-' || *at == '+'))
		at++;
	for (; at < end; at++)
		if (value < EXPONENT_LIMIT)
			value = value * 10 + (*at - '0');
	return negative ? -value : value;
}

struct json_number json_number_of(struct slice raw)
{
	struct json_number n = { .negative = raw.len != 0 && raw.at[0] == '-' };
	const char *at = raw.at + n.negative, *end = raw.at + raw.len;
	const char *dot = NULL, *stop = at;

	for (; stop < end && (*stop | 0x20) != 'e'; stop++)
		if (*stop == '.')
			dot = stop;
	int64_t exponent = stop < end ? exponent_of(stop + 1, end) : 0;
	const char *point = dot == NULL ? stop : dot;
	n.first = at;
	while (n.first < stop && (*n.first == '0' || *n.first == '.'))
		n.first++;
	n.last = stop;
	while (n.last > n.first && (n.last[-1] == '0' || n.last[-1] == '.'))
		n.last--;
	if (n.first == n.last)
		return n;
	bool dot_inside = dot != NULL && dot > n.first && dot < n.last;
	n.count = (size_t)(n.last - n.first) - dot_inside;
	n.exponent = exponent + (n.first < point ? point - n.first : point + 1 - n.first);
	return n;
}

/* Up to 18 digits and nothing else. */
static inline bool int_short(struct slice raw, int64_t *out)
{
	int64_t value = 0;

	if (raw.len > 18)
		return false;
	for (size_t i = 0; i < raw.len; i++) {
		if (!scan_is_digit(raw.at[i]))
			return false;
		value = value * 10 + (raw.at[i] - '0');
	}
	*out = value;
	return true;
}

bool json_to_int64(struct slice raw, int64_t *out)
{
	if (int_short(raw, out))
		return true;
	struct json_number n = json_number_of(raw);
	uint64_t value = 0, limit = (uint64_t)INT64_MAX + n.negative;

	if (n.count == 0) {
		*out = 0;
		return true;
	}
	if (n.exponent < (int64_t)n.count || n.exponent > 19)
		return false; /* a fraction, or too large */
	for (const char *at = n.first; at < n.last; at++)
		if (*at != '.')
			value = value * 10 + (uint64_t)(*at - '0'); /* 19 digits fit */
	for (int64_t zeros = n.exponent - (int64_t)n.count; zeros > 0; zeros--)
		value *= 10;
	if (value > limit)
		return false;
	*out = n.negative ? (int64_t)(0 - value) : (int64_t)value;
	return true;
}

bool json_is_integer(struct slice raw)
{
	struct json_number n = json_number_of(raw);

	return n.count == 0 || n.exponent >= (int64_t)n.count;
}

/* 15 digits and a power of ten up to the 22nd are exact in a double, so that their product or quotient
 * is rounded once, which is rounded right. */
static bool double_exact(const struct json_number *n, double *out)
{
	enum { DIGITS_EXACT = 15, POWER_EXACT = 22 };
	static const double powers[POWER_EXACT + 1] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,
							1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
							1e12, 1e13, 1e14, 1e15, 1e16, 1e17,
							1e18, 1e19, 1e20, 1e21, 1e22 };
	int64_t power = n->exponent - (int64_t)n->count, digits = 0;

	if (n->count > DIGITS_EXACT || power < -POWER_EXACT || power > POWER_EXACT)
		return false;
	for (const char *at = n->first; at < n->last; at++)
		if (*at != '.')
			digits = digits * 10 + (*at - '0');
	*out = power < 0 ? (double)digits / powers[-power] : (double)digits * powers[power];
	if (n->negative)
		*out = -*out;
	return true;
}

/* "0.25", "7" and their like: 15 digits at most around a dot. Exact, as above. */
static bool double_short(struct slice raw, double *out)
{
	enum { SHORT_MAX = 16 };
	static const double powers[SHORT_MAX] = { 1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
						  1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15 };
	size_t dot = raw.len - 1;
	int64_t digits = 0;

	if (raw.len > SHORT_MAX || raw.at[0] == '-')
		return false;
	for (size_t i = 0; i < raw.len; i++) {
		if (scan_is_digit(raw.at[i]))
			digits = digits * 10 + (raw.at[i] - '0');
		else if (raw.at[i] == '.')
			dot = i;
		else
			return false;
	}
	if (dot + 1 == raw.len && raw.len == SHORT_MAX)
		return false; /* 16 digits */
	*out = (double)digits / powers[raw.len - 1 - dot];
	return true;
}

double json_to_double(struct slice raw)
{
	enum { DIGITS_MAX = 40 }; /* more than a double tells apart; a dropped rest leaves a 1 */
	double exact;

	if (double_short(raw, &exact))
		return exact;
	struct json_number n = json_number_of(raw);
	char text[DIGITS_MAX + 32], *out = text;
	int64_t exponent = n.exponent;

	if (n.count == 0)
		return n.negative ? -0.0 : 0.0;
	if (double_exact(&n, &exact))
		return exact;
	if (n.negative)
		*out++ = '-';
	size_t taken = 0;
	for (const char *at = n.first; at < n.last && taken < DIGITS_MAX; at++)
		if (*at != '.') {
			*out++ = *at;
			taken++;
		}
	if (taken < n.count) {
		*out++ = '1';
		taken++;
	}
	/* an integer and an exponent: strtod's decimal point depends on the locale */
	(void)snprintf(out, 24, "e%lld", (long long)(exponent - (int64_t)taken));
	return strtod(text, NULL);
}
