/* api_headers.h - the heads of the direct APIs: which of a request's headers go to the provider, and what SDKs read of an
 * answer's: whether and when to try again, and what is left of a limit. */
#ifndef CODEC_API_API_HEADERS_H
#define CODEC_API_API_HEADERS_H

#include "codec/api/api.h"

/* Whether a header of a request, by its name in lower case, goes to a provider of the same format as it is: Anthropic's
 * versions and betas, and what else is its own, but for what names an account (workspace, user profile) or asks it to be
 * careless. Credentials never do, nor anything of Chat's. */
bool api_header_passes(enum api api, struct slice name);

/* `name` in lower case, static. */
struct api_header {
	struct slice name, value;
};

enum { API_RETRY_HEADERS = 3, API_RATE_HEADERS = 12 };

/* retry-after (whole seconds, rounded up), retry-after-ms (exact), x-should-retry. A wait of more than 60 s is one that
 * some SDKs sleep through and others ignore: then they are told not to retry, and get the true time. `wait_ms` below 0: not
 * known. `never`: nothing is to be tried again. How many of `out` were set; without memory the wait is left out. */
size_t api_retry_headers(int64_t wait_ms, bool never, struct arena *into,
			 struct api_header out[API_RETRY_HEADERS]);

/* What is left of a limit. */
struct api_rate {
	bool known;
	uint64_t limit, remaining;
	uint64_t reset_ms; /* from now until all of it is there again */
};

/* The headers of both families, of requests and of tokens: those of the caller's own tightest limits, never the
 * provider's. `wall_s`: now, seconds since the epoch. How many of `out` were set. */
size_t api_rate_headers(const struct api_rate *requests, const struct api_rate *tokens,
			uint64_t wall_s, struct arena *into,
			struct api_header out[API_RATE_HEADERS]);

#endif
