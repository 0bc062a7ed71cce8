/* khash.h - in the place of the header that libh2o's http2_internal.h includes and its package does
 * not bring. Of the table of a connection's streams only that it is a pointer matters here; the one
 * function of h2o's that looks into it, which nobody calls, finds nothing. */
#ifndef GATEWAY_H2O_KHASH_H
#define GATEWAY_H2O_KHASH_H

typedef unsigned khiter_t; /* h2o's spelling */

#define KHASH_MAP_INIT_INT64(name, value) \
	struct khash_of_##name {          \
		value *values;            \
	};
#define khash_t(name) struct khash_of_##name
#define kh_get(name, table, key) ((void)(table), (void)(key), 0u)
#define kh_end(table) ((void)(table), 0u)
#define kh_val(table, at) ((table)->values[at])

#endif
