#include "gateway/front/api/direct_now.h"

enum api direct_now_api(const struct http_incoming *in)
{
	const bool anthropic = slice_starts(front_path_of(in->path), SLICE("/v1/messages/")) ||
			       !slice_absent(http_find_header(in, SLICE("anthropic-version"))) ||
			       !slice_absent(http_find_header(in, SLICE("x-api-key")));

	return anthropic ? API_MESSAGES : API_CHAT;
}

static void report(const struct direct_now *now, struct direct_call *call)
{
	if (now->row != NULL)
		sampling_refused(call->host->core, &call->ask, now->row, call, call->wrote);
}

static struct slice body_of(struct direct_call *call)
{
	return gather_flat(&call->answer.body, &call->arena);
}

void *direct_now_begin(const struct direct_now *now, struct front_host *host,
		       struct http_exchange *exchange, const struct http_incoming *in)
{
	struct direct_call call;
	const struct direct_answer *answer = &call.answer;

	arena_init_in(&call.arena, host->arenas, REQUEST_ARENA_MAX, in->room, in->room_bytes);
	direct_start(&call, direct_now_api(in), host, exchange, in);
	now->write(&call, host);
	http_refuse(exchange, answer->status, answer->fields, answer->field_count, body_of(&call));
	report(now, &call);
	arena_give(&call.arena);
	http_drop_body(exchange);
	return NULL;
}

bool direct_now_expects(const struct direct_now *now, struct front_host *host,
			struct http_early *early, const struct http_incoming *in)
{
	struct direct_call call;
	const struct direct_answer *answer = &call.answer;

	arena_init(&call.arena, host->arenas, REQUEST_ARENA_MAX);
	direct_start(&call, direct_now_api(in), host, NULL, in);
	now->write(&call, host);
	http_refuse_early(early, answer->status, answer->fields, answer->field_count,
			  body_of(&call));
	report(now, &call);
	arena_give(&call.arena);
	return false;
}

void direct_now_never(void *request)
{
	(void)request;
}

bool direct_now_may_get(struct direct_call *call, const struct front_host *host)
{
	const struct slice method = call->in->method;

	call->allow = SLICE("GET, HEAD");
	if (host->leaving)
		return direct_refuse_err(call, ERR_DRAINING);
	return slice_eq(method, SLICE("GET")) || slice_eq(method, SLICE("HEAD")) ||
	       direct_refuse_err(call, ERR_HTTP_METHOD);
}

void direct_now_end(struct direct_call *call)
{
	if (gather_done(&call->answer.body) != ERR_OK)
		(void)direct_refuse_err(call, ERR_BUSY);
}
