/* line_front.h - a front that is as small as one can be, for tests of the core's door: lines of text, of nobody's protocol,
 * without HTTP. It includes sampling.h and nothing else of the gateway.
 *
 * What it is told it writes down, a line each, in `out`. */
#ifndef TESTS_SUPPORT_LINE_FRONT_H
#define TESTS_SUPPORT_LINE_FRONT_H

#include "gateway/sampling/sampling.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* What a request in a provider's own format has that costs extra. */
struct line_money {
	bool cached_1h, fetches;
	uint64_t image_bytes;
	bool dear; /* the next two count */
	struct sampling_extra most, cost;
	const char *refused; /* the path of what no model takes; NULL: nothing */
};

struct line_call {
	struct sampling_call *call; /* NULL: over, or refused before it began */
	struct arena arena;
	struct sampling_ids ids;
	struct credentials shown;
	struct caller caller;
	struct sampling_ask ask;
	struct sampling_raw raw;
	struct sampling_request request;
	struct message message;
	struct block block;
	struct slice raw_body; /* what raw.write sends */
	uint64_t raw_output_most;
	const struct line_money *money;
	bool keeps_up; /* else it pauses after each piece */
	uint32_t dones;
	size_t len;
	char out[8192];
};

__attribute__((format(printf, 2, 3))) static inline void line_put(struct line_call *call,
								  const char *format, ...)
{
	va_list args;

	va_start(args, format);
	const int len =
		vsnprintf(call->out + call->len, sizeof(call->out) - call->len, format, args);
	va_end(args);
	must(len >= 0 && (size_t)len < sizeof(call->out) - call->len);
	call->len += (size_t)len;
}

static void line_digest(void *owner, struct sha256_sum *sum)
{
	const struct line_call *call = owner;

	sha256_add(sum, SLICE("line:"));
	sha256_add(sum, call->block.text.text);
}

static enum err line_known(void *owner, bool there, uint32_t revision, struct fault *fault)
{
	(void)fault;
	line_put(owner, "session %s %u\n", there ? "there" : "gone", revision);
	return ERR_OK;
}

static void line_admitted(void *owner, nsec_t now)
{
	(void)now;
	line_put(owner, "admitted\n");
}

static void line_progress(void *owner, uint64_t output_bytes, nsec_t now)
{
	(void)now;
	line_put(owner, "progress %llu\n", (unsigned long long)output_bytes);
}

static void line_told(struct line_call *call)
{
	if (!call->keeps_up)
		sampling_pause(call->call);
}

static void line_delta(void *owner, const struct stream_delta *delta, nsec_t now)
{
	static const char *const kinds[] = { [STREAM_DELTA_TEXT] = "text",
					     [STREAM_DELTA_CALL] = "call",
					     [STREAM_DELTA_ARGS] = "args",
					     [STREAM_DELTA_VALUE] = "value" };
	struct line_call *call = owner;
	const struct slice text = delta->kind == STREAM_DELTA_CALL ? delta->name : delta->text;

	(void)now;
	line_put(call, "%s %u %.*s\n", kinds[delta->kind], delta->block, (int)text.len, text.at);
	line_told(call);
}

static bool line_raw(void *owner, struct slice bytes, nsec_t now)
{
	struct line_call *call = owner;

	(void)now;
	line_put(call, "%.*s", (int)bytes.len, bytes.at);
	line_told(call);
	return true;
}

static struct slice line_keep(void *owner, const struct sampling_outcome *outcome)
{
	struct line_call *call = owner;

	if (outcome->end == SAMPLING_RESULT)
		return arena_copy(&call->arena, outcome->result->blocks[0].text);
	return arena_copy(&call->arena, slice_str(err_info(outcome->fault.err)->reason));
}

static void line_done(void *owner, const struct sampling_outcome *outcome)
{
	struct line_call *call = owner;
	const struct result_block *block;

	call->dones++;
	switch (outcome->end) {
	case SAMPLING_RESULT:
		block = outcome->result->blocks;
		line_put(call, "result %.*s%s\n", (int)block->text.len, block->text.at,
			 outcome->relayed ? " relayed" : "");
		if (outcome->answer != NULL)
			line_put(call, "answer %u %.*s\n", outcome->answer->status,
				 (int)outcome->answer->body.len, outcome->answer->body.at);
		return;
	case SAMPLING_REFUSED:
		line_put(call, "refused %s%s%s%s\n", err_info(outcome->fault.err)->reason,
			 outcome->data.limit != NULL ? " " : "",
			 outcome->data.limit != NULL ? outcome->data.limit : "",
			 outcome->relayed ? " relayed" : "");
		return;
	case SAMPLING_COPY:
		line_put(call, "copy %.*s\n", (int)outcome->copy.len, outcome->copy.at);
		return;
	case SAMPLING_NO_SAMPLE:
		line_put(call, "nothing\n");
		return;
	case SAMPLING_CANCELLED:
		line_put(call, "cancelled\n");
		return;
	}
}

static void line_report(const void *owner, struct log_request *line)
{
	(void)owner;
	line->rpc = "line";
}

static const struct sampling_front line_front = {
	.name = "line",
	.digest = line_digest,
	.known = line_known,
	.admitted = line_admitted,
	.progress = line_progress,
	.delta = line_delta,
	.raw = line_raw,
	.keep = line_keep,
	.done = line_done,
	.report = line_report,
};

static bool line_write(struct sampling_raw *raw, const struct sampling_target *target,
		       struct arena *into, struct gather *body)
{
	const struct line_call *call = CONTAINER_OF(raw, struct line_call, raw);

	(void)into;
	gather_lit(body, "{\"model\":");
	gather_plain(body, target->model);
	gather_lit(body, ",\"stream\":");
	gather_raw(body, target->stream ? SLICE("true") : SLICE("false"));
	gather_raw(body, call->raw_body);
	raw->output_most = call->raw_output_most;
	return true;
}

static struct sampling_extra line_cost(struct sampling_raw *raw,
				       const struct provider_answer *answer)
{
	struct line_call *call = CONTAINER_OF(raw, struct line_call, raw);

	line_put(call, answer == NULL ? "cost of a stream\n" : "cost\n");
	return call->money->cost;
}

static bool line_suits(struct sampling_raw *raw, const struct sampling_offer *offer,
		       struct fault *why)
{
	const struct line_call *call = CONTAINER_OF(raw, struct line_call, raw);

	(void)offer;
	*why = (struct fault){ .err = ERR_POLICY,
			       .offset = FAULT_NO_OFFSET,
			       .path = slice_str(call->money->refused) };
	return call->money->refused == NULL;
}

/* What a line asks. */
struct line {
	const char *key;  /* a tenant's */
	const char *text; /* NULL: nothing is sampled */
	const char *session, *cancel_id, *idempotency_key;
	enum sampling_relay relay;
	const char *
		raw_body; /* the provider's request behind its model and "stream"; NULL: the core writes it */
	enum dialect_id raw_dialect;
	const char *raw_model; /* NULL: by preferences */
	const char *raw_version, *raw_headers;
	bool raw_only;
	uint64_t raw_output_most;
	const struct line_money *raw_money;
	bool slow; /* it takes a piece at a time */
};

/* Reads a line and begins its call. False: the caller is not known, or there is no room. */
static inline bool line_begin(struct line_call *call, struct sampling *core,
			      const struct caller_sources *sources, struct arena_pool *pool,
			      const struct line *line, nsec_t now, uint64_t wall_ns)
{
	struct caller_refusal why;

	memset(call, 0, sizeof(*call));
	arena_init(&call->arena, pool, REQUEST_ARENA_MAX);
	sampling_new_ids(core, (struct slice){ NULL, 0 }, &call->ids);
	call->keeps_up = !line->slow;
	call->shown = (struct credentials){ .shown = true, .secret = slice_str(line->key) };
	call->ask = (struct sampling_ask){
		.credentials = &call->shown,
		.ids = &call->ids,
		.arena = &call->arena,
		.body = slice_str(line->text),
		.at = SLICE("$"),
		.started = now,
		.started_wall_ns = wall_ns,
		.deadline = now + 60 * SEC,
		.session = slice_str(line->session),
		.cancel_id = slice_str(line->cancel_id),
		.idempotency_key = slice_str(line->idempotency_key),
		.relay = line->relay,
	};
	if (!caller_find(sources, &call->shown, &call->arena, &call->caller, &why)) {
		sampling_refused(core, &call->ask, &line_front, call, why.err);
		line_put(call, "refused %s\n", err_info(why.err)->reason);
		arena_give(&call->arena);
		return false;
	}
	call->ask.caller = &call->caller;
	if (line->text != NULL) {
		call->block = (struct block){ .type = BLOCK_TEXT };
		call->block.text.text = slice_str(line->text);
		call->message = (struct message){ .count = 1 };
		call->request = (struct sampling_request){
			.revision = REVISION_2025_11_25,
			.max_tokens = 100,
			.prefer = { NAN, NAN, NAN, NULL, 0 },
			.messages = &call->message,
			.blocks = &call->block,
			.message_count = 1,
			.block_count = 1,
		};
		call->ask.request = &call->request;
	}
	if (line->raw_body != NULL) {
		call->raw_body = slice_str(line->raw_body);
		call->raw = (struct sampling_raw){ .dialect = line->raw_dialect,
						   .model = slice_str(line->raw_model),
						   .only = line->raw_only,
						   .version = slice_str(line->raw_version),
						   .headers = slice_str(line->raw_headers),
						   .write = line_write };
		call->raw_output_most = line->raw_output_most;
		call->money = line->raw_money;
		if (call->money != NULL) {
			call->raw.image_bytes = call->money->image_bytes;
			call->raw.cached_1h = call->money->cached_1h;
			call->raw.fetches = call->money->fetches;
			call->raw.cost = call->money->dear ? line_cost : NULL;
			call->raw.most = call->money->most;
			call->raw.suits = line_suits;
		}
		call->ask.raw = &call->raw;
	}
	call->call = sampling_begin(core, &call->ask, &line_front, call);
	if (call->call != NULL)
		return true;
	sampling_refused(core, &call->ask, &line_front, call, ERR_BUSY);
	arena_give(&call->arena);
	return false;
}

/* Its answer has left. */
static inline void line_end(struct line_call *call)
{
	sampling_end(call->call, ERR_OK);
	call->call = NULL;
	arena_give(&call->arena);
}

/* Its caller has left. */
static inline void line_leave(struct line_call *call)
{
	sampling_abandon(call->call);
	call->call = NULL;
	arena_give(&call->arena);
}

#endif
