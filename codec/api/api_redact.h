/* api_redact.h - a provider's own words about a request that it has refused.
 *
 * Clients act on the wording of a 400, 413 or 422: they compact, drop a beta, or ask for fewer tokens. So in the same format
 * it goes back as it is, but for what it says about the operator's account. */
#ifndef CODEC_API_API_REDACT_H
#define CODEC_API_API_REDACT_H

#include "codec/api/api.h"

enum { API_REDACT_MAX = 64 * 1024 };

/* The body without secrets: it stands in `into`. Taken out are `secrets` (plain, ASCII case ignored: keys, the endpoint's
 * host), organisations and projects (org-…, proj_…, wrkspc_…, projects/…), ARNs and account numbers of twelve digits; all
 * else keeps its meaning, and what has no escapes its bytes. Absent: it is larger than API_REDACT_MAX, or no JSON in that
 * API's shape of an error, or memory is exhausted; then the gateway's own words are to be used. */
MUST_USE struct slice api_redact(enum api api, struct slice body, const struct slice *secrets,
				 size_t count, struct json_work *work, struct arena *into);

/* The same of an event of a stream: its data as an event of that API, and nothing else of its lines. More than API_REDACT_EVENT_MAX bytes are too large. */
enum { API_REDACT_EVENT_MAX = 2 * API_REDACT_MAX };
MUST_USE struct slice api_redact_event(enum api api, struct slice event,
				       const struct slice *secrets, size_t count,
				       struct json_work *work, struct arena *into);

#endif
