/* front_caller.h - what all fronts ask of a request's head before they read its body: origin, media type, caller, and
 * whether the front is open to it. */
#ifndef GATEWAY_FRONT_FRONT_CALLER_H
#define GATEWAY_FRONT_FRONT_CALLER_H

#include "gateway/front/front.h"

/* Whether a page of that Origin may ask (identity.origins); a request without Origin is no page's. */
bool front_origin_allowed(const struct config *config, struct slice origin);

/* Whether a Content-Type is application/json, whatever its parameters. Absent: it is not. */
bool front_is_json(struct slice content_type);

/* Whether a Content-Encoding says that the body is not as it stands (RFC 9110, 8.4): nothing is decoded here. */
bool front_is_coded(struct slice content_encoding);

/* Takes the credentials out of a request (Authorization: Bearer, or the certificate) and finds the caller; its texts are
 * copied to `into`. `resource`: as in struct credentials. *shown borrows from `in` and `resource`. `wall_s`: when the
 * request came. False: *why says why not. */
MUST_USE bool front_find_caller(const struct front_host *host, const struct http_incoming *in,
				struct slice resource, uint64_t wall_s, struct arena *into,
				struct credentials *shown, struct caller *caller,
				struct caller_refusal *why);

/* Whether the plan of a caller and the listener that it came by have that front (FRONT_*); else ERR_FRONT_FORBIDDEN. */
static inline bool front_is_open(const struct front_host *host, const struct http_incoming *in,
				 const struct plan *plan, uint8_t front)
{
	return (plan->fronts & host->config->listen[in->listener].fronts & front) != 0;
}

#endif
