/* direct_count.c - `POST /v1/messages/count_tokens`: how many tokens a request has.
 *
 * A count goes through the core like a sampling (gateway/flow/flow_count.c says what is different there), so that who may
 * ask, for which model, with what tools and content, and where it goes to is decided by the same code. A provider's number
 * passes as it is; where none can be had there is an estimate, which the answer says (direct_answer.c). */
#include "gateway/front/api/direct.h"

static void report(const void *owner, struct log_request *line)
{
	direct_report(owner, line);
	line->rpc = "count_tokens";
	line->usage.known = false; /* nothing was used */
}

const struct sampling_front direct_count_sampling = {
	.name = "messages",
	.digest = direct_digest,
	.done = direct_done,
	.report = report,
};

/* ---- from HTTP ---- */

static const struct direct_kind count = { API_COUNT, &direct_count_front, &direct_count_sampling };

static void *on_begin(struct front_host *host, struct http_exchange *exchange,
		      const struct http_incoming *in, bool found)
{
	(void)found;
	return direct_begin(&count, host, exchange, in);
}

static bool on_expects(struct front_host *host, struct http_early *early,
		       const struct http_incoming *in, bool found)
{
	(void)found;
	return direct_expects(&count, host, early, in);
}

const struct front direct_count_front = {
	.record_bytes = sizeof(struct direct_call),
	.begin = on_begin,
	.expects = on_expects,
	.gone = direct_gone,
	.sent = direct_sent,
};
