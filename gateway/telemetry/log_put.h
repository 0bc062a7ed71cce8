/* log_put.h - how numbers and texts are put into a line of the log, which is JSON whatever they say. For
 * log.c only, in one unit with it: the line is what costs most of a request's own work.
 *
 * Every put_ writes at `at`, where there is room, and returns where the next one writes. */
#ifndef GATEWAY_TELEMETRY_LOG_PUT_H
#define GATEWAY_TELEMETRY_LOG_PUT_H

#include "codec/base/hex.h"
#include "codec/base/must.h"
#include "codec/base/slice.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* One field's text may take that much of a line, escapes included; longer texts end in "...". So no
 * field can push the others out of the line. */
enum { FIELD_MAX = 400 };

/* ---- numbers ------------------------------------------------------------------------------- */

static char *put(char *at, const char *text, size_t len)
{
	memcpy(at, text, len);
	return at + len;
}
#define put_lit(at, literal) put((at), "" literal, sizeof(literal) - 1)

/* Two digits of each number below a hundred. */
static const char digit_pairs[] = "0001020304050607080910111213141516171819"
				  "2021222324252627282930313233343536373839"
				  "4041424344454647484950515253545556575859"
				  "6061626364656667686970717273747576777879"
				  "8081828384858687888990919293949596979899";

/* Exactly `width` digits, zeros in front; two at a time, because dividing is what costs. */
static inline char *put_padded(char *at, uint64_t value, size_t width)
{
	size_t n = width;

	for (; n >= 2; value /= 100)
		memcpy(at + (n -= 2), digit_pairs + value % 100 * 2, 2);
	if (n == 1)
		*at = (char)('0' + value % 10);
	return at + width;
}

static char *put_long(char *at, uint64_t value)
{
	size_t width = 4;

	if (value < 1000) { /* most of these: statuses, milliseconds, tokens */
		*at = (char)('0' + value / 100);
		return put_padded(at + 1, value % 100, 2);
	}
	for (uint64_t bound = 10000; value >= bound && width < 20; bound *= 10)
		width++;
	return put_padded(at, value, width);
}

/* Most numbers of a line are small. */
static inline char *put_uint(char *at, uint64_t value)
{
	if (value >= 100)
		return put_long(at, value);
	memcpy(at, digit_pairs + value * 2 + (value < 10), 2);
	return at + (value < 10 ? 1 : 2);
}

/* value / 10^places */
static inline char *put_decimal(char *at, uint64_t value, uint64_t unit, size_t places)
{
	at = put_uint(at, value / unit);
	*at++ = '.';
	return put_padded(at, value % unit, places);
}

static char *put_hex(char *at, uint64_t value)
{
	hex_put(at, (uint32_t)(value >> 32));
	hex_put(at + 8, (uint32_t)value);
	return at + 16;
}

/* A score lies within 0..1, a cost is a few; anything else would be our bug, and the line stays JSON all
 * the same. */
static char *put_score(char *at, double score)
{
	if (!(score >= 0 && score < 1e9))
		return put_lit(at, "null");
	return put_decimal(at, (uint64_t)(score * 1e6 + 0.5), 1000000, 6);
}

/* ---- texts from outside --------------------------------------------------------------------- */

/* Bytes of the UTF-8 sequence at the front of `s`, 0 when it is not one (RFC 3629). */
static size_t utf8_len(struct slice s)
{
	const uint8_t *b = (const uint8_t *)s.at;
	size_t len = b[0] < 0x80 ? 1 : b[0] < 0xc2 ? 0 : b[0] < 0xe0 ? 2 : b[0] < 0xf0 ? 3 : 4;

	if (len == 0 || b[0] > 0xf4 || len > s.len)
		return 0;
	for (size_t i = 1; i < len; i++)
		if ((b[i] & 0xc0) != 0x80)
			return 0;
	if ((b[0] == 0xe0 && b[1] < 0xa0) || (b[0] == 0xed && b[1] > 0x9f) ||
	    (b[0] == 0xf0 && b[1] < 0x90) || (b[0] == 0xf4 && b[1] > 0x8f))
		return 0;
	return len;
}

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* The code unit of the escape \uXXXX at the front of `s`, -1 when there is none. */
static int escape_unit(struct slice s)
{
	int unit = 0;

	if (s.len < 6 || s.at[0] != '\\' || s.at[1] != 'u')
		return -1;
	for (size_t i = 2; i < 6; i++) {
		if (!is_hex(s.at[i]))
			return -1;
		unit = unit * 16 + (s.at[i] <= '9' ? s.at[i] - '0' : (s.at[i] | 0x20) - 'a' + 10);
	}
	return unit;
}

/* Bytes of the JSON escape at the front of `s`, 0 when it is none; both halves of a surrogate pair,
 * so that a text is never cut between them. */
static size_t escape_len(struct slice s)
{
	int unit = escape_unit(s);

	if (s.len < 2 || s.at[0] != '\\')
		return 0;
	if (s.at[1] != 'u')
		return memchr("\"\\/bfnrt", s.at[1], 8) == NULL ? 0 : 2;
	if (unit < 0xd800 || unit > 0xdfff)
		return unit < 0 ? 0 : 6;
	if (unit > 0xdbff || s.len < 12)
		return 0;
	return (escape_unit(slice_of(s.at + 6, s.len - 6)) & ~0x3ff) == 0xdc00 ? 12 : 0;
}

/* One character of `s` in JSON; *used bytes of it. A raw string's escapes are kept. */
static char *put_char(char *at, struct slice s, bool raw, size_t *used)
{
	uint8_t c = (uint8_t)s.at[0];
	size_t len = raw ? escape_len(s) : 0;

	*used = 1;
	if (len == 0 && c == '"')
		return put_lit(at, "\\\"");
	if (len == 0 && c == '\\')
		return put_lit(at, "\\\\");
	if (c < 0x20 || c == 0x7f) {
		at = put_lit(at, "\\u00");
		*at++ = "0123456789abcdef"[c >> 4];
		*at++ = "0123456789abcdef"[c & 15];
		return at;
	}
	if (len == 0)
		len = utf8_len(s);
	if (len == 0)
		return put_lit(at, "\\ufffd");
	*used = len;
	return put(at, s.at, len);
}

static bool is_clean(char c)
{
	return (uint8_t)c >= 0x20 && (uint8_t)c < 0x7f && c != '"' && c != '\\';
}

/* Sixteen bytes in a vector register of any machine; as signed bytes, what is beyond ASCII lies below
 * all else. */
typedef uint64_t two_words __attribute__((vector_size(16)));
typedef int8_t sixteen __attribute__((vector_size(16)));

static inline bool are_clean(two_words words)
{
	const sixteen bytes = (sixteen)words;
	const two_words clean =
		(two_words)((bytes > 0x1f) & (bytes != 0x7f) & (bytes != '"') & (bytes != '\\'));

	return (clean[0] & clean[1]) == UINT64_MAX;
}

static inline bool copy_sixteen(char *to, const char *from)
{
	two_words words;

	memcpy(&words, from, sizeof(words));
	if (are_clean(words))
		memcpy(to, &words, sizeof(words));
	return are_clean(words);
}

/* 8 to 15 bytes: the first eight and the last ones. */
static inline bool copy_some(char *to, const char *from, size_t len)
{
	uint64_t first, last;

	memcpy(&first, from, sizeof(first));
	memcpy(&last, from + len - sizeof(last), sizeof(last));
	if (!are_clean((two_words){ first, last }))
		return false;
	memcpy(to, &first, sizeof(first));
	memcpy(to + len - sizeof(last), &last, sizeof(last));
	return true;
}

/* 4 to 7 bytes, likewise. */
static inline bool copy_few(char *to, const char *from, size_t len)
{
	uint32_t first, last;

	memcpy(&first, from, sizeof(first));
	memcpy(&last, from + len - sizeof(last), sizeof(last));
	const uint64_t both = (uint64_t)last << 32 | first;
	if (!are_clean((two_words){ both, both }))
		return false;
	memcpy(to, &first, sizeof(first));
	memcpy(to + len - sizeof(last), &last, sizeof(last));
	return true;
}

/* Copies clean bytes from the front of `s`, many at a time; returns how many. */
static inline __attribute__((always_inline)) size_t put_clean(char *at, const char *full,
							      struct slice s)
{
	const size_t room = full > at ? (size_t)(full - at) : 0;
	const size_t len = s.len < room ? s.len : room;
	size_t i = 0;

	while (i + 16 <= len && copy_sixteen(at + i, s.at + i))
		i += 16;
	if (len >= 16 && i + 16 > len) { /* takes bytes along that were copied already */
		if (copy_sixteen(at + len - 16, s.at + len - 16))
			return len;
	} else if (len >= 8 && len < 16) {
		if (copy_some(at, s.at, len))
			return len;
	} else if (len >= 4 && len < 8 && copy_few(at, s.at, len)) {
		return len;
	}
	while (i < len && is_clean(s.at[i])) {
		at[i] = s.at[i];
		i++;
	}
	return i;
}

/* What is left of a text whose next byte needs more than copying, up to its end. */
static __attribute__((noinline)) char *put_unclean(char *at, const char *full, struct slice s,
						   bool raw)
{
	while (s.len != 0 && at < full) {
		size_t used;
		at = put_char(at, s, raw, &used);
		s = slice_of(s.at + used, s.len - used);
		used = put_clean(at, full, s);
		at += used;
		s = slice_of(s.at + used, s.len - used);
	}
	return s.len == 0 ? at : put_lit(at, "...");
}

/* The quoted text; at most FIELD_MAX bytes. */
static char *put_text(char *at, struct slice s, bool raw)
{
	const char *full = at + FIELD_MAX - 16; /* the longest character, dots and a quote */

	*at++ = '"';
	const size_t used = put_clean(at, full, s);
	at += used;
	if (used < s.len)
		at = put_unclean(at, full, slice_of(s.at + used, s.len - used), raw);
	*at++ = '"';
	return at;
}

/* The same for a name of ours (log.h). */
static inline char *put_own(char *at, struct slice s)
{
	must(s.len <= SLICE_SHORT);
	*at = '"';
	slice_put_short(at + 1, s);
	at[1 + s.len] = '"';
	return at + s.len + 2;
}

#endif
