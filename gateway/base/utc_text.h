/* utc_text.h - a second of the wall clock as ISO 8601 has it. Pure. */
#ifndef GATEWAY_BASE_UTC_TEXT_H
#define GATEWAY_BASE_UTC_TEXT_H

#include <stdint.h>

enum { UTC_TEXT = 19 };

/* "2026-01-31T23:59:59", without the zone and without an end. */
void utc_text(uint64_t second, char out[UTC_TEXT]);

#endif
