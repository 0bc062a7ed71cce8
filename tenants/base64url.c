#include "tenants/base64url.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

enum { VALID = 0x80 };

/* A character's value, and VALID; 0: it is outside of the alphabet. */
static const uint8_t digits[256] = {
#define D(character, value) [character] = VALID | value
	D('A', 0),  D('B', 1),  D('C', 2),  D('D', 3),  D('E', 4),  D('F', 5),  D('G', 6),
	D('H', 7),  D('I', 8),  D('J', 9),  D('K', 10), D('L', 11), D('M', 12), D('N', 13),
	D('O', 14), D('P', 15), D('Q', 16), D('R', 17), D('S', 18), D('T', 19), D('U', 20),
	D('V', 21), D('W', 22), D('X', 23), D('Y', 24), D('Z', 25), D('a', 26), D('b', 27),
	D('c', 28), D('d', 29), D('e', 30), D('f', 31), D('g', 32), D('h', 33), D('i', 34),
	D('j', 35), D('k', 36), D('l', 37), D('m', 38), D('n', 39), D('o', 40), D('p', 41),
	D('q', 42), D('r', 43), D('s', 44), D('t', 45), D('u', 46), D('v', 47), D('w', 48),
	D('x', 49), D('y', 50), D('z', 51), D('0', 52), D('1', 53), D('2', 54), D('3', 55),
	D('4', 56), D('5', 57), D('6', 58), D('7', 59), D('8', 60), D('9', 61), D('-', 62),
	D('_', 63),
#undef D
};

/* What VALID adds to four digits. */
static const uint32_t valid_bits =
	(uint32_t)VALID * ((UINT32_C(1) << 18) + (1 << 12) + (1 << 6) + 1);

/* Four characters, from the highest bits of 24 to the lowest; UINT32_MAX: one is outside of the alphabet. */
static uint32_t decode_four(const char *at)
{
	const uint32_t a = digits[(uint8_t)at[0]], b = digits[(uint8_t)at[1]];
	const uint32_t c = digits[(uint8_t)at[2]], d = digits[(uint8_t)at[3]];

	if ((a & b & c & d & VALID) == 0)
		return UINT32_MAX;
	return (a << 18) + (b << 12) + (c << 6) + d - valid_bits;
}

/* The last two or three characters. */
static bool decode_end(struct slice text, uint8_t *bytes)
{
	const char four[4] = { text.at[0], text.at[1], text.len == 3 ? text.at[2] : 'A', 'A' };
	const uint32_t bits = decode_four(four);

	if (bits == UINT32_MAX || (bits & (text.len == 3 ? 0xff : 0xffff)) != 0)
		return false;
	bytes[0] = (uint8_t)(bits >> 16);
	if (text.len == 3)
		bytes[1] = (uint8_t)(bits >> 8);
	return true;
}

size_t base64url_decode(struct slice text, void *out, size_t room)
{
	const size_t rest = text.len % 4, len = text.len / 4 * 3 + (rest == 0 ? 0 : rest - 1);
	uint8_t *bytes = out;
	const char *at = text.at;

	if (rest == 1 || len > room)
		return SIZE_MAX;
	for (size_t left = text.len / 4; left != 0; left--, at += 4, bytes += 3) {
		const uint32_t bits = decode_four(at);
		if (bits == UINT32_MAX)
			return SIZE_MAX;
		bytes[0] = (uint8_t)(bits >> 16);
		bytes[1] = (uint8_t)(bits >> 8);
		bytes[2] = (uint8_t)bits;
	}
	return rest == 0 || decode_end(slice_of(at, rest), bytes) ? len : SIZE_MAX;
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
