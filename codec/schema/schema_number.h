/* schema_number.h - numbers compared by their texts, as exactly as they are written; private to codec/.
 *
 * All arguments are texts of valid numbers, of any length. Only exponents beyond some 10^9 are taken for
 * that. */
#ifndef CODEC_SCHEMA_SCHEMA_NUMBER_H
#define CODEC_SCHEMA_SCHEMA_NUMBER_H

#include "codec/base/slice.h"

/* Less than, equal to or greater than 0. */
int number_order(struct slice a, struct slice b);

/* The same with a number of things. */
int number_order_count(struct slice a, size_t count);

/* Whether it has no fraction: 1.0 and 1e2 have none. */
bool number_is_whole(struct slice raw);

enum number_multiple { NUMBER_MULTIPLE, NUMBER_NO_MULTIPLE, NUMBER_NOT_TOLD };

/* Whether `a` is a multiple of `of`. Not told when `of` is not above 0, or has more than 18 digits. */
enum number_multiple number_multiple_of(struct slice a, struct slice of);

/* Numbers of the same value have the same one. */
uint64_t number_hash(struct slice raw);

#endif
