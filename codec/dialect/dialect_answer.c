#include "codec/dialect/dialect_answer.h"

#include "codec/base/must.h"
#include "codec/base/sha256.h"
#include "codec/dialect/dialect_failure.h"
#include "codec/dialect/dialect_request.h"
#include "codec/dialect/dialect_text.h"
#include "codec/dialect/stop_search.h"
#include "codec/json/json_escape.h"

enum { BLOCKS_FIRST = 4 };

static const struct slice nothing = { NULL, 0 };
static const char no_memory[] = "the answer needs more memory than one request may take";

const struct json_limits answer_json = { ANSWER_DEPTH_MAX, JSON_KEYS_MAX };
const struct json_limits answer_args_json = { ANSWER_ARGS_DEPTH_MAX, JSON_KEYS_MAX };

/* ---- collecting ---- */

void answer_begin(struct answer *a, const struct decode_context *context,
		  const struct provider_answer *from, struct json_work *work, struct arena *into)
{
	*a = (struct answer){ .context = context, .from = from, .work = work, .into = into };
}

void answer_fail(struct answer *a, const char *detail)
{
	if (a->err != ERR_OK)
		return;
	a->err = ERR_PROVIDER_ANSWER;
	a->detail = detail;
}

void answer_odd(struct answer *a, const char *detail)
{
	if (!a->context->passed)
		answer_fail(a, detail);
}

void answer_no_memory(struct answer *a)
{
	if (a->err != ERR_OK)
		return;
	a->err = ERR_BUSY;
	a->detail = no_memory;
}

void answer_check(struct answer *a, const struct json_reader *r)
{
	if (r->fault.err != ERR_OK)
		answer_fail(a, NULL);
	a->fault = r->fault.err;
}

static void *take(struct answer *a, size_t size)
{
	void *bytes = arena_take(a->into, size);

	if (bytes == NULL)
		answer_no_memory(a);
	return bytes;
}

bool answer_mend(struct answer *a, struct provider_answer *told)
{
	const struct provider_answer *from = a->from;
	struct json_mend mend, *kept;

	if (a->err != ERR_PROVIDER_ANSWER || !json_mend_may_help(a->fault) || from->body.len == 0)
		return false;
	char *body = take(a, from->body.len);
	if (body == NULL || (kept = take(a, sizeof(*kept))) == NULL)
		return false;
	(void)memcpy(body, from->body.at, from->body.len);
	if (!json_mend(body, from->body.len, &answer_json, a->work, &mend))
		return false;
	*told = *from;
	told->body = slice_of(body, from->body.len);
	*kept = mend;
	answer_begin(a, a->context, told, a->work, a->into);
	a->mended = kept;
	return true;
}

struct slice answer_mended_args(struct answer *a, const struct json_mend *mended, const char *text,
				struct slice args)
{
	const size_t from = (size_t)(args.at - text);

	if (mended == NULL || !json_mend_within(mended, from, from + args.len))
		return args;
	answer_adjust(a, ADJUST_DUPLICATE_KEY);
	args = json_tight(args, a->into);
	if (slice_absent(args))
		answer_no_memory(a);
	return args;
}

void answer_add(struct answer *a, struct answer_block block)
{
	if (a->err != ERR_OK)
		return;
	if (a->count == a->cap) {
		uint32_t cap = a->cap == 0 ? BLOCKS_FIRST : 2 * a->cap;
		struct answer_block *grown = take(a, cap * sizeof(*grown));
		if (grown == NULL)
			return;
		if (a->count != 0)
			(void)memcpy(grown, a->blocks, a->count * sizeof(*grown));
		a->blocks = grown;
		a->cap = cap;
	}
	a->blocks[a->count++] = block;
}

bool answer_next_key(struct answer *a, struct json_reader *r, struct slice *key)
{
	if (!json_next_key(r, key))
		return false;
	if (memchr(key->at, '\\', key->len) != NULL)
		*key = json_str_fit(*key, a->key, sizeof(a->key));
	return true;
}

/* Block i is one of those that stay: it follows the *kept ones before it. */
static inline void keep(struct answer *a, uint32_t *kept, uint32_t i)
{
	if (*kept != i)
		a->blocks[*kept] = a->blocks[i];
	++*kept;
}

/* ---- calls ---- */

/* The same as strict JSON, if that can be made of them. */
static bool mend_args(struct answer *a, struct slice *args)
{
	struct json_mend mend;
	char *copy = take(a, args->len);

	if (copy == NULL)
		return false;
	(void)memcpy(copy, args->at, args->len);
	if (!json_mend(copy, args->len, &answer_args_json, a->work, &mend))
		return false;
	*args = answer_mended_args(a, &mend, copy, slice_of(copy, args->len));
	return !slice_absent(*args);
}

/* Whether they can be handed over, perhaps mended; if not, *wrong says why where that is their depth. */
static bool args_valid(struct answer *a, struct slice *args, const char **wrong, const char *deep)
{
	struct fault fault;

	if (json_valid(*args, &answer_args_json, a->work, &fault))
		return true;
	if (fault.err == ERR_TOO_DEEP)
		*wrong = deep;
	return json_mend_may_help(fault.err) && mend_args(a, args);
}

/* The arguments of a call as the text of an object: {} for nothing, out of a string where one holds
 * an object. Absent when they are something else or not JSON; *wrong as of args_valid. */
static struct slice args_object(struct answer *a, const struct answer_block *call,
				const char **wrong)
{
	static const char deep[] =
		"The arguments of the provider's tool call are nested too deeply";
	struct slice args = call->args;
	bool is_json = !call->args_unescaped;

	for (int unwraps = call->args_unescaped;; unwraps++) {
		args = text_trim_json(args);
		if (args.len != 0 && !is_json && !args_valid(a, &args, wrong, deep))
			return nothing;
		if (args.len != 0 && is_json && a->mended != NULL)
			args = answer_mended_args(a, a->mended, a->from->body.at, args);
		if (args.len == 0 || slice_eq(args, SLICE("null")))
			return SLICE("{}");
		if (args.at[0] == '{')
			return args;
		if (args.at[0] != '"' || unwraps == 2)
			return nothing;
		args = json_unescape(slice_of(args.at + 1, args.len - 2), a->into);
		if (slice_absent(args)) {
			answer_no_memory(a);
			return nothing;
		}
		is_json = false;
	}
}

/* Whether the call is left out because the token limit cut it. With a limit, no arguments at all are
 * no arguments yet. */
static bool is_cut(const struct answer *a, uint32_t index, struct slice object)
{
	if (a->stop != ANSWER_LENGTH)
		return false;
	const struct answer_block *call = &a->blocks[index];
	return slice_absent(object) || slice_absent(call->args) ||
	       slice_eq(call->args, call->args_unescaped ? SLICE("") : SLICE("\"\"")) ||
	       (a->last_call_cut && index + 1 == a->count);
}

/* Leaves only calls that can be handed over, their arguments as objects. */
static void settle_calls(struct answer *a)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < a->count && a->err == ERR_OK; i++) {
		struct answer_block *block = &a->blocks[i];
		if (block->kind == ANSWER_CALL && a->context->calls_forbidden) {
			answer_adjust(a, ADJUST_UNKNOWN_BLOCK);
			continue;
		}
		if (block->kind == ANSWER_CALL) {
			const char *wrong =
				"The arguments of the provider's tool call are not a JSON object";
			struct slice object = args_object(a, block, &wrong);
			if (is_cut(a, i, object)) {
				answer_adjust(a, ADJUST_INCOMPLETE_TOOL_USE);
				continue;
			}
			if (slice_absent(object))
				answer_odd(a, wrong);
			block->args = object;
		}
		keep(a, &kept, i);
	}
	a->count = kept;
}

struct slice answer_id(struct answer *a)
{
	enum { HEX = 2 * sizeof(a->from->chance) };

	if (a->id.len != 0)
		return a->id;
	char *hex = take(a, HEX);
	if (hex == NULL)
		return nothing;
	uint8_t bits[SHA256_BYTES] = { 0 };
	(void)memcpy(bits, a->from->chance, sizeof(a->from->chance));
	sha256_hex(bits, HEX, hex);
	a->id = slice_of(hex, HEX);
	return a->id;
}

/* ---- text ---- */

/* Adjacent texts become one, empty ones none. */
static void join_texts(struct answer *a)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < a->count;) {
		const uint32_t first = i++;
		if (a->blocks[first].kind != ANSWER_TEXT) {
			keep(a, &kept, first);
			continue;
		}
		struct answer_block block = a->blocks[first];
		size_t len = block.text.len;
		for (; i < a->count && a->blocks[i].kind == ANSWER_TEXT; i++) {
			len += a->blocks[i].text.len;
			if (block.text.len == 0)
				block.text = a->blocks[i].text;
		}
		if (len == 0)
			continue;
		if (len != block.text.len) {
			char *all = take(a, len), *out = all;
			if (all == NULL)
				return;
			for (uint32_t j = first; j < i; j++) {
				(void)memcpy(out, a->blocks[j].text.at, a->blocks[j].text.len);
				out += a->blocks[j].text.len;
			}
			block.text = slice_of(all, len);
		}
		a->blocks[kept++] = block;
	}
	a->count = kept;
}

/* Behind a leading think element and the white space after it; the opening tag may have been in the
 * prompt. Offsets are into the meaning, because tags may be escaped. */
static size_t think_len(struct slice plain)
{
	static const struct slice open = SLICE_INIT("<think>"), close = SLICE_INIT("</think>");
	struct slice front = text_trim_json(plain);
	const char *end = memmem(plain.at, plain.len, close.at, close.len);
	const char *begin = memmem(plain.at, plain.len, open.at, open.len);

	if (end == NULL)
		return slice_starts(front, open) ? plain.len : 0;
	if (begin != NULL && begin < end && !slice_starts(front, open))
		return 0;
	size_t len = (size_t)(end - plain.at) + close.len;
	while (len < plain.len && (plain.at[len] == ' ' || plain.at[len] == '\n' ||
				   plain.at[len] == '\r' || plain.at[len] == '\t'))
		len++;
	return len;
}

static void strip_thinking(struct answer *a)
{
	if (!a->context->think_tags || a->count == 0 || a->blocks[0].kind != ANSWER_TEXT)
		return;
	struct slice raw = a->blocks[0].text, plain = json_str_plain(raw, a->into);
	if (slice_absent(plain)) {
		answer_no_memory(a);
		return;
	}
	size_t cut = text_raw_len(raw, think_len(plain));
	a->blocks[0].text = slice_of(raw.at + cut, raw.len - cut);
	if (a->blocks[0].text.len == 0) {
		a->count--;
		(void)memmove(a->blocks, a->blocks + 1, a->count * sizeof(*a->blocks));
	}
}

static bool stops_of(struct answer *a, struct stop_search *search)
{
	const struct decode_context *context = a->context;
	const uint32_t count = context->emulate_stop_count;
	struct slice *stops = take(a, count * sizeof(*stops));

	if (stops == NULL)
		return false;
	for (uint32_t i = 0; i < count && a->err == ERR_OK; i++) {
		stops[i] = json_str_plain(context->emulate_stop[i], a->into);
		if (slice_absent(stops[i]))
			answer_no_memory(a);
	}
	if (a->err == ERR_OK && !stop_search_init(search, stops, count, a->into))
		answer_no_memory(a);
	return a->err == ERR_OK;
}

/* Cuts the answer before the first stop sequence that the provider was not given. */
static void emulate_stop(struct answer *a)
{
	struct stop_search search;

	if (a->context->emulate_stop_count == 0 || a->count == 0 || !stops_of(a, &search))
		return;
	for (uint32_t i = 0; i < a->count && a->err == ERR_OK; i++) {
		struct answer_block *block = &a->blocks[i];
		if (block->kind != ANSWER_TEXT)
			continue;
		struct slice plain = json_str_plain(block->text, a->into);
		if (slice_absent(plain)) {
			answer_no_memory(a);
			return;
		}
		size_t cut = stop_search_find(&search, plain);
		if (cut == SIZE_MAX)
			continue;
		block->text.len = text_raw_len(block->text, cut);
		a->count = i + (block->text.len != 0); /* what follows would not have been said */
		a->stop = ANSWER_SEQUENCE;
		return;
	}
}

/* ---- structured output ---- */

/* The text inside one code fence around everything, or the text itself. */
static struct slice without_fence(struct slice plain)
{
	static const struct slice fence = SLICE_INIT("```");
	struct slice text = text_trim_json(plain);

	if (text.len < 2 * fence.len || !slice_starts(text, fence) ||
	    memcmp(text.at + text.len - fence.len, fence.at, fence.len) != 0)
		return text;
	const char *line_end = memchr(text.at, '\n', text.len - fence.len);
	if (line_end == NULL)
		return text;
	const char *end = text.at + text.len - fence.len;
	return text_trim_json(slice_of(line_end + 1, (size_t)(end - line_end - 1)));
}

/* A text that is an object becomes the call that the server expects. */
static void text_to_call(struct answer *a)
{
	static const char deep[] = "The provider's structured output is nested too deeply";
	const char *wrong = "The provider's structured output is not a JSON object";
	struct slice object = nothing, id = nothing;

	if (!a->context->native_schema || (a->stop != ANSWER_END && a->stop != ANSWER_SEQUENCE))
		return;
	if (a->count == 1 && a->blocks[0].kind == ANSWER_TEXT) {
		object = json_str_plain(a->blocks[0].text, a->into);
		if (slice_absent(object))
			answer_no_memory(a);
		else
			object = without_fence(object);
	}
	if (a->err != ERR_OK)
		return;
	if (object.len == 0 || object.at[0] != '{' || !args_valid(a, &object, &wrong, deep)) {
		if (a->stop == ANSWER_END)
			answer_fail(a, wrong);
		return;
	}
	id = answer_id(a);
	if (!slice_absent(id))
		id = text_join(a->into, SLICE("schema_"), id);
	if (slice_absent(id))
		answer_no_memory(a);
	a->blocks[0] = (struct answer_block){
		.kind = ANSWER_CALL, .id = id, .name = SLICE(SCHEMA_TOOL_NAME), .args = object
	};
	a->stop = ANSWER_END;
}

/* ---- the result ---- */

static void refuse(struct answer *a)
{
	bool discarded = false;

	for (uint32_t i = 0; i < a->count; i++)
		discarded |= a->blocks[i].kind != ANSWER_TEXT || a->blocks[i].text.len != 0;
	if (discarded)
		answer_adjust(a, ADJUST_PARTIAL_DISCARDED);
	a->count = 0;
	if (a->explanation.len != 0)
		answer_add(a, (struct answer_block){ .kind = ANSWER_TEXT, .text = a->explanation });
}

static enum stop_reason stop_reason_of(const struct answer *a)
{
	switch (a->stop) {
	case ANSWER_LENGTH:
		return STOP_MAX_TOKENS;
	case ANSWER_REFUSED:
		return STOP_REFUSAL;
	case ANSWER_OTHER:
	case ANSWER_BROKEN:
	case ANSWER_BAD_CALL:
		return STOP_OTHER;
	case ANSWER_SEQUENCE:
	case ANSWER_END:
		break;
	}
	/* a call that is handed over has to be answered, whatever came behind it (contract/mcp.md 6) */
	for (uint32_t i = 0; i < a->count; i++)
		if (a->blocks[i].kind == ANSWER_CALL)
			return STOP_TOOL_USE;
	return a->stop == ANSWER_SEQUENCE ? STOP_SEQUENCE : STOP_END_TURN;
}

static struct slice audio_type(struct answer *a)
{
	struct slice mime = text_join(a->into, SLICE("audio/"), a->context->audio_format);

	if (slice_absent(mime))
		answer_no_memory(a);
	return mime;
}

static void write_blocks(struct answer *a, struct result_block *blocks)
{
	for (uint32_t i = 0; i < a->count; i++) {
		const struct answer_block *from = &a->blocks[i];
		blocks[i] = (struct result_block){ 0 };
		if (from->kind == ANSWER_CALL) {
			blocks[i].is_tool_use = true;
			blocks[i].id = from->id;
			blocks[i].name = from->name;
			blocks[i].input = from->args;
		} else if (from->kind == ANSWER_AUDIO) {
			blocks[i].data = from->text;
			blocks[i].mime = audio_type(a);
		} else {
			blocks[i].text = from->text;
		}
	}
	if (a->count == 0)
		blocks[0] = (struct result_block){ .text = SLICE("") };
}

static uint32_t count_calls(const struct answer *a)
{
	uint32_t calls = 0;

	for (uint32_t i = 0; i < a->count; i++)
		calls += a->blocks[i].kind == ANSWER_CALL;
	return calls;
}

/* What goes back has to have the same calls as what the server is told, `calls` of them. */
static void settle_replay(struct answer *a, uint32_t calls)
{
	if (a->err != ERR_OK || calls == 0 || count_calls(a) != calls || a->unkeepable ||
	    (a->ends_private && a->stop == ANSWER_LENGTH) || (a->replay_has_ids && a->renamed))
		a->replay = nothing;
}

static enum err give_result(struct answer *a, struct sampling_result *result,
			    struct provider_failure *failure)
{
	uint32_t count = a->count == 0 ? 1 : a->count;
	struct result_block *blocks = take(a, count * sizeof(*blocks));
	struct slice model = a->model;

	if (model.len == 0)
		model = text_raw_of(a->context->requested_model, a->into);
	if (slice_absent(model) && !slice_absent(a->context->requested_model))
		answer_no_memory(a);
	if (a->err == ERR_OK)
		write_blocks(a, blocks);
	if (a->err != ERR_OK)
		return failure_unusable(a->from, a->err, a->detail, &a->usage, a->into, failure);
	*result = (struct sampling_result){ .model = model,
					    .stop = stop_reason_of(a),
					    .blocks = blocks,
					    .block_count = count,
					    .usage = a->usage,
					    .adjustments = a->adjustments,
					    .replay = a->replay,
					    .replay_lost = a->private && slice_absent(a->replay) };
	return ERR_OK;
}

enum err answer_finish(struct answer *a, struct sampling_result *result,
		       struct provider_failure *failure)
{
	if (a->err == ERR_OK && a->stop == ANSWER_BROKEN && !a->context->passed)
		return failure_broken(a->from, &a->usage, a->work, a->into, failure);
	if (a->stop == ANSWER_BAD_CALL)
		answer_odd(a, failure_bad_call);
	if (a->err == ERR_OK && a->stop == ANSWER_REFUSED) {
		refuse(a);
		a->replay = nothing;
		return give_result(a, result, failure);
	}
	const uint32_t calls = slice_absent(a->replay) ? 0 : count_calls(a);
	if (a->err == ERR_OK)
		settle_calls(a);
	if (a->err == ERR_OK)
		join_texts(a);
	if (a->err == ERR_OK)
		strip_thinking(a);
	if (a->err == ERR_OK)
		emulate_stop(a);
	if (a->err == ERR_OK)
		answer_name_calls(a);
	if (a->err == ERR_OK)
		text_to_call(a);
	if (!slice_absent(a->replay))
		settle_replay(a, calls);
	return give_result(a, result, failure);
}

enum err answer_from_failure(struct answer *a, struct sampling_result *result,
			     struct provider_failure *failure)
{
	const struct decode_context *context = a->context;
	enum err err = failure_classify(a->from, context->teachable, a->work, a->into, failure);

	if (err == ERR_OK && context->passed) /* it is an error to whoever reads it */
		err = failure->err = ERR_PROVIDER_REJECTED;
	if (err != ERR_OK)
		return err;
	/* whatever was read of the body is no answer */
	answer_begin(a, context, a->from, a->work, a->into);
	a->stop = ANSWER_REFUSED;
	err = give_result(a, result, failure);
	if (err == ERR_OK)
		result->unanswered = true;
	return err;
}
