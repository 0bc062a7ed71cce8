/* khash.h - in the place of the header that libh2o's http2_internal.h includes and its package does
 * not bring: the table of a connection's streams, laid out as klib 0.2.8 does in libh2o 2.2.5.
 *
 * Streams are only looked for when one is to be ended from our side. That may look at every place: no table has many, and
 * how they are chosen does not matter then. */
#ifndef GATEWAY_H2O_KHASH_H
#define GATEWAY_H2O_KHASH_H

#include <stdint.h>

typedef uint32_t khiter_t; /* h2o's spelling */

/* Of each place two bits say whether it was never taken, or was given up. */
#define KHASH_MAP_INIT_INT64(name, value)                                                      \
	struct khash_of_##name {                                                               \
		uint32_t places, taken, used, most;                                            \
		uint32_t *flags;                                                               \
		uint64_t *keys;                                                                \
		value *values;                                                                 \
	};                                                                                     \
	static inline khiter_t khash_find_##name(const struct khash_of_##name *table,          \
						 uint64_t key)                                 \
	{                                                                                      \
		khiter_t at = 0;                                                               \
		while (at < table->places &&                                                   \
		       ((table->flags[at / 16] >> at % 16 * 2 & 3) || table->keys[at] != key)) \
			at++;                                                                  \
		return at;                                                                     \
	}
#define khash_t(name) struct khash_of_##name
#define kh_get(name, table, key) khash_find_##name(table, key)
#define kh_end(table) ((table)->places)
#define kh_val(table, at) ((table)->values[at])

#endif
