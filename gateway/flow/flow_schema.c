#include "gateway/flow/flow_schema.h"

#include "codec/base/must.h"
#include "gateway/flow/flow_steps.h"

#include <stdio.h>

/* What is wrong with an answer. */
struct fault_found {
	const struct result_block *call; /* the wrong one; NULL: there is none at all */
	struct schema_finding finding;
};

enum err flow_schema_begin(struct flow *flow, struct json_work *work, struct fault *fault)
{
	if (flow->retries.schema != NULL)
		return ERR_OK;
	struct flow_schema *fresh = arena_zero(flow->arena, sizeof(*fresh));
	if (fresh == NULL)
		return ERR_BUSY;
	enum err err =
		schema_read(flow->ask->request->tools[0].schema, work, flow->arena, &fresh->schema);
	if (err == ERR_TOOL)
		fault->detail = "The schema of " SCHEMA_TOOL_NAME
				" is too large for answers to be checked against it";
	if (err == ERR_OK)
		flow->retries.schema = fresh;
	return err;
}

static bool is_mended(const struct flow *flow)
{
	return flow->retries.schema != NULL && flow->retries.schema->mend == FLOW_MENDED;
}

const struct sampling_request *flow_schema_request(const struct flow *flow)
{
	return is_mended(flow) ? &flow->retries.schema->request : flow->ask->request;
}

bool flow_schema_mends(const struct flow *flow)
{
	return flow->retries.schema != NULL && flow->retries.schema->mend == FLOW_MENDING;
}

void flow_schema_mend(struct flow *flow)
{
	must(flow_schema_mends(flow));
	flow->retries.schema->mend = FLOW_MENDED;
}

bool flow_schema_is_private(const struct flow *flow)
{
	return flow->made->encoded.decode.native_schema || is_mended(flow);
}

/* ---- what is sent back ---- */

/* Longer pieces of a schema are not quoted: the model has it. */
enum { QUOTED_MAX = 300 };

static void put_quoted(struct gather *g, struct slice text)
{
	gather_lit(g, "\\\"");
	gather_escaped(g, text);
	gather_lit(g, "\\\"");
}

/* The inside of a JSON string. */
static void put_finding(struct gather *g, const struct schema_finding *finding)
{
	const struct slice keyword = slice_str(finding->keyword);

	gather_lit(g, "The input does not match the schema of " SCHEMA_TOOL_NAME ". At ");
	gather_escaped(g, finding->path);
	if (!slice_absent(finding->member)) {
		gather_raw(g, slice_eq(keyword, SLICE("required"))
				      ? SLICE(" is missing the member ")
				      : SLICE(" is the member "));
		put_quoted(g, finding->member);
		gather_raw(g, slice_eq(keyword, SLICE("required"))
				      ? SLICE(" (schema: ")
				      : SLICE(", which is not allowed (schema: "));
	} else {
		gather_lit(g, " the keyword ");
		put_quoted(g, keyword);
		if (finding->wanted.len <= QUOTED_MAX) {
			gather_lit(g, ": ");
			gather_escaped(g, finding->wanted);
		}
		gather_lit(g, " is not kept (schema: ");
	}
	gather_escaped(g, finding->schema_path);
	gather_lit(g, "). ");
}

/* What is wrong and what is wanted instead, as a raw string; absent without memory. */
static struct slice complaint(struct flow *flow, const struct fault_found *found, bool native)
{
	struct gather g;

	gather_init(&g, flow->arena);
	if (found->call != NULL)
		put_finding(&g, &found->finding);
	else
		gather_lit(&g, "The answer is not a call of " SCHEMA_TOOL_NAME ". ");
	gather_raw(&g,
		   native ? SLICE("Answer again with the whole corrected JSON object and nothing "
				  "else.")
			  : SLICE("Call " SCHEMA_TOOL_NAME " with the whole corrected input."));
	if (gather_done(&g) != ERR_OK)
		return slice_of(NULL, 0);
	return gather_flat(&g, flow->arena);
}

/* The answer's words as one raw string; the input of a call that was native text. */
static struct slice answer_text(struct flow *flow, const struct sampling_result *result,
				const struct result_block *call)
{
	struct gather g;

	gather_init(&g, flow->arena);
	if (call != NULL)
		gather_json_escaped(&g, call->input);
	for (uint32_t i = 0; call == NULL && i < result->block_count; i++)
		if (!result->blocks[i].is_tool_use && slice_absent(result->blocks[i].data))
			gather_raw(&g, result->blocks[i].text);
	if (gather_done(&g) != ERR_OK)
		return slice_of(NULL, 0);
	return gather_flat(&g, flow->arena);
}

/* Room for two turns more, behind copies of what there is. */
static bool copy_turns(struct flow *flow, struct sampling_request *to)
{
	const struct sampling_request *from = flow->ask->request;
	struct arena *into = flow->arena;

	*to = *from;
	to->messages = arena_take(into, (from->message_count + 2) * sizeof(*to->messages));
	to->blocks = arena_take(into, (from->block_count + 2) * sizeof(*to->blocks));
	to->inner = arena_take(into, (from->inner_count + 1) * sizeof(*to->inner));
	if (to->messages == NULL || to->blocks == NULL || to->inner == NULL)
		return false;
	(void)memcpy(to->messages, from->messages, from->message_count * sizeof(*to->messages));
	(void)memcpy(to->blocks, from->blocks, from->block_count * sizeof(*to->blocks));
	if (from->inner_count != 0)
		(void)memcpy(to->inner, from->inner, from->inner_count * sizeof(*to->inner));
	return true;
}

static void add_turn(struct sampling_request *to, bool assistant, struct block block)
{
	to->messages[to->message_count++] = (struct message){ assistant, to->block_count, 1 };
	to->blocks[to->block_count++] = block;
}

static struct block text_block(struct slice raw)
{
	return (struct block){ .type = BLOCK_TEXT, .text = { .text = raw } };
}

/* A call and its result, which is an error. Copies: what the answer lies in is given back before the next
 * one is asked for. */
static bool add_call(struct flow *flow, struct sampling_request *to,
		     const struct result_block *call, struct slice words)
{
	const struct slice id = arena_copy(flow->arena, call->id);
	const struct slice input = arena_copy(flow->arena, call->input);

	if (slice_absent(id) || slice_absent(input))
		return false;
	add_turn(to, true,
		 (struct block){
			 .type = BLOCK_TOOL_USE,
			 .use = { .id = id, .name = SLICE(SCHEMA_TOOL_NAME), .input = input } });
	to->inner[to->inner_count] = text_block(words);
	add_turn(to, false,
		 (struct block){ .type = BLOCK_TOOL_RESULT,
				 .is_error = true,
				 .result = { .id = id, .first = to->inner_count, .count = 1 } });
	to->inner_count++;
	return true;
}

/* The request with the answer and what is wrong with it behind. Native answers, and those without a call,
 * are told in words: there is no tool, or nothing that could have a result. */
static bool write_back(struct flow *flow, const struct sampling_result *result,
		       const struct fault_found *found)
{
	const bool native = flow->made->encoded.decode.native_schema;
	struct sampling_request *to = &flow->retries.schema->request;
	const struct slice words = complaint(flow, found, native);

	if (slice_absent(words) || !copy_turns(flow, to))
		return false;
	if (found->call != NULL && !native)
		return add_call(flow, to, found->call, words);
	const struct slice said = answer_text(flow, result, found->call);
	if (slice_absent(said))
		return false;
	if (said.len != 0)
		add_turn(to, true, text_block(said));
	add_turn(to, false, text_block(words));
	return true;
}

/* ---- what the caller is told ---- */

/* Members of the error's data; absent without memory. A member that the schema does not know is the
 * provider's text: it is not among them. */
static struct slice particulars(struct flow *flow, const struct fault_found *found)
{
	const struct schema_finding *finding = &found->finding;
	struct gather g;

	if (found->call == NULL || finding->keyword == NULL)
		return slice_of(NULL, 0);
	gather_init(&g, flow->arena);
	gather_lit(&g, "\"keyword\":");
	gather_plain(&g, slice_str(finding->keyword));
	gather_lit(&g, ",\"path\":");
	gather_plain(&g, finding->path);
	gather_lit(&g, ",\"schemaPath\":");
	gather_plain(&g, finding->schema_path);
	return gather_done(&g) == ERR_OK ? gather_flat(&g, flow->arena) : slice_of(NULL, 0);
}

static const char *detail_of(const struct fault_found *found)
{
	if (found->call == NULL)
		return "The model did not answer with a call of " SCHEMA_TOOL_NAME;
	if (found->finding.verdict == SCHEMA_TOO_MUCH)
		return "The answer is too large or too deep to be checked against the schema "
		       "of " SCHEMA_TOOL_NAME;
	return NULL;
}

static enum err mismatch(struct flow *flow, const struct sampling_result *result,
			 const struct fault_found *found)
{
	const bool hopeless = found->call != NULL && found->finding.verdict == SCHEMA_TOO_MUCH;
	struct flow_schema *schema = flow->retries.schema;

	if (schema->mend == FLOW_UNMENDED && !hopeless && write_back(flow, result, found))
		schema->mend = FLOW_MENDING;
	flow->attempt.failure = (struct flow_failure){
		.why = { .err = ERR_SCHEMA_MISMATCH,
			 .detail = detail_of(found),
			 .retry = RETRY_NEVER,
			 .blame = BLAME_ANSWER,
			 .retryable = !hopeless,
			 .retry_after_ms = -1 },
		.detail = found->finding.keyword,
		.particulars = particulars(flow, found),
		.sent = true,
	};
	return ERR_SCHEMA_MISMATCH;
}

static enum err no_memory(struct flow *flow)
{
	flow->attempt.failure = (struct flow_failure){
		.why = { .err = ERR_BUSY, .retry = RETRY_NEVER, .retry_after_ms = -1 },
		.sent = true,
	};
	return ERR_BUSY;
}

/* ---- the judge ---- */

static bool is_schema_call(const struct result_block *block)
{
	return block->is_tool_use && json_str_eq(block->name, SLICE(SCHEMA_TOOL_NAME));
}

/* The model could not, or would not, come to the end of an answer. */
static bool is_cut(const struct sampling_result *result)
{
	return result->stop == STOP_REFUSAL || result->stop == STOP_MAX_TOKENS ||
	       result->stop == STOP_SEQUENCE;
}

/* What the bounds do not suffice for is not known. Where all of it was sent as native output the provider holds the
 * answer to the schema by itself, so it passes, and that it was not checked is said. */
static bool passes_unchecked(const struct flow *flow, enum schema_verdict verdict)
{
	const struct encode_out *sent = &flow->made->encoded;
	const bool moved = sent->adjustments & ADJUST_BIT(ADJUST_SCHEMA_CONSTRAINTS_MOVED);

	return verdict == SCHEMA_UNCHECKED ||
	       (verdict == SCHEMA_TOO_MUCH && sent->decode.native_schema && !moved);
}

/* `looks` that the calls before it took: however many an answer has, they end in the time of two. */
static enum err check_call(struct flow *flow, const struct result_block *call, uint32_t *looks,
			   struct schema_finding *out)
{
	if (*looks > SCHEMA_LOOKS_MAX) {
		*out = (struct schema_finding){ .verdict = SCHEMA_TOO_MUCH };
		return ERR_OK;
	}
	enum err err = schema_check(&flow->retries.schema->schema, call->input, flow->arena, out);
	if (err == ERR_OK)
		*looks += out->looks;
	return err;
}

enum err flow_schema_judge(struct flow *flow, struct sampling_result *result)
{
	struct fault_found found = { .call = NULL };
	bool any = is_cut(result);
	uint32_t looks = 0;

	must(flow->retries.schema != NULL);
	for (uint32_t i = 0; i < result->block_count; i++) {
		const struct result_block *block = &result->blocks[i];
		if (!is_schema_call(block))
			continue;
		any = true;
		if (check_call(flow, block, &looks, &found.finding) != ERR_OK)
			return no_memory(flow);
		found.call = block;
		if (passes_unchecked(flow, found.finding.verdict))
			result->adjustments |= ADJUST_BIT(ADJUST_SCHEMA_KEYWORD_UNCHECKED);
		else if (found.finding.verdict != SCHEMA_HOLDS)
			return mismatch(flow, result, &found);
	}
	found.call = NULL;
	return any ? ERR_OK : mismatch(flow, result, &found);
}
