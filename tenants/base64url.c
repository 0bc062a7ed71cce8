#include "tenants/base64url.h"

enum { NO_DIGIT = 64 };

static uint32_t digit(char c)
{
	if (c >= 'A' && c <= 'Z')
		return (uint32_t)(c - 'A');
	if (c >= 'a' && c <= 'z')
		return (uint32_t)(c - 'a') + 26;
	if (c >= '0' && c <= '9')
		return (uint32_t)(c - '0') + 52;
	return c == '-' ? 62 : c == '_' ? 63 : NO_DIGIT;
}

size_t base64url_decode(struct slice text, void *out, size_t room)
{
	uint8_t *bytes = out;
	uint32_t bits = 0, bit_count = 0;
	size_t len = 0;

	for (size_t i = 0; i < text.len; i++) {
		const uint32_t value = digit(text.at[i]);
		if (value == NO_DIGIT)
			return SIZE_MAX;
		bits = bits << 6 | value;
		bit_count += 6;
		if (bit_count < 8)
			continue;
		if (len == room)
			return SIZE_MAX;
		bit_count -= 8;
		bytes[len++] = (uint8_t)(bits >> bit_count);
		bits &= (1U << bit_count) - 1;
	}
	/* Six bits are a digit that means nothing by itself; fewer are the rest of the last byte's digit. */
	return bit_count == 6 || bits != 0 ? SIZE_MAX : len;
}
