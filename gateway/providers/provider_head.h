/* provider_head.h - request line and headers of a provider request. */
#ifndef GATEWAY_PROVIDERS_PROVIDER_HEAD_H
#define GATEWAY_PROVIDERS_PROVIDER_HEAD_H

#include "gateway/base/config.h"

/* What differs from call to call. */
struct provider_call {
	struct slice key;         /* absent: no credentials are sent */
	struct slice version;     /* of dialects that send one */
	struct slice traceparent; /* absent or empty: no such header */
	size_t body_bytes;
};

/* Its beginning, which all calls of an endpoint have in common; for endpoint->head, when all else of the
 * endpoint and of its provider is there. Absent when memory is exhausted. */
MUST_USE struct slice provider_head_begin(const struct provider *provider,
					  const struct endpoint *endpoint, struct arena *into);

/* The head in `into`, ending in the empty line; absent when memory is exhausted. Which header carries the
 * version is in the dialect's row, and that of the key unless the provider says otherwise
 * (contract/providers.md 2, 3, 5). */
MUST_USE struct slice provider_head(const struct provider *provider,
				    const struct endpoint *endpoint,
				    const struct provider_call *call, struct arena *into);

/* The same of a call that asks how many tokens a request has. Only where the dialect has a count_path. */
MUST_USE struct slice provider_count_head(const struct provider *provider,
					  const struct endpoint *endpoint,
					  const struct provider_call *call, struct arena *into);

#endif
