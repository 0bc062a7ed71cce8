/* globs.h - lists of globs over names, as plans have them. Pure. */
#ifndef TENANTS_GLOBS_H
#define TENANTS_GLOBS_H

#include "codec/base/slice.h"

/* Whether one of `count` globs matches. */
static inline bool globs_match(const struct slice *globs, uint32_t count, struct slice name)
{
	for (uint32_t i = 0; i < count; i++)
		if (slice_glob(globs[i], name))
			return true;
	return false;
}

/* Whether it may stand for several names. */
static inline bool globs_is_one(struct slice text)
{
	return text.len != 0 &&
	       (memchr(text.at, '*', text.len) != NULL || memchr(text.at, '?', text.len) != NULL);
}

#endif
