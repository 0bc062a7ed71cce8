/* hex.h - numbers and bytes as lower-case hex digits. */
#ifndef CODEC_BASE_HEX_H
#define CODEC_BASE_HEX_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

/* The eight digits of `value`, that of its lowest four bits in the lowest byte. */
static inline uint64_t hex_digits(uint32_t value)
{
	const uint64_t ones = UINT64_MAX / 255;
	uint64_t four = value; /* bits to a byte, in the end */

	four = (four | four << 16) & UINT64_C(0x0000ffff0000ffff);
	four = (four | four << 8) & UINT64_C(0x00ff00ff00ff00ff);
	four = (four | four << 4) & UINT64_C(0x0f0f0f0f0f0f0f0f);
	const uint64_t letters = (four + ones * 6) >> 4 & ones; /* 1 where it is 10 or more */
	return four + ones * '0' + letters * ('a' - '0' - 10);
}

/* Writes the eight digits of `value` to `at`, the highest first. */
static inline void hex_put(char at[8], uint32_t value)
{
	const uint64_t digits = htobe64(hex_digits(value));

	memcpy(at, &digits, sizeof(digits));
}

/* Writes two digits for each of `len` bytes to `at`, and returns where they end. */
static inline char *hex_put_bytes(char *at, const uint8_t *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		*at++ = "0123456789abcdef"[bytes[i] >> 4];
		*at++ = "0123456789abcdef"[bytes[i] & 15];
	}
	return at;
}

#endif
