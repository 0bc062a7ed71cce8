/* front_once.h - the header Idempotency-Key, which all fronts take that have copies (sampling_ask.idempotency_key). */
#ifndef GATEWAY_FRONT_FRONT_ONCE_H
#define GATEWAY_FRONT_FRONT_ONCE_H

#include "codec/base/slice.h"

/* Visible ASCII, and not too much of it; absent: none is as good. */
static inline bool front_key_is_good(struct slice key)
{
	enum { KEY_MAX = 128 };

	if (slice_absent(key))
		return true;
	for (size_t i = 0; i < key.len; i++)
		if (key.at[i] < '!' || key.at[i] > '~')
			return false;
	return key.len != 0 && key.len <= KEY_MAX;
}

#endif
