/* api_date.h - dates of the direct APIs; private to codec/api. */
#ifndef CODEC_API_API_DATE_H
#define CODEC_API_API_DATE_H

#include <stddef.h>
#include <stdint.h>

enum { API_DATE_MAX = 40 };

/* Seconds since the epoch as RFC 3339 in UTC, with a NUL behind. How long it is, without that. */
size_t api_date(char out[API_DATE_MAX], uint64_t at_s);

#endif
