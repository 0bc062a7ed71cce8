/* flow_stream.c - the provider's answer as a stream: whether to ask for one, and what comes of it
 * (codec/dialect/stream.h, contract/providers.md 2). */
#include "codec/set.h"
#include "gateway/flow/flow_steps.h"

#include "codec/base/must.h"

/* 3600 s * max_tokens / 128000 is over 10 minutes: so long no provider holds a connection on which
 * nothing is said, and some refuse to. */
enum { STREAM_TOKENS_OVER = 21333 };

static const struct stream_limits limits = { .answer_bytes_max = STREAM_ANSWER_MAX,
					     .event_bytes_max = STREAM_EVENT_MAX };

bool flow_stream_wanted(const struct flow *flow)
{
	const uint32_t most = flow->walk.verdict.max_tokens < flow->made->profile.max_output
				      ? flow->walk.verdict.max_tokens
				      : flow->made->profile.max_output;

	return flow->walk.dialect->stream != NULL && !flow->attempt.in_one_piece &&
	       (flow->ask->relay != SAMPLING_SILENT || most > STREAM_TOKENS_OVER);
}

/* ---- its head ---- */

static bool is_event_stream(struct slice content_type)
{
	if (slice_absent(content_type))
		return false;
	struct slice type = slice_trim(slice_cut(&content_type, ';'));
	return slice_eq_nocase(type, SLICE("text/event-stream"));
}

/* A copy that outlives the connection's buffer; without memory it was never sent. */
static void keep(struct flow *flow, struct slice *header)
{
	if (!slice_absent(*header))
		*header = arena_copy(flow->arena, *header);
}

static void keep_headers(struct flow *flow, struct provider_headers *headers)
{
	struct slice *const kept[] = { &headers->date,           &headers->retry_after,
				       &headers->retry_after_ms, &headers->should_retry,
				       &headers->request_id,     &headers->content_type };

	for (size_t i = 0; i < COUNT_OF(kept); i++)
		keep(flow, kept[i]);
	headers->rates = NULL; /* told already; when the stream ends they are old */
}

/* A host that does not know `stream`, or an error, answers in one piece. */
bool flow_stream_head(struct flow *flow, struct json_work *json, nsec_t now, uint64_t wall_ns)
{
	struct provider_answer *answer = &flow->call.answer;

	must_obj(flow, FLOW_MAGIC);
	must(flow->reading.stream != NULL);
	if (answer->status / 100 != 2 || !is_event_stream(answer->headers.content_type))
		return false;
	health_note_rates(&flow->walk.choice, &answer->headers, now, wall_ns);
	keep_headers(flow, &answer->headers);
	(void)memcpy(answer->chance, flow->ask->ids->chance, sizeof(answer->chance));
	stream_open(flow->reading.stream, flow->walk.dialect, &flow->made->encoded.decode, answer,
		    &limits, json, flow->arena);
	flow->reading.form = FLOW_STREAMING;
	if (flow->ask->raw != NULL && flow->ask->raw->begun_deadline != 0 && flow_may_relay(flow))
		flow->call.deadline = flow->ask->raw->begun_deadline;
	return true;
}

/* ---- its body ---- */

enum stream_state flow_stream_take(struct flow *flow, struct slice bytes, nsec_t now)
{
	must(flow->reading.form == FLOW_STREAMING);
	enum stream_state state = stream_feed(flow->reading.stream, bytes);
	const struct stream_progress *progress = &flow->reading.stream->progress;

	if (progress->begun && flow->reading.first_output_at == 0)
		flow->reading.first_output_at = now;
	return state;
}

bool flow_may_relay(const struct flow *flow)
{
	return flow->ask->relay == SAMPLING_DELTAS && flow->reading.form == FLOW_STREAMING &&
	       (flow->attempt.raw || stream_deltas_are_whole(&flow->made->encoded.decode));
}

size_t flow_stream_held(const struct flow *flow)
{
	return stream_held(flow->reading.stream, &limits);
}

/* ---- a stream that came as a whole ---- */

/* Behind a byte order mark and blank lines. */
static struct slice first_line(struct slice body)
{
	static const struct slice mark = SLICE_INIT("\xef\xbb\xbf");

	if (slice_starts(body, mark))
		body = slice_of(body.at + mark.len, body.len - mark.len);
	while (body.len != 0 && (body.at[0] == '\n' || body.at[0] == '\r'))
		body = slice_of(body.at + 1, body.len - 1);
	return body;
}

bool flow_stream_looks_so(struct slice body)
{
	static const struct slice fronts[] = { SLICE_INIT("data:"), SLICE_INIT("event:"),
					       SLICE_INIT("id:"), SLICE_INIT("retry:"),
					       SLICE_INIT(":") };
	const struct slice line = first_line(body);

	for (size_t i = 0; i < COUNT_OF(fronts); i++)
		if (slice_starts(line, fronts[i]))
			return true;
	return false;
}

enum err flow_stream_whole(struct flow *flow, const struct flow_env *env,
			   struct sampling_result *result, struct provider_failure *why)
{
	const struct provider_answer *answer = &flow->call.answer;

	if (flow->reading.stream == NULL)
		flow->reading.stream = stream_take(env->streams);
	if (flow->reading.stream == NULL)
		return ERR_BUSY;
	stream_open(flow->reading.stream, flow->walk.dialect, &flow->made->encoded.decode, answer,
		    &limits, env->json, flow->arena);
	flow->reading.form = FLOW_STREAMED;
	(void)stream_feed(flow->reading.stream, answer->body);
	enum err err = stream_end(flow->reading.stream, STREAM_ENDED, result, why);
	flow->attempt.in_one_piece = flow->attempt.in_one_piece || flow->reading.stream->too_large;
	return err;
}

enum err flow_stream_end(struct flow *flow, struct sampling_result *result,
			 struct provider_failure *why)
{
	const bool broke = flow->call.err != ERR_OK;

	must(flow->reading.form == FLOW_STREAMING);
	flow->reading.form = FLOW_STREAMED;
	enum err err =
		stream_end(flow->reading.stream, broke ? STREAM_BROKE : STREAM_ENDED, result, why);
	flow->attempt.in_one_piece = flow->attempt.in_one_piece || flow->reading.stream->too_large;
	if (err != ERR_OK && broke)
		why->blame = BLAME_ENDPOINT;
	return err;
}
