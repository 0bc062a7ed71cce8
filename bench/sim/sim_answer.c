#include "bench/sim/sim_answer.h"

#include "bench/sim/sim_http.h"
#include "bench/sim/sim_responses.h"
#include "bench/sim/sim_wire.h"
#include "codec/base/must.h"

#define CREATED ((uint64_t)1763750000)

/* ---- text, counts, reasons: the same in all dialects ---- */

/* Bytes `from` to `from + len` of the endless text. */
void sim_answer_filler(struct sim_buf *out, uint64_t from, uint64_t len)
{
	static const char pattern[] =
		"This text was made up to fill an answer of the size asked for. ";
	const size_t period = sizeof(pattern) - 1;

	sim_buf_room(out, (size_t)len);
	while (len > 0) {
		size_t at = (size_t)(from % period);
		size_t part = period - at < len ? period - at : (size_t)len;

		sim_buf_add(out, slice_of(pattern + at, part));
		from += part;
		len -= part;
	}
}

bool sim_answer_calls(const struct sim_answer *a)
{
	return !a->spec->refusal && sim_ask_wants_calls(a->ask, a->spec->loop != 0);
}

bool sim_answer_quotes(const struct sim_answer *a)
{
	return !slice_absent(a->ask->results);
}

bool sim_answer_at_limit(const struct sim_answer *a)
{
	return a->spec->length || (a->spec->obey && a->spec->size / 4 > a->ask->max_tokens);
}

/* Bytes of the made-up text. */
static uint64_t text_size(const struct sim_answer *a)
{
	if (a->spec->obey && a->spec->size / 4 > a->ask->max_tokens)
		return a->ask->max_tokens * 4;
	return a->spec->size;
}

void sim_answer_text(const struct sim_answer *a, struct sim_buf *out)
{
	if (a->spec->refusal)
		return;
	if (!sim_answer_quotes(a)) {
		sim_answer_filler(out, 0, text_size(a));
		return;
	}
	sim_buf_text(out, "The tools answered: ");
	sim_ask_quote_results(a->ask, out);
}

uint64_t sim_answer_tokens_in(const struct sim_answer *a)
{
	return a->spec->input != UINT64_MAX ? a->spec->input : a->ask->body_len / 4;
}

uint64_t sim_answer_tokens_out(const struct sim_answer *a)
{
	if (a->spec->output != UINT64_MAX)
		return a->spec->output;
	if (sim_answer_calls(a))
		return 16 * a->spec->calls;
	if (!sim_answer_quotes(a))
		return (text_size(a) + 3) / 4;
	size_t mark = a->input->len;

	sim_answer_text(a, a->input);
	uint64_t count = (a->input->len - mark + 3) / 4;

	a->input->len = mark;
	return count;
}

static struct slice end_reason(const struct sim_answer *a)
{
	bool anthropic = a->ask->dialect == SIM_ANTHROPIC;

	if (a->spec->refusal)
		return anthropic ? SLICE("refusal") : SLICE("content_filter");
	if (sim_answer_calls(a))
		return anthropic ? SLICE("tool_use") : SLICE("tool_calls");
	if (sim_answer_at_limit(a))
		return anthropic ? SLICE("max_tokens") : SLICE("length");
	return anthropic ? SLICE("end_turn") : SLICE("stop");
}

/* ---- Anthropic Messages ---- */

static void anthropic_usage(const struct sim_answer *a, struct sim_buf *out, uint64_t output)
{
	if (a->spec->nousage)
		return;
	sim_buf_format(out,
		       ",\"usage\":{\"input_tokens\":#,\"cache_creation_input_tokens\":0,"
		       "\"cache_read_input_tokens\":0,\"output_tokens\":#}",
		       sim_answer_tokens_in(a), output);
}

static void anthropic_call(const struct sim_answer *a, uint64_t i, struct sim_buf *out)
{
	struct slice name = sim_ask_tool_name(a->ask, (size_t)i);

	sim_buf_format(out,
		       "{\"type\":\"tool_use\",\"id\":\"toolu_sim_#_#\",\"name\":\"$\",\"input\":",
		       a->number, i, name);
	sim_ask_tool_input(a->ask, name, out);
	sim_buf_text(out, "}");
}

static void anthropic_whole(const struct sim_answer *a, struct sim_buf *out)
{
	sim_buf_format(out,
		       "{\"id\":\"msg_sim_#\",\"type\":\"message\",\"role\":\"assistant\","
		       "\"model\":\"$\",\"content\":[",
		       a->number, a->ask->model);
	if (sim_answer_calls(a)) {
		for (uint64_t i = 0; i < a->spec->calls; i++) {
			sim_buf_text(out, i == 0 ? "" : ",");
			anthropic_call(a, i, out);
		}
	} else {
		sim_buf_text(out, "{\"type\":\"text\",\"text\":\"");
		sim_answer_text(a, out);
		sim_buf_text(out, "\"}");
	}
	sim_buf_format(out, "],\"stop_reason\":\"$\",\"stop_sequence\":null", end_reason(a));
	anthropic_usage(a, out, sim_answer_tokens_out(a));
	sim_buf_text(out, "}");
}

static void anthropic_start(const struct sim_answer *a, struct sim_buf *out)
{
	sim_buf_format(out,
		       "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{"
		       "\"id\":\"msg_sim_#\",\"type\":\"message\",\"role\":\"assistant\","
		       "\"model\":\"$\",\"content\":[],\"stop_reason\":null,\"stop_sequence\":null",
		       a->number, a->ask->model);
	anthropic_usage(a, out, 1);
	sim_buf_text(out, "}}\n\n");
	if (!sim_answer_calls(a))
		sim_buf_text(out, "event: content_block_start\ndata: "
				  "{\"type\":\"content_block_start\",\"index\":0,"
				  "\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n");
	sim_buf_text(out, "event: ping\ndata: {\"type\":\"ping\"}\n\n");
}

static void anthropic_delta(struct sim_buf *out, uint64_t index, const char *type,
			    const char *member, struct slice escaped)
{
	sim_buf_format(out,
		       "event: content_block_delta\ndata: {\"type\":\"content_block_delta\","
		       "\"index\":#,\"delta\":{\"type\":\"$\",\"$\":\"$\"}}\n\n",
		       index, slice_str(type), slice_str(member), escaped);
}

static void anthropic_block_stop(struct sim_buf *out, uint64_t index)
{
	sim_buf_format(out,
		       "event: content_block_stop\ndata: {\"type\":\"content_block_stop\","
		       "\"index\":#}\n\n",
		       index);
}

/* Start, input in two pieces, stop. */
static void anthropic_call_events(const struct sim_answer *a, uint64_t i, struct slice input,
				  struct sim_buf *out)
{
	sim_buf_format(
		out,
		"event: content_block_start\ndata: {\"type\":\"content_block_start\","
		"\"index\":#,\"content_block\":{\"type\":\"tool_use\",\"id\":\"toolu_sim_#_#\","
		"\"name\":\"$\",\"input\":{}}}\n\n",
		i, a->number, i, sim_ask_tool_name(a->ask, (size_t)i));
	anthropic_delta(out, i, "input_json_delta", "partial_json", slice_of(input.at, 1));
	anthropic_delta(out, i, "input_json_delta", "partial_json",
			slice_of(input.at + 1, input.len - 1));
	anthropic_block_stop(out, i);
}

static void anthropic_end(const struct sim_answer *a, struct sim_buf *out)
{
	if (!sim_answer_calls(a))
		anthropic_block_stop(out, 0);
	sim_buf_format(out,
		       "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{"
		       "\"stop_reason\":\"$\",\"stop_sequence\":null}",
		       end_reason(a));
	anthropic_usage(a, out, sim_answer_tokens_out(a));
	sim_buf_text(out, "}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n");
}

/* ---- OpenAI Chat Completions ---- */

static void openai_usage(const struct sim_answer *a, struct sim_buf *out)
{
	uint64_t in = sim_answer_tokens_in(a), output = sim_answer_tokens_out(a);

	sim_buf_format(out,
		       ",\"usage\":{\"prompt_tokens\":#,\"completion_tokens\":#,\"total_tokens\":#,"
		       "\"prompt_tokens_details\":{\"cached_tokens\":0},"
		       "\"completion_tokens_details\":{\"reasoning_tokens\":0}}",
		       in, output, in + output);
}

struct slice sim_answer_input(const struct sim_answer *a, uint64_t i)
{
	struct sim_buf *buf = a->input;
	size_t mark;

	buf->len = 0;
	sim_ask_tool_input(a->ask, sim_ask_tool_name(a->ask, (size_t)i), buf);
	mark = buf->len;
	sim_buf_room(buf, 6 * mark); /* the source must not move while it is read */
	sim_buf_escaped(buf, slice_of(buf->at, mark));
	return slice_of(buf->at + mark, buf->len - mark);
}

static void openai_call(const struct sim_answer *a, uint64_t i, struct slice arguments,
			struct sim_buf *out)
{
	sim_buf_format(out,
		       "\"id\":\"call_sim_#_#\",\"type\":\"function\",\"function\":{\"name\":\"$\","
		       "\"arguments\":\"$\"}}",
		       a->number, i, sim_ask_tool_name(a->ask, (size_t)i), arguments);
}

static void openai_whole(const struct sim_answer *a, struct sim_buf *out)
{
	sim_buf_format(
		out,
		"{\"id\":\"chatcmpl-sim-#\",\"object\":\"chat.completion\",\"created\":#,"
		"\"model\":\"$\",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\","
		"\"content\":",
		a->number, CREATED, a->ask->model);
	if (sim_answer_calls(a)) {
		sim_buf_text(out, "null,\"tool_calls\":[");
		for (uint64_t i = 0; i < a->spec->calls; i++) {
			sim_buf_text(out, i == 0 ? "{" : ",{");
			openai_call(a, i, sim_answer_input(a, i), out);
		}
		sim_buf_text(out, "]");
	} else {
		sim_buf_text(out, "\"");
		sim_answer_text(a, out);
		sim_buf_text(out, "\"");
	}
	sim_buf_format(out, ",\"refusal\":null},\"logprobs\":null,\"finish_reason\":\"$\"}]",
		       end_reason(a));
	if (!a->spec->nousage)
		openai_usage(a, out);
	sim_buf_text(out, "}");
}

static void openai_open(const struct sim_answer *a, struct sim_buf *out)
{
	sim_buf_format(out,
		       "data: {\"id\":\"chatcmpl-sim-#\",\"object\":\"chat.completion.chunk\","
		       "\"created\":#,\"model\":\"$\",\"choices\":[",
		       a->number, CREATED, a->ask->model);
}

/* A chunk whose delta has these members. */
static void openai_delta(const struct sim_answer *a, const char *before, struct slice escaped,
			 const char *behind, struct sim_buf *out)
{
	openai_open(a, out);
	sim_buf_format(
		out, "{\"index\":0,\"delta\":{$$$},\"logprobs\":null,\"finish_reason\":null}]}\n\n",
		slice_str(before), escaped, slice_str(behind));
}

/* Start with empty arguments, then the arguments in one piece. */
static void openai_call_events(const struct sim_answer *a, uint64_t i, struct slice arguments,
			       struct sim_buf *out)
{
	openai_open(a, out);
	sim_buf_format(out, "{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":#,", i);
	openai_call(a, i, SLICE(""), out);
	sim_buf_text(out, "]},\"logprobs\":null,\"finish_reason\":null}]}\n\n");
	openai_open(a, out);
	sim_buf_format(out,
		       "{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":#,\"function\":{"
		       "\"arguments\":\"$\"}}]},\"logprobs\":null,\"finish_reason\":null}]}\n\n",
		       i, arguments);
}

static void openai_end(const struct sim_answer *a, struct sim_buf *out)
{
	openai_open(a, out);
	sim_buf_format(out,
		       "{\"index\":0,\"delta\":{},\"logprobs\":null,\"finish_reason\":\"$\"}]}\n\n",
		       end_reason(a));
	if (a->ask->stream_usage && !a->spec->nousage) {
		openai_open(a, out);
		sim_buf_text(out, "]");
		openai_usage(a, out);
		sim_buf_text(out, "}\n\n");
	}
	sim_buf_text(out, "data: [DONE]\n\n");
}

/* ---- dialects ---- */

static void anthropic_text(const struct sim_answer *a, uint64_t piece, struct slice text,
			   struct sim_buf *out)
{
	(void)a;
	(void)piece;
	anthropic_delta(out, 0, "text_delta", "text", text);
}

static void openai_start(const struct sim_answer *a, struct sim_buf *out)
{
	openai_delta(a, "\"role\":\"assistant\",\"content\":\"\"", SLICE(""), "", out);
}

static void openai_text(const struct sim_answer *a, uint64_t piece, struct slice text,
			struct sim_buf *out)
{
	(void)piece;
	openai_delta(a, "\"content\":\"", text, "\"", out);
}

static const struct sim_wire wires[] = {
	[SIM_ANTHROPIC] = { anthropic_whole, anthropic_start, anthropic_text, anthropic_call_events,
			    anthropic_end,
			    "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":"
			    "\"overloaded_error\",\"message\":\"" SIM_CANARY
			    " overloaded\"},\"request_id\":null}\n\n" },
	[SIM_OPENAI] = { openai_whole, openai_start, openai_text, openai_call_events, openai_end,
			 "data: {\"error\":{\"message\":\"" SIM_CANARY " server error\",\"type\":"
			 "\"server_error\",\"param\":null,\"code\":null}}\n\n" },
	[SIM_RESPONSES] = { sim_responses_whole, sim_responses_start, sim_responses_text,
			    sim_responses_call, sim_responses_end,
			    "event: error\ndata: {\"type\":\"error\",\"code\":\"server_error\","
			    "\"message\":\"" SIM_CANARY " server error\",\"param\":null,"
			    "\"sequence_number\":9}\n\n" },
};

/* ---- HTTP ---- */

static void status_line(struct sim_buf *out, unsigned status, const char *type)
{
	sim_buf_format(out, "HTTP/1.1 # $\r\ncontent-type: $\r\n", (uint64_t)status,
		       slice_str(sim_http_reason(status)), slice_str(type));
}

void sim_answer_plain(struct sim_buf *out, unsigned status, const char *type, const char *headers,
		      struct slice body, bool keep_alive)
{
	status_line(out, status, type);
	if (headers != NULL)
		sim_buf_text(out, headers);
	if (!keep_alive)
		sim_buf_text(out, "connection: close\r\n");
	sim_buf_format(out, "content-length: #\r\n\r\n", (uint64_t)body.len);
	sim_buf_add(out, body);
}

static void add_chunk(struct sim_buf *out, struct slice bytes)
{
	sim_buf_hex(out, bytes.len);
	sim_buf_text(out, "\r\n");
	sim_buf_add(out, bytes);
	sim_buf_text(out, "\r\n");
}

/* What providers and the proxies in front of them send besides; of the limits, what never holds a caller back. */
#define REAL_OF_OPENAI                                                                \
	"Date: Thu, 26 Nov 2026 12:00:00 GMT\r\n"                                     \
	"access-control-expose-headers: X-Request-ID\r\n"                             \
	"openai-organization: example-org\r\n"                                        \
	"openai-processing-ms: 1834\r\n"                                              \
	"openai-project: proj_5cd5ba319f844b7da7a9\r\n"                               \
	"openai-version: 2020-10-01\r\n"                                              \
	"x-envoy-upstream-service-time: 1841\r\n"                                     \
	"x-ratelimit-limit-requests: 10000\r\n"                                       \
	"x-ratelimit-limit-tokens: 30000000\r\n"                                      \
	"x-ratelimit-remaining-requests: 9999\r\n"                                    \
	"x-ratelimit-remaining-tokens: 29999000\r\n"                                  \
	"x-ratelimit-reset-requests: 6ms\r\n"                                         \
	"x-ratelimit-reset-tokens: 2ms\r\n"                                           \
	"cf-cache-status: DYNAMIC\r\n"                                                \
	"strict-transport-security: max-age=31536000; includeSubDomains; preload\r\n" \
	"X-Content-Type-Options: nosniff\r\n"                                         \
	"Server: cloudflare\r\n"                                                      \
	"CF-RAY: 8f1c2d3e4a5b6c7d-FRA\r\n"                                            \
	"alt-svc: h3=\":443\"; ma=86400\r\n"
static const char *const real_lines[SIM_DIALECTS] = {
	[SIM_ANTHROPIC] =
		"Date: Thu, 26 Nov 2026 12:00:00 GMT\r\n"
		"anthropic-ratelimit-requests-limit: 4000\r\n"
		"anthropic-ratelimit-requests-remaining: 3999\r\n"
		"anthropic-ratelimit-requests-reset: 2099-01-01T00:00:00Z\r\n"
		"anthropic-ratelimit-tokens-limit: 4800000\r\n"
		"anthropic-ratelimit-tokens-remaining: 4799000\r\n"
		"anthropic-ratelimit-tokens-reset: 2099-01-01T00:00:00Z\r\n"
		"anthropic-ratelimit-input-tokens-limit: 4000000\r\n"
		"anthropic-ratelimit-input-tokens-remaining: 3999000\r\n"
		"anthropic-ratelimit-input-tokens-reset: 2099-01-01T00:00:00Z\r\n"
		"anthropic-ratelimit-output-tokens-limit: 800000\r\n"
		"anthropic-ratelimit-output-tokens-remaining: 800000\r\n"
		"anthropic-ratelimit-output-tokens-reset: 2099-01-01T00:00:00Z\r\n"
		"strict-transport-security: max-age=31536000; includeSubDomains; preload\r\n"
		"anthropic-organization-id: 5cd5ba31-9f84-4b7d-a7a9-d2b51f1a3a11\r\n"
		"x-envoy-upstream-service-time: 1834\r\n"
		"via: 1.1 google\r\n"
		"cf-cache-status: DYNAMIC\r\n"
		"X-Robots-Tag: none\r\n"
		"Server: cloudflare\r\n"
		"CF-RAY: 8f1c2d3e4a5b6c7d-FRA\r\n",
	[SIM_OPENAI] = REAL_OF_OPENAI,
	[SIM_RESPONSES] = REAL_OF_OPENAI,
};

/* Headers that both kinds of answer have, up to the one about the length. */
static void good_head(const struct sim_answer *a, const char *type, struct sim_buf *out)
{
	status_line(out, 200, type);
	sim_buf_format(out, "$: req_sim_#\r\n",
		       a->ask->dialect == SIM_ANTHROPIC ? SLICE("request-id")
							: SLICE("x-request-id"),
		       a->number);
	if (!a->keep_alive)
		sim_buf_text(out, "connection: close\r\n");
	else if (a->spec->lines)
		sim_buf_text(out, "Connection: keep-alive\r\n");
	sim_keys_headers(a->quota, a->ask->dialect, out);
	if (a->spec->lines)
		sim_buf_text(out, real_lines[a->ask->dialect]);
}

/* Half of the body and a bracket too many: complete as HTTP, broken as JSON. */
static struct slice broken(struct sim_buf *body)
{
	body->len /= 2;
	sim_buf_text(body, "}]");
	return slice_of(body->at, body->len);
}

void sim_answer_whole(const struct sim_answer *a, struct sim_buf *out, size_t *cut_at)
{
	struct sim_buf *scratch = a->scratch;
	size_t start = out->len;

	*cut_at = SIZE_MAX;
	scratch->len = 0;
	if (a->ask->counts)
		sim_buf_format(scratch, "{\"input_tokens\":#}", sim_answer_tokens_in(a));
	else
		wires[a->ask->dialect].whole(a, scratch);
	struct slice body = slice_of(scratch->at, scratch->len);

	if (a->spec->fault == SIM_FAULT_BADJSON)
		body = broken(scratch);
	else if (a->spec->fault == SIM_FAULT_EMPTY)
		body.len = 0;
	good_head(a, "application/json", out);
	if (a->spec->chunked) {
		sim_buf_text(out, "transfer-encoding: chunked\r\n\r\n");
		if (body.len > 1) {
			add_chunk(out, slice_of(body.at, body.len / 2));
			add_chunk(out, slice_of(body.at + body.len / 2, body.len - body.len / 2));
		}
		sim_buf_text(out, "0\r\n\r\n");
	} else {
		sim_buf_format(out, "content-length: #\r\n\r\n", (uint64_t)body.len);
		sim_buf_add(out, body);
	}
	if (a->spec->fault == SIM_FAULT_CUT || a->spec->fault == SIM_FAULT_STALL)
		*cut_at = out->len - start - body.len / 2;
	else if (a->spec->fault == SIM_FAULT_CUTHEAD)
		*cut_at = 40; /* inside content-type, the first header */
}

void sim_answer_head(const struct sim_answer *a, struct sim_buf *out)
{
	good_head(a, "text/event-stream; charset=utf-8", out);
	sim_buf_text(out, "cache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n");
}

/* Steps of a stream without a fault: start, one for each piece of text or call, end. */
static uint64_t full_steps(const struct sim_answer *a)
{
	if (sim_answer_calls(a))
		return 2 + a->spec->calls;
	if (a->spec->refusal)
		return 2;
	if (sim_answer_quotes(a))
		return 3;
	return 2 + (text_size(a) + a->spec->chunk - 1) / a->spec->chunk;
}

uint64_t sim_answer_steps(const struct sim_answer *a)
{
	switch (a->spec->fault) {
	case SIM_FAULT_EMPTY:
		return 1;
	case SIM_FAULT_CUT:
	case SIM_FAULT_MIDWAY:
	case SIM_FAULT_STALL:
		return full_steps(a) / 2 + 1;
	default:
		return full_steps(a);
	}
}

static void add_stamp(uint64_t us, struct sim_buf *out)
{
	char digits[16];

	for (size_t i = sizeof(digits); i-- > 0; us /= 10)
		digits[i] = (char)('0' + us % 10);
	sim_buf_text(out, "<");
	sim_buf_add(out, slice_of(digits, sizeof(digits)));
	sim_buf_text(out, ">");
}

static void text_step(const struct sim_answer *a, uint64_t piece, struct sim_buf *out)
{
	struct sim_buf *text = a->input;
	uint64_t from = piece * a->spec->chunk, size = text_size(a);

	text->len = 0;
	if (a->spec->stamp)
		add_stamp(a->now / USEC, text);
	else if (sim_answer_quotes(a))
		sim_answer_text(a, text);
	else
		sim_answer_filler(text, from,
				  size - from < a->spec->chunk ? size - from : a->spec->chunk);
	wires[a->ask->dialect].text(a, piece, slice_of(text->at, text->len), out);
}

/* The events of one step of a stream without a fault. */
static void events(const struct sim_answer *a, uint64_t step, struct sim_buf *out)
{
	const struct sim_wire *wire = &wires[a->ask->dialect];

	if (step == 0)
		wire->start(a, out);
	else if (step == full_steps(a) - 1)
		wire->end(a, out);
	else if (sim_answer_calls(a))
		wire->call(a, step - 1, sim_answer_input(a, step - 1), out);
	else
		text_step(a, step - 1, out);
}

void sim_answer_step(const struct sim_answer *a, uint64_t step, struct sim_buf *out)
{
	struct sim_buf *scratch = a->scratch;
	bool last = step == sim_answer_steps(a) - 1;
	bool cut = a->spec->fault == SIM_FAULT_CUT || a->spec->fault == SIM_FAULT_STALL;
	size_t start = out->len;

	scratch->len = 0;
	if (a->spec->fault == SIM_FAULT_MIDWAY && last)
		sim_buf_text(scratch, wires[a->ask->dialect].error);
	else if (a->spec->fault != SIM_FAULT_EMPTY)
		events(a, step, scratch);
	if (a->spec->fault == SIM_FAULT_BADJSON && step == full_steps(a) / 2)
		sim_buf_text(scratch, "data: {\"type\":\"" SIM_CANARY "\",\n\n");
	if (scratch->len > 0)
		add_chunk(out, slice_of(scratch->at, scratch->len));
	if (last && cut)
		out->len = start + (out->len - start) / 2;
	else if (last)
		sim_buf_text(out, "0\r\n\r\n");
}
