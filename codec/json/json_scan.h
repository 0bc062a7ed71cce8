/* json_scan.h - byte loops of readers; private to codec/.
 *
 * Eight bytes at a time in plain C. Nothing here reads outside [at, end). */
#ifndef CODEC_JSON_JSON_SCAN_H
#define CODEC_JSON_JSON_SCAN_H

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

/* Past whole 16-byte blocks with neither byte; vectors as above. Long runs go four blocks at a time. */
static inline const char *scan_neither16(const char *at, const char *end, char one, char other)
{
	typedef char bytes __attribute__((vector_size(16)));
	typedef uint64_t words __attribute__((vector_size(16)));
	const bytes none = { 0 }, a = none + one, b = none + other;

	for (; end - at >= 64; at += 64) {
		bytes blocks[4];
		(void)memcpy(blocks, at, sizeof(blocks));
		const words found = (words)((blocks[0] == a) | (blocks[0] == b) | (blocks[1] == a) |
					    (blocks[1] == b) | (blocks[2] == a) | (blocks[2] == b) |
					    (blocks[3] == a) | (blocks[3] == b));
		if ((found[0] | found[1]) != 0)
			break;
	}
	for (; end - at >= 16; at += 16) {
		bytes block;
		(void)memcpy(&block, at, sizeof(block));
		const words found = (words)((block == a) | (block == b));
		if ((found[0] | found[1]) != 0)
			break;
	}
	return at;
}

/* At the next byte that is one of both, or at `end`. */
static inline const char *scan_either(const char *at, const char *end, char one, char other)
{
	at = scan_neither16(at, end, one, other);
	for (; end - at >= 8; at += 8) {
		const uint64_t word = scan_load8(at);
		const uint64_t a = word ^ SCAN_ONES * (unsigned char)one;
		const uint64_t b = word ^ SCAN_ONES * (unsigned char)other;
		const uint64_t found =
			(((a - SCAN_ONES) & ~a) | ((b - SCAN_ONES) & ~b)) & SCAN_ONES * 0x80;
		if (found != 0)
			return at + scan_first(found); /* the lowest bit is exact */
	}
	while (at < end && *at != one && *at != other)
		at++;
	return at;
}

/* At the next quote or backslash, or at `end`. */
static inline const char *scan_string_end(const char *at, const char *end)
{
	return scan_either(at, end, '"', '\\');
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

/* Whether a number, true, false or null ends in front of it, in text that is not judged. */
static inline bool scan_ends_token(char c)
{
	return scan_is_space(c) || c == ',' || c == ':' || c == '}' || c == ']' || c == '{' ||
	       c == '[' || c == '"';
}

static inline bool scan_is_digit(char c)
{
	return (unsigned char)(c - '0') < 10;
}

/* Of the hex digits one more than their values; 0: none. */
extern const uint8_t scan_hex_values[256] __attribute__((visibility("hidden")));

/* Of the letters that may stand behind a backslash, what they mean there; 0: none, or u. */
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

/* Value of four characters that are known to be hex digits. */
static inline uint32_t scan_hex4_good(const char *at)
{
	uint32_t word = (uint32_t)(unsigned char)at[0] << 24 |
			(uint32_t)(unsigned char)at[1] << 16 | (uint32_t)(unsigned char)at[2] << 8 |
			(unsigned char)at[3];

	word = (word & 0x0f0f0f0f) +
	       (word >> 6 & 0x01010101) * 9; /* letters follow 0x40 and 0x60 */
	word = (word | word >> 4) & 0x00ff00ff;
	return (word | word >> 8) & 0xffff;
}

/* Bytes of the UTF-8 character at `at`; 0: there is none. */
static inline size_t scan_utf8_len(const char *at, const char *end)
{
	const unsigned char lead = (unsigned char)*at;
	const size_t len = lead < 0x80                   ? 1
			   : lead >= 0xc2 && lead < 0xe0 ? 2
			   : lead >= 0xe0 && lead < 0xf0 ? 3
			   : lead >= 0xf0 && lead < 0xf5 ? 4
							 : 0;

	if (len == 0 || (size_t)(end - at) < len)
		return 0;
	for (size_t i = 1; i < len; i++)
		if (((unsigned char)at[i] & 0xc0) != 0x80)
			return 0;
	const unsigned char second = len > 1 ? (unsigned char)at[1] : 0;
	if ((lead == 0xe0 && second < 0xa0) || (lead == 0xed && second >= 0xa0) ||
	    (lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second >= 0x90))
		return 0;
	return len;
}

/* One character as UTF-8, the first byte lowest; of how many bytes, 1 to 4, in *count. */
static inline uint32_t scan_utf8(uint32_t code, size_t *count)
{
	*count = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
	switch (*count) {
	case 1:
		return code;
	case 2:
		return 0x80c0 | code >> 6 | (code & 0x3f) << 8;
	case 3:
		return 0x8080e0 | code >> 12 | (code >> 6 & 0x3f) << 8 | (code & 0x3f) << 16;
	default:
		return 0x808080f0 | code >> 18 | (code >> 12 & 0x3f) << 8 |
		       (code >> 6 & 0x3f) << 16 | (code & 0x3f) << 24;
	}
}

/* The meaning of the escape at *at (a backslash; the escape is known to be valid), as scan_utf8 has it, and *at
 * past it. */
static inline uint32_t scan_meaning(const char **at, size_t *count)
{
	const char *p = *at;
	const char simple = scan_meanings[(unsigned char)p[1]];

	if (simple != '\0') {
		*at = p + 2;
		*count = 1;
		return (uint32_t)simple;
	}
	uint32_t code = scan_hex4_good(p + 2);
	*at = p + 6;
	if (code >= 0xd800 && code < 0xdc00) {
		code = 0x10000 + ((code - 0xd800) << 10) + (scan_hex4_good(p + 8) - 0xdc00);
		*at = p + 12;
	}
	return scan_utf8(code, count);
}

/* The same to `out`, where four bytes are written; how many of them count. */
static inline size_t scan_unescape(const char **at, char out[4])
{
	size_t count;
	uint32_t bytes = scan_meaning(at, &count);

	for (int i = 0; i < 4; i++)
		out[i] = (char)(bytes >> (8 * i));
	return count;
}

#endif
