/* json_scan.h - byte loops of the JSON modules; private to codec/json_*.c.
 *
 * Eight bytes at a time in plain C. Nothing here reads outside [at, end). */
#ifndef CODEC_JSON_SCAN_H
#define CODEC_JSON_SCAN_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define SCAN_ONES 0x0101010101010101ull

/* Kept out of line, so that the common way needs few registers. */
#define SCAN_RARE __attribute__((noinline))

/* Eight bytes, the first one lowest on every machine. */
static inline uint64_t scan_load8(const char *at)
{
	uint64_t word;

	(void)memcpy(&word, at, sizeof(word));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	word = __builtin_bswap64(word);
#endif
	return word;
}

/* High bits of the bytes that end a run of plain string text: quote, backslash, control, non-ASCII.
 * Only the lowest bit is exact: a borrow may mark bytes above it. */
static inline uint64_t scan_special8(uint64_t word)
{
	return ((word - SCAN_ONES * 0x20) | ((word ^ SCAN_ONES * '"') - SCAN_ONES) |
		((word ^ SCAN_ONES * '\\') - SCAN_ONES) | word) &
	       SCAN_ONES * 0x80;
}

/* Past whole 16-byte blocks of plain string text; up to 15 plain bytes may be left. The compiler's
 * own vectors: two instructions' worth of SIMD wherever there is any, plain words elsewhere. */
static inline const char *scan_plain16(const char *at, const char *end)
{
	typedef signed char bytes __attribute__((vector_size(16)));
	typedef uint64_t words __attribute__((vector_size(16)));
	const bytes none = { 0 }, quote = none + '"', slash = none + '\\', space = none + ' ';

	for (; end - at >= 16; at += 16) {
		bytes block;
		(void)memcpy(&block, at, sizeof(block));
		/* signed: below the space are the controls and everything that is not ASCII */
		words special = (words)((block == quote) | (block == slash) | (block < space));
		if ((special[0] | special[1]) != 0)
			break;
	}
	return at;
}

static inline size_t scan_first(uint64_t mask)
{
	return (size_t)__builtin_ctzll(mask) >> 3;
}

static inline bool scan_is_space(char c)
{
	return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* Past white space: mostly there is none. Indentation goes eight spaces at a time. */
static inline const char *scan_space(const char *at, const char *end)
{
	while (at < end && (unsigned char)*at <= ' ' && scan_is_space(*at)) {
		at++;
		while (end - at >= 8 && scan_load8(at) == SCAN_ONES * ' ')
			at += 8;
	}
	return at;
}

static inline bool scan_is_digit(char c)
{
	return (unsigned char)(c - '0') < 10;
}

/* Of the hex digits one more than their values (json_string.c); 0: none. */
extern const uint8_t scan_hex_values[256] __attribute__((visibility("hidden")));

/* Of the letters that may stand behind a backslash, what they mean there; 0: none, or u (json_string.c). */
extern const char scan_meanings[256] __attribute__((visibility("hidden")));

/* Value of four hex digits, or negative. */
static inline int32_t scan_hex4(const char *at)
{
	const uint8_t *values = scan_hex_values;
	int32_t a = values[(unsigned char)at[0]], b = values[(unsigned char)at[1]];
	int32_t c = values[(unsigned char)at[2]], d = values[(unsigned char)at[3]];

	return a == 0 || b == 0 || c == 0 || d == 0
		       ? -1
		       : a * 0x1000 + b * 0x100 + c * 0x10 + d - 0x1111;
}

/* One character as UTF-8; the count of bytes, 1 to 4. */
static inline size_t scan_put_utf8(uint32_t code, char out[4])
{
	if (code < 0x80) {
		out[0] = (char)code;
		return 1;
	}
	if (code < 0x800) {
		out[0] = (char)(0xc0 | code >> 6);
		out[1] = (char)(0x80 | (code & 0x3f));
		return 2;
	}
	if (code < 0x10000) {
		out[0] = (char)(0xe0 | code >> 12);
		out[1] = (char)(0x80 | (code >> 6 & 0x3f));
		out[2] = (char)(0x80 | (code & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | code >> 18);
	out[1] = (char)(0x80 | (code >> 12 & 0x3f));
	out[2] = (char)(0x80 | (code >> 6 & 0x3f));
	out[3] = (char)(0x80 | (code & 0x3f));
	return 4;
}

/* The meaning of the escape at *at (a backslash; the escape is known to be valid), and *at past it;
 * the count of bytes in `out`. */
static inline size_t scan_unescape(const char **at, char out[4])
{
	const char *p = *at;

	*at = p + 2;
	switch (p[1]) {
	case 'b':
		out[0] = '\b';
		return 1;
	case 'f':
		out[0] = '\f';
		return 1;
	case 'n':
		out[0] = '\n';
		return 1;
	case 'r':
		out[0] = '\r';
		return 1;
	case 't':
		out[0] = '\t';
		return 1;
	case 'u':
		break;
	default: /* quote, backslash, slash */
		out[0] = p[1];
		return 1;
	}
	uint32_t code = (uint32_t)scan_hex4(p + 2);
	*at = p + 6;
	if (code >= 0xd800 && code < 0xdc00) {
		code = 0x10000 + ((code - 0xd800) << 10) + ((uint32_t)scan_hex4(p + 8) - 0xdc00);
		*at = p + 12;
	}
	return scan_put_utf8(code, out);
}

#endif
