#include "tenants/base64url.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* One more than a character's value; 0: it is outside of the alphabet. */
static const uint8_t digits[256] = {
	['A'] = 1,  ['B'] = 2,  ['C'] = 3,  ['D'] = 4,  ['E'] = 5,  ['F'] = 6,  ['G'] = 7,
	['H'] = 8,  ['I'] = 9,  ['J'] = 10, ['K'] = 11, ['L'] = 12, ['M'] = 13, ['N'] = 14,
	['O'] = 15, ['P'] = 16, ['Q'] = 17, ['R'] = 18, ['S'] = 19, ['T'] = 20, ['U'] = 21,
	['V'] = 22, ['W'] = 23, ['X'] = 24, ['Y'] = 25, ['Z'] = 26, ['a'] = 27, ['b'] = 28,
	['c'] = 29, ['d'] = 30, ['e'] = 31, ['f'] = 32, ['g'] = 33, ['h'] = 34, ['i'] = 35,
	['j'] = 36, ['k'] = 37, ['l'] = 38, ['m'] = 39, ['n'] = 40, ['o'] = 41, ['p'] = 42,
	['q'] = 43, ['r'] = 44, ['s'] = 45, ['t'] = 46, ['u'] = 47, ['v'] = 48, ['w'] = 49,
	['x'] = 50, ['y'] = 51, ['z'] = 52, ['0'] = 53, ['1'] = 54, ['2'] = 55, ['3'] = 56,
	['4'] = 57, ['5'] = 58, ['6'] = 59, ['7'] = 60, ['8'] = 61, ['9'] = 62, ['-'] = 63,
	['_'] = 64,
};

/* Over 63: it is outside of the alphabet. */
static uint32_t digit(char c)
{
	return (uint32_t)digits[(uint8_t)c] - 1;
}

/* The last two or three characters. */
static size_t decode_end(struct slice text, uint8_t *bytes)
{
	const uint32_t a = digit(text.at[0]), b = digit(text.at[1]);
	const uint32_t c = text.len == 3 ? digit(text.at[2]) : 0;
	const uint32_t bits = a << 18 | b << 12 | c << 6;

	if ((a | b | c) > 63 || (bits & (text.len == 3 ? 0xff : 0xffff)) != 0)
		return SIZE_MAX;
	bytes[0] = (uint8_t)(bits >> 16);
	if (text.len == 3)
		bytes[1] = (uint8_t)(bits >> 8);
	return text.len - 1;
}

size_t base64url_decode(struct slice text, void *out, size_t room)
{
	const size_t rest = text.len % 4, len = text.len / 4 * 3 + (rest == 0 ? 0 : rest - 1);
	uint8_t *bytes = out;
	const char *at = text.at;

	if (rest == 1 || len > room)
		return SIZE_MAX;
	for (size_t left = text.len / 4; left != 0; left--, at += 4, bytes += 3) {
		const uint32_t a = digit(at[0]), b = digit(at[1]), c = digit(at[2]),
			       d = digit(at[3]);
		if ((a | b | c | d) > 63)
			return SIZE_MAX;
		bytes[0] = (uint8_t)(a << 2 | b >> 4);
		bytes[1] = (uint8_t)(b << 4 | c >> 2);
		bytes[2] = (uint8_t)(c << 6 | d);
	}
	if (rest != 0 && decode_end(slice_of(at, rest), bytes) == SIZE_MAX)
		return SIZE_MAX;
	return len;
}

void base64url_encode(const void *bytes, size_t len, char *out)
{
	const uint8_t *at = bytes;

	for (; len >= 3; len -= 3, at += 3) {
		const uint32_t bits = (uint32_t)at[0] << 16 | (uint32_t)at[1] << 8 | at[2];
		*out++ = alphabet[bits >> 18];
		*out++ = alphabet[bits >> 12 & 63];
		*out++ = alphabet[bits >> 6 & 63];
		*out++ = alphabet[bits & 63];
	}
	if (len == 0)
		return;
	const uint32_t bits = (uint32_t)at[0] << 16 | (len == 2 ? (uint32_t)at[1] << 8 : 0);
	*out++ = alphabet[bits >> 18];
	*out++ = alphabet[bits >> 12 & 63];
	if (len == 2)
		*out++ = alphabet[bits >> 6 & 63];
}
