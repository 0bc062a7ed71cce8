/* provider_head.h - request line and headers of a provider request. */
#ifndef GATEWAY_PROVIDER_HEAD_H
#define GATEWAY_PROVIDER_HEAD_H

#include "gateway/config.h"

/* The head in `into`, ending in the empty line; absent when memory is exhausted. `key` absent: no
 * credentials are sent. Which header carries the version is in
 * the dialect's row, and that of the key unless the provider says otherwise (contract/providers.md 2, 3,
 * 5). */
MUST_USE struct slice provider_head(const struct provider *provider,
				    const struct endpoint *endpoint, struct slice key,
				    struct slice version, size_t body_bytes, struct arena *into);

#endif
