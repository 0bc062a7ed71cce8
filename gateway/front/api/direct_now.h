/* direct_now.h - requests of the direct APIs that are answered at once, without the core: lists of models, and paths that
 * nobody has. The answer leaves as a copy, so that nothing is kept of the request. */
#ifndef GATEWAY_FRONT_API_DIRECT_NOW_H
#define GATEWAY_FRONT_API_DIRECT_NOW_H

#include "gateway/front/api/direct.h"

struct direct_now {
	/* Writes call->answer; call->wrote is set where it refuses. */
	void (*write)(struct direct_call *call, const struct front_host *host);
	/* For the log line and the counters; NULL: it has none. */
	const struct sampling_front *row;
};

/* Whose shape errors have: the path says it, else the headers by which Anthropic's clients are known. */
enum api direct_now_api(const struct http_incoming *in);

/* As front.begin and .expects. */
void *direct_now_begin(const struct direct_now *now, struct front_host *host,
		       struct http_exchange *exchange, const struct http_incoming *in);
bool direct_now_expects(const struct direct_now *now, struct front_host *host,
			struct http_early *early, const struct http_incoming *in);

/* As front.gone and .sent, which never come. */
void direct_now_never(void *request);

/* Refuses whatever is neither GET nor HEAD, and what comes while the gateway leaves. */
MUST_USE bool direct_now_may_get(struct direct_call *call, const struct front_host *host);

/* A whole answer of 200 in JSON, what was written into call->answer.body. */
void direct_now_end(struct direct_call *call);

extern const struct front direct_models_front, direct_hello_front, direct_nowhere_front;

#endif
