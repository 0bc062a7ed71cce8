/* json_names.h - which known member a key is; private to codec/. */
#ifndef CODEC_JSON_JSON_NAMES_H
#define CODEC_JSON_JSON_NAMES_H

#include "codec/json/json_read.h"

/* Index of the plain name that `raw` means, `count` if none. The likeliest names come first; only a
 * key that holds an escape is decoded. */
static inline size_t names_find(const struct slice *names, size_t count, struct slice raw)
{
	for (size_t i = 0; i < count; i++)
		if (raw.len == names[i].len && memcmp(raw.at, names[i].at, raw.len) == 0)
			return i;
	if (raw.len == 0 || memchr(raw.at, '\\', raw.len) == NULL)
		return count;
	for (size_t i = 0; i < count; i++)
		if (json_str_eq(raw, names[i]))
			return i;
	return count;
}

#endif
