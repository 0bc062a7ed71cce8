#include "bench/load/load_stamps.h"

#include <inttypes.h>
#include <string.h>

enum { DIGITS = 16, STAMP = DIGITS + 2 };

/* 0: there is none. */
static uint64_t stamp_at(const char *at)
{
	uint64_t value = 0;

	for (size_t i = 1; i <= DIGITS; i++) {
		if (at[i] < '0' || at[i] > '9')
			return 0;
		value = value * 10 + (uint64_t)(at[i] - '0');
	}
	return at[STAMP - 1] == '>' ? value : 0;
}

void load_stamps_find(FILE *out, const char *bytes, size_t len, uint64_t now_us)
{
	const char *end = bytes + len, *at = bytes;

	while (end - at >= STAMP &&
	       (at = memchr(at, '<', (size_t)(end - at) - STAMP + 1)) != NULL) {
		const uint64_t written = stamp_at(at++);
		if (written != 0)
			(void)fprintf(out, "%" PRIu64 "\n", now_us - written);
	}
}
