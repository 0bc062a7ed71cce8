/* json_number.h - a number's text taken apart; private to codec/. */
#ifndef CODEC_JSON_JSON_NUMBER_H
#define CODEC_JSON_JSON_NUMBER_H

#include "codec/base/slice.h"

/* 0.`digits` x 10^exponent without leading or trailing zero digits; the digits are in [first, last) of
 * the text, with perhaps a dot among them. Exponents beyond some 10^9 are cut off there. */
struct json_number {
	bool negative;
	const char *first, *last;
	size_t count; /* digits, the dot not counted; 0 means zero */
	int64_t exponent;
};

/* `raw` is the text of a valid number. */
struct json_number json_number_of(struct slice raw);

#endif
