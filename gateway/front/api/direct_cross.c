/* direct_cross.c - a caller of one API, and a provider of another format (codec/cross). */
#include "codec/cross/cross.h"
#include "codec/set.h"
#include "gateway/front/api/direct.h"

#include "codec/base/must.h"

static struct cross_names names_of(const struct direct_call *call)
{
	return (struct cross_names){
		.id = slice_of(call->ids.request_id, REQUEST_ID_HEX),
		.model = call->asked->request.at[API_MODEL].text,
		.created_s = call->ask.started_wall_ns / SEC,
		.input_tokens = sampling_count(&call->asked->view, call->ask.body.len),
	};
}

/* ---- the request ---- */

/* Where something stands that the core's reader has found: its numbers of messages are not the caller's. */
static void tell_place(struct fault *fault)
{
	static const struct slice front = SLICE_INIT("$.params."),
				  messages = SLICE_INIT("messages");

	fault->offset = FAULT_NO_OFFSET;
	if (slice_starts(fault->path, front))
		fault->path = slice_of(fault->path.at + front.len, fault->path.len - front.len);
	if (slice_starts(fault->path, messages))
		fault->path = messages;
}

enum err direct_cross_request(struct sampling_raw *raw, struct arena *into, struct fault *fault)
{
	struct direct_asked *asked = CONTAINER_OF(raw, struct direct_asked, raw);
	struct json_work *json = asked->call->host->json;
	struct sampling_request request;
	struct cross_request made;
	struct jsonrpc rpc;

	enum err err =
		cross_request_make(&asked->request, asked->tokens_max, json, into, &made, fault);
	if (err != ERR_OK)
		return err;
	err = sampling_read(made.body, REVISION_2025_11_25, NULL, json, into, &rpc, &request,
			    fault);
	if (err != ERR_OK) {
		tell_place(fault);
		return err;
	}
	request.prefer = asked->view.prefer;           /* which routing has gone by */
	request.tool_rounds = asked->view.tool_rounds; /* and policy by these */
	request.rounds_most = asked->view.rounds_most;
	request.adjustments |= made.adjustments;
	if (asked->request.api == API_CHAT) /* where each result is a message of its own */
		request.adjustments &= ~ADJUST_BIT(ADJUST_RESULTS_MERGED);
	asked->view = request;
	asked->schema = made.schema;
	asked->adjustments = request.adjustments;
	return ERR_OK;
}

/* ---- the answer ---- */

static void begin_stream(struct direct_call *call, struct cross_stream *s)
{
	const struct cross_names names = names_of(call);

	cross_stream_init(s, call->api, &names, call->asked->schema,
			  call->asked->request.usage_asked, &call->arena);
}

bool direct_cross_answer(struct direct_call *call, const struct sampling_outcome *outcome)
{
	const struct cross_names names = names_of(call);
	struct gather *body = &call->answer.body;

	if (call->stream == NULL) {
		cross_answer(body, call->api, &names, call->asked->schema, outcome->result);
	} else {
		struct cross_stream s;
		begin_stream(call, &s);
		if (!cross_stream_end(&s, outcome->result, false, body))
			return false;
	}
	return gather_done(body) == ERR_OK;
}

/* ---- a stream ---- */

/* Memory for the events of one piece is gone when they are added: a long answer has many. */
static void take(struct direct_call *call, const struct stream_delta *delta, struct arena *scratch)
{
	struct direct_stream *s = call->stream;
	struct gather events;

	gather_init(&events, scratch);
	s->broken = !cross_stream_delta(s->cross, delta, &events) || gather_done(&events) != ERR_OK;
	if (!s->broken && events.total != 0)
		direct_stream_add(call, &events);
}

void direct_cross_take(void *owner, const struct stream_delta *delta, nsec_t now)
{
	struct direct_call *call = owner;
	struct direct_stream *s = call->stream;
	struct arena scratch;

	(void)now;
	must(s != NULL);
	if (s->broken)
		return;
	if (s->cross == NULL) {
		s->cross = arena_take(&call->arena, sizeof(*s->cross));
		s->broken = s->cross == NULL;
		if (s->broken)
			return;
		begin_stream(call, s->cross);
	}
	arena_init(&scratch, call->host->arenas, REQUEST_ARENA_MAX);
	take(call, delta, &scratch);
	arena_give(&scratch);
}

struct slice direct_cross_end(struct direct_call *call, const struct sampling_outcome *outcome)
{
	struct gather events;

	gather_init(&events, &call->arena);
	if (!cross_stream_end(call->stream->cross, outcome->result, true, &events) ||
	    gather_done(&events) != ERR_OK)
		return slice_of(NULL, 0);
	return gather_flat(&events, &call->arena);
}
