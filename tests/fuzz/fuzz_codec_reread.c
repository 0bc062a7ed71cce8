/* fuzz_codec_reread.c - what our encoders write is read again and means what it was written from.
 *
 * Answers: a provider's answer becomes a result; its content, as the assistant's turn of the next
 * request, must be read as the same texts and calls. Requests: every call of the history is in OpenAI's
 * body, its `function.arguments` JSON again and equal to the input; every text is in both bodies.
 *
 * Two bytes in front choose: [0] bits 0 and 1 the task, the rest the answer's context; [1] the revision
 * of a request. */
#include "codec/base/must.h"
#include "codec/dialect/dialect.h"
#include "codec/dialects.h"
#include "codec/set.h"
#include "tests/support/json_tree.h"

#include <stdlib.h>

enum { HEADER = 2, TEXT_MAX = 64 * 1024, ARENA_CAP = 32 * 1024 * 1024, WHY_SIZE = 200 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct reread {
	struct json_work *work;
	struct arena *into;
	uint8_t choice, revision;
	struct slice text;
};

static bool same_json(struct slice a, struct slice b)
{
	char why[WHY_SIZE];
	struct json_tree *left = json_tree_parse(a), *right = json_tree_parse(b);

	must(left != NULL && right != NULL);
	bool same = json_tree_same(left, right, false, why, sizeof(why));
	json_tree_free(left);
	json_tree_free(right);
	return same;
}

static struct slice flat(struct reread *r, struct gather *g)
{
	must(gather_done(g) == ERR_OK);
	struct slice text = gather_flat(g, r->into);
	must(!slice_absent(text) && text.len == g->total);
	return text;
}

/* ---- answers ---- */

/* The member "content" of a result, as it stands. */
static struct slice content_of(struct reread *r, struct slice result)
{
	struct slice content = { NULL, 0 }, key, value;
	struct json_reader reader;

	json_open(&reader, result, NULL, r->work);
	must(json_enter_object(&reader));
	while (json_next_key(&reader, &key)) {
		must(json_skip(&reader, &value));
		if (slice_eq(key, SLICE("content")))
			content = value;
	}
	must(json_finish(&reader) && !slice_absent(content));
	return content;
}

/* The next request of a tool loop: that answer, and an answer to each of its calls. */
static struct slice next_request(struct reread *r, const struct sampling_result *result)
{
	struct gather g, bare;
	bool calls = false;

	gather_init(&bare, r->into);
	sampling_write_bare(&bare, result, REVISION_2025_11_25, true, NULL);
	gather_init(&g, r->into);
	gather_lit(&g, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"sampling/createMessage\","
		       "\"params\":{\"maxTokens\":1,\"messages\":[{\"role\":\"user\",\"content\":{"
		       "\"type\":\"text\",\"text\":\"x\"}},"
		       "{\"role\":\"assistant\",\"content\":");
	gather_raw(&g, content_of(r, flat(r, &bare)));
	gather_lit(&g, "}");
	for (uint32_t i = 0; i < result->block_count; i++) {
		if (!result->blocks[i].is_tool_use)
			continue;
		gather_raw(&g, calls ? SLICE(",") : SLICE(",{\"role\":\"user\",\"content\":["));
		gather_lit(&g, "{\"type\":\"tool_result\",\"content\":[],\"toolUseId\":");
		gather_str(&g, result->blocks[i].id);
		gather_lit(&g, "}");
		calls = true;
	}
	gather_raw(&g, calls ? SLICE("]}]}}") : SLICE("]}}"));
	return flat(r, &g);
}

static void must_be_block(const struct result_block *wrote, const struct block *read)
{
	if (wrote->is_tool_use) {
		must(read->type == BLOCK_TOOL_USE && json_str_same(read->use.id, wrote->id));
		must(json_str_same(read->use.name, wrote->name));
		must(same_json(read->use.input, wrote->input));
	} else if (!slice_absent(wrote->data)) {
		must(read->type == BLOCK_AUDIO && json_str_same(read->media.data, wrote->data));
	} else {
		must(read->type == BLOCK_TEXT && json_str_same(read->text.text, wrote->text));
	}
}

static void reread_answer(struct reread *r, enum dialect_id dialect)
{
	static struct slice names[] = { SLICE_INIT("get_weather"), SLICE_INIT("__schema__") };
	const struct decode_context context = { .revision = REVISION_2025_11_25,
						.tools_present = true,
						.calls_forbidden = r->choice & 4,
						.native_schema = r->choice & 8,
						.think_tags = r->choice & 16,
						.requested_model = SLICE("asked"),
						.tool_names = names,
						.tool_count = COUNT_OF(names) };
	const struct provider_answer answer = { .status = 200,
						.body = r->text,
						.wall_s = 1800000000 };
	struct provider_failure failure;
	struct sampling_result result;
	struct sampling_request request;
	struct jsonrpc rpc;
	struct fault fault;

	if (dialect_decode(dialect_get(dialect), &context, &answer, r->work, r->into, &result,
			   &failure) != ERR_OK)
		return;
	for (uint32_t i = 0; i < result.block_count; i++)
		if (!slice_absent(result.blocks[i].data))
			return; /* audio of a type that a request may not have */
	enum err err = sampling_read(next_request(r, &result), REVISION_2025_11_25, NULL, r->work,
				     r->into, &rpc, &request, &fault);
	must(err == ERR_OK);
	const struct message *turn = &request.messages[1];
	must(turn->assistant && turn->count == result.block_count);
	for (uint32_t i = 0; i < turn->count; i++)
		must_be_block(&result.blocks[i], &request.blocks[turn->first + i]);
}

/* ---- requests ---- */

/* The next value below `at` in the order of the text; NULL behind the last one of `root`. */
static const struct json_tree *after(const struct json_tree *at, const struct json_tree *root)
{
	if (at->first != NULL)
		return at->first;
	while (at != root && at->next == NULL)
		at = at->parent;
	return at == root ? NULL : at->next;
}

/* How many strings of the body mean `raw`. */
static uint32_t count_text(const struct json_tree *body, struct slice raw)
{
	uint32_t count = 0;

	for (const struct json_tree *at = body; at != NULL; at = after(at, body))
		count += at->kind == JSON_STRING && json_str_same(at->text, raw);
	return count;
}

/* The arguments of call number `n` of the whole history; NULL when there are fewer. */
static const struct json_tree *arguments_at(const struct json_tree *body, uint32_t n)
{
	const struct json_tree *messages = json_tree_get(body, "messages"), *calls;

	for (const struct json_tree *m = messages->first; m != NULL; m = m->next) {
		calls = json_tree_get(m, "tool_calls");
		for (const struct json_tree *c = calls == NULL ? NULL : calls->first; c != NULL;
		     c = c->next)
			if (n-- == 0)
				return json_tree_get(c, "function.arguments");
	}
	return NULL;
}

static void must_have_calls(struct reread *r, const struct sampling_request *request,
			    const struct json_tree *body)
{
	uint32_t calls = 0;

	for (uint32_t i = 0; i < request->block_count; i++) {
		if (request->blocks[i].type != BLOCK_TOOL_USE)
			continue;
		const struct json_tree *arguments = arguments_at(body, calls++);
		must(arguments != NULL && arguments->kind == JSON_STRING);
		struct slice plain = json_str_plain(arguments->text, r->into);
		must(!slice_absent(plain) && json_valid(plain, NULL, r->work, NULL));
		must(same_json(request->blocks[i].use.input, plain));
	}
	must(arguments_at(body, calls) == NULL);
}

static void reread_request(struct reread *r, enum dialect_id dialect)
{
	struct sampling_request request;
	struct encode_out out;
	struct profile profile;
	struct jsonrpc rpc;
	struct fault fault;

	if (sampling_read(r->text, (enum revision)(r->revision % REVISION_COUNT), NULL, r->work,
			  r->into, &rpc, &request, &fault) != ERR_OK ||
	    rpc.method != RPC_CREATE_MESSAGE)
		return;
	profile_defaults(&profile, dialect, SLICE("2023-06-01"));
	profile.image = profile.audio = profile.prefill = true;
	const struct encode_in in = {
		.request = &request, .profile = &profile, .model = SLICE("m"), .max_tokens = 1
	};
	if (dialect_encode(dialect_get(dialect), &in, r->work, r->into, &out, &fault) != ERR_OK)
		return;
	struct json_tree *body = json_tree_parse(flat(r, &out.body));
	must(body != NULL || !json_valid(flat(r, &out.body), NULL, r->work, NULL));
	if (body == NULL)
		return; /* deeper than we read: it was as deep before, and there is more around it now */
	if (dialect == DIALECT_OPENAI)
		must_have_calls(r, &request, body);
	if (!slice_absent(request.system))
		must(count_text(body, request.system) >= 1);
	json_tree_free(body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct json_work *work; /* the fuzzer's own state: made once */
	struct arena_pool pool = { .keep_max = 64 };
	struct arena arena;

	if (size < HEADER || size - HEADER > TEXT_MAX)
		return 0;
	if (work == NULL)
		work = json_work_new(codec_set_best());
	must(work != NULL);
	arena_init(&arena, &pool, ARENA_CAP);
	struct reread r = { .work = work,
			    .into = &arena,
			    .choice = data[0],
			    .revision = data[1],
			    .text = slice_of((const char *)data + HEADER, size - HEADER) };
	enum dialect_id dialect = data[0] & 1 ? DIALECT_OPENAI : DIALECT_ANTHROPIC;
	if (data[0] & 2)
		reread_answer(&r, dialect);
	else
		reread_request(&r, dialect);
	arena_give(&arena);
	arena_pool_fini(&pool);
	return 0;
}
