/* direct_nowhere.c - paths that ask nobody: those by which clients look whether there is a server, and those that no API
 * here has. Nothing is forwarded by its path. */
#include "gateway/front/api/direct_now.h"

/* ---- HEAD /, HEAD /api/hello ---- */

static void write_hello(struct direct_call *call, const struct front_host *host)
{
	if (!direct_now_may_get(call, host))
		return;
	direct_begin_answer(call, 200, SLICE("application/json"));
	gather_lit(&call->answer.body, "{}");
	direct_now_end(call);
}

static const struct direct_now hello = { .write = write_hello };

static void *on_begin_hello(struct front_host *host, struct http_exchange *exchange,
			    const struct http_incoming *in, bool found)
{
	(void)found;
	return direct_now_begin(&hello, host, exchange, in);
}

static bool on_expects_hello(struct front_host *host, struct http_early *early,
			     const struct http_incoming *in, bool found)
{
	(void)found;
	return direct_now_expects(&hello, host, early, in);
}

const struct front direct_hello_front = {
	.record_bytes = sizeof(struct front_request),
	.begin = on_begin_hello,
	.expects = on_expects_hello,
	.gone = direct_now_never,
	.sent = direct_now_never,
};

/* ---- whatever else there is below /v1/ ---- */

static void write_nowhere(struct direct_call *call, const struct front_host *host)
{
	(void)direct_refuse_err(call, host->leaving ? ERR_DRAINING : ERR_NOT_FOUND);
}

static const struct direct_now nowhere_messages = { write_nowhere, &direct_messages_sampling };
static const struct direct_now nowhere_chat = { write_nowhere, &direct_chat_sampling };

static const struct direct_now *nowhere(const struct http_incoming *in)
{
	return api_is_anthropic(direct_now_api(in)) ? &nowhere_messages : &nowhere_chat;
}

static void *on_begin_nowhere(struct front_host *host, struct http_exchange *exchange,
			      const struct http_incoming *in, bool found)
{
	(void)found;
	return direct_now_begin(nowhere(in), host, exchange, in);
}

static bool on_expects_nowhere(struct front_host *host, struct http_early *early,
			       const struct http_incoming *in, bool found)
{
	(void)found;
	return direct_now_expects(nowhere(in), host, early, in);
}

const struct front direct_nowhere_front = {
	.record_bytes = sizeof(struct front_request),
	.begin = on_begin_nowhere,
	.expects = on_expects_nowhere,
	.gone = direct_now_never,
	.sent = direct_now_never,
};
