/* test_vectors.c - golden vectors: requests and answers of contract/providers.md, one test each, which
 * every instruction set of the machine has to pass (for NEON: integration/test_codec_neon.py).
 *
 * The folders beside this file hold vectors as they are; pending.txt names those that cannot pass
 * yet, and why. Where the reference vectors are at hand ($SLUICE_SHARED, or ../shared), the
 * copies must be identical to them, and every one of them must be in one of the two sets. Those in
 * responses/ are ours, of the same form: the reference has none of that format. */
#include "codec/base/must.h"
#include "codec/dialect/dialect.h"
#include "codec/dialect/dialect_names.h"
#include "codec/dialect/replay.h"
#include "codec/dialects.h"
#include "codec/json/json_read.h"
#include "codec/mcp/jsonrpc.h"
#include "codec/mcp/sampling.h"
#include "codec/set.h"
#include "tests/support/golden_replay.h"
#include "tests/support/golden_set.h"
#include "tests/support/stream_cut.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
	ARENA_CAP = 8 * 1024 * 1024,
	PATH_SIZE = 2 * GOLDEN_NAME_MAX,
	WHY_SIZE = 512,
	SPLIT_MAX = 700, /* streams of up to so many bytes are cut in two at every place */
};

static const char *const shared_directions[] = { "mcp_to_anthropic", "mcp_to_openai",
						 "anthropic_to_mcp", "openai_to_mcp",
						 "anthropic_sse",    "openai_sse" };

/* ---- one vector ---- */

/* What one run owns; given back whatever the outcome is. */
struct run {
	const struct vector *vector;
	struct json_work *work;
	struct arena_pool pool;
	struct arena arena;
	char why[WHY_SIZE];
};

static void run_begin(struct run *run, const struct vector *vector, const struct codec_set *set)
{
	*run = (struct run){ .vector = vector,
			     .work = json_work_new(codec_set_best()),
			     .pool = { .keep_max = 64 } };
	must(run->work != NULL);
	json_work_use(run->work, set);
	arena_init(&run->arena, &run->pool, ARENA_CAP);
}

static void run_end(struct run *run)
{
	arena_give(&run->arena);
	arena_pool_fini(&run->pool);
	json_work_free(run->work);
}

static bool wrong(struct run *run, const char *what)
{
	if (run->why[0] == '\0')
		(void)snprintf(run->why, sizeof(run->why), "%s", what);
	return false;
}

/* A string of the vector as plain text in the run's arena; absent when it is not there. */
static struct slice plain_at(struct run *run, const struct json_tree *tree, const char *path)
{
	const struct json_tree *node = json_tree_get(tree, path);

	if (node == NULL || node->kind != JSON_STRING)
		return (struct slice){ NULL, 0 };
	struct slice plain = json_str_plain(node->text, &run->arena);
	must(!slice_absent(plain));
	return plain;
}

static bool same_tree(struct run *run, const struct json_tree *want, struct slice text, bool subset)
{
	char why[WHY_SIZE / 2] = "";
	struct json_tree *have = json_tree_parse(text);

	if (have == NULL)
		return wrong(run, "our output is not JSON");
	bool same = json_tree_same(want, have, subset, why, sizeof(why));
	json_tree_free(have);
	if (!same)
		(void)snprintf(run->why, sizeof(run->why), "%s\n  have: %.*s", why,
			       text.len > 200 ? 200 : (int)text.len, text.at);
	return same;
}

/* ---- what all kinds have ---- */

static const struct dialect *dialect_of(const struct run *run)
{
	return dialect_get(run->vector->dialect);
}

static bool same_adjustments(struct run *run, adjust_set have)
{
	const struct json_tree *list = json_tree_get(run->vector->tree, "adjustments");
	adjust_set want = 0;

	for (const struct json_tree *item = list == NULL ? NULL : list->first; item != NULL;
	     item = item->next) {
		int found = -1;
		for (int i = 0; i < ADJUST_COUNT; i++)
			if (json_str_eq(item->text, slice_str(adjustment_code((enum adjustment)i))))
				found = i;
		if (found < 0)
			return wrong(run, "the vector has an adjustment that we do not know");
		want |= ADJUST_BIT(found);
	}
	for (int i = 0; i < ADJUST_COUNT; i++)
		if ((want ^ have) & ADJUST_BIT(i)) {
			(void)snprintf(run->why, sizeof(run->why), "adjustment %s is %s",
				       adjustment_code((enum adjustment)i),
				       want & ADJUST_BIT(i) ? "missing" : "too many");
			return false;
		}
	return true;
}

/* The error as it would leave the gateway, against the vector's. */
static bool same_error(struct run *run, const struct fault *fault, const struct error_data *data)
{
	const struct json_tree *want = json_tree_get(run->vector->tree, "error");
	struct slice contains = plain_at(run, want, "message_contains");
	struct gather g;

	gather_init(&g, &run->arena);
	jsonrpc_write_error(&g, SLICE("1"), fault, data);
	struct slice text = gather_flat(&g, &run->arena);
	must(!slice_absent(text));
	if (want == NULL) {
		(void)snprintf(run->why, sizeof(run->why), "unexpected error: %.*s", (int)text.len,
			       text.at);
		return false;
	}
	struct json_tree *have = json_tree_parse(text);
	must(have != NULL);
	const struct json_tree *code = json_tree_get(have, "error.code");
	struct slice message = plain_at(run, have, "error.message");
	bool same = slice_eq(code->text, json_tree_get(want, "code")->text);
	if (!same)
		(void)wrong(run, "another error code");
	if (same && !slice_has_nocase(message, contains)) {
		(void)snprintf(run->why, sizeof(run->why), "message \"%.*s\" lacks \"%.*s\"",
			       (int)message.len, message.at, (int)contains.len, contains.at);
		same = false;
	}
	const struct json_tree *want_data = json_tree_get(want, "data");
	if (same && want_data != NULL)
		same = json_tree_same(want_data, json_tree_get(have, "error.data"), true, run->why,
				      sizeof(run->why));
	json_tree_free(have);
	return same;
}

static enum revision revision_at(struct run *run, const char *path)
{
	enum revision revision;

	must(revision_find(plain_at(run, run->vector->tree, path), &revision));
	return revision;
}

/* ---- requests ---- */

static void set_number(const struct json_tree *caps, const char *key, uint32_t *out)
{
	const struct json_tree *node = json_tree_get(caps, key);
	int64_t value;

	if (node == NULL)
		return;
	must(json_to_int64(node->text, &value));
	*out = (uint32_t)value;
}

static void set_bool(const struct json_tree *caps, const char *key, bool *out)
{
	const struct json_tree *node = json_tree_get(caps, key);

	if (node != NULL)
		*out = node->kind == JSON_TRUE;
}

static void set_temperature(const struct json_tree *caps, struct profile *profile)
{
	const struct json_tree *range = json_tree_get(caps, "temperature");

	if (range == NULL)
		return;
	profile->temperature_never = range->kind == JSON_NULL;
	if (range->kind != JSON_ARRAY)
		return;
	profile->temperature_min = json_to_double(range->first->text);
	profile->temperature_max = json_to_double(range->last->text);
}

static struct profile profile_of(struct run *run)
{
	const struct json_tree *config = json_tree_get(run->vector->tree, "config");
	const struct json_tree *caps = json_tree_get(config, "caps");
	struct profile profile;

	profile_defaults(&profile, run->vector->dialect, plain_at(run, config, "api_version"));
	set_number(caps, "max_output", &profile.max_output);
	set_number(caps, "max_stop", &profile.max_stop);
	set_bool(caps, "image", &profile.image);
	set_bool(caps, "audio", &profile.audio);
	set_bool(caps, "forced_tool", &profile.forced_tool);
	set_bool(caps, "structured_output", &profile.structured_output);
	set_bool(caps, "prefill", &profile.prefill);
	set_bool(caps, "reasoning", &profile.reasoning);
	set_bool(caps, "tools_need_effort_none", &profile.tools_need_effort_none);
	set_bool(caps, "replay_reasoning", &profile.replay_reasoning);
	set_bool(caps, "text_content_as_string", &profile.text_content_as_string);
	set_bool(caps, "user_after_tool", &profile.user_after_tool);
	set_temperature(caps, &profile);
	if (slice_eq(plain_at(run, caps, "max_tokens_field"), SLICE("max_completion_tokens")))
		profile.max_tokens_field = MAX_TOKENS_FIELD_COMPLETION;
	if (slice_eq(plain_at(run, caps, "id_rule"), SLICE("alnum9")))
		profile.id_rule = ID_RULE_MISTRAL9;
	return profile;
}

/* Rule V10 is policy's in the product: tools need the capability that was declared. */
static bool tools_granted(const struct vector *vector)
{
	return json_tree_get(vector->tree, "client_capabilities") == NULL ||
	       json_tree_get(vector->tree, "client_capabilities.sampling.tools") != NULL;
}

/* Reads and encodes; ERR_OK gives *out. */
static enum err translate(struct run *run, struct encode_out *out, struct fault *fault)
{
	const struct vector *vector = run->vector;
	struct profile profile = profile_of(run);
	struct sampling_request *request = arena_zero(&run->arena, sizeof(*request));
	struct jsonrpc rpc;

	must(request != NULL);
	enum err err = sampling_read(golden_value(vector, json_tree_get(vector->tree, "in")),
				     revision_at(run, "revision"), &sampling_limits_default,
				     run->work, &run->arena, &rpc, request, fault);
	if (err != ERR_OK)
		return err;
	if (request->tools_present && !tools_granted(vector)) {
		*fault = (struct fault){ .err = ERR_TOOLS_NOT_GRANTED, .offset = FAULT_NO_OFFSET };
		return fault->err;
	}
	struct encode_in in = { .request = request,
				.profile = &profile,
				.model = plain_at(run, vector->tree, "config.model"),
				.stream = json_tree_true(vector->tree, "config.stream"),
				.max_tokens = request->max_tokens > UINT32_MAX
						      ? UINT32_MAX
						      : (uint32_t)request->max_tokens };
	golden_remember(vector, run->work, &run->arena, &in);
	return dialect_encode(dialect_of(run), &in, run->work, &run->arena, out, fault);
}

static bool request_passes(struct run *run)
{
	const struct json_tree *want = json_tree_get(run->vector->tree, "out");
	struct encode_out out;
	struct fault fault = { 0 };

	if (translate(run, &out, &fault) != ERR_OK)
		return same_error(run, &fault, NULL);
	if (want == NULL)
		return wrong(run, "an error was expected");
	struct slice body = gather_flat(&out.body, &run->arena);
	must(!slice_absent(body));
	return same_tree(run, want, body, false) && same_adjustments(run, out.adjustments);
}

/* ---- answers ---- */

/* The raw strings of an array in the vector. */
static struct slice *raw_list(struct run *run, const char *path, uint32_t *count)
{
	const struct json_tree *list = json_tree_get(run->vector->tree, path);
	struct slice *items = arena_take(&run->arena, 64 * sizeof(*items));

	must(items != NULL);
	*count = 0;
	for (const struct json_tree *item = list == NULL ? NULL : list->first; item != NULL;
	     item = item->next) {
		must(*count < 64);
		items[(*count)++] = item->text;
	}
	return items;
}

/* What a request with everything in it can be taught. */
static const learn_set sent_usually = LEARN_BIT(LEARN_NO_TEMPERATURE) | LEARN_BIT(LEARN_NO_STOP) |
				      LEARN_BIT(LEARN_COMPLETION_TOKENS) |
				      LEARN_BIT(LEARN_EFFORT_NONE) |
				      LEARN_BIT(LEARN_NO_FORCED_TOOL);

static struct decode_context context_of(struct run *run)
{
	const struct json_tree *tree = json_tree_get(run->vector->tree, "context");
	struct decode_context context = { .revision = revision_at(run, "context.revision") };
	struct tool_names names;

	context.native_schema = json_tree_true(tree, "native_schema");
	context.think_tags = json_tree_true(tree, "think_tags");
	context.requested_model = plain_at(run, tree, "requested_model");
	context.audio_format = plain_at(run, tree, "audio_format");
	context.tool_names = raw_list(run, "context.tools", &context.tool_count);
	context.tools_present = context.tool_count != 0;
	context.replay_reasoning = json_tree_get(run->vector->tree, "replay_saved") != NULL;
	context.teachable = sent_usually;
	context.calls_forbidden = context.native_schema || context.tool_count == 0;
	context.emulate_stop = raw_list(run, "context.emulate_stop", &context.emulate_stop_count);
	tool_names_init(&names, run->work, &run->arena);
	for (uint32_t i = 0; i < context.tool_count; i++)
		must(!slice_absent(tool_name_sent(&names, context.tool_names[i])));
	context.aliases = names.aliases;
	context.alias_count = names.alias_count;
	return context;
}

static struct provider_answer answer_of(struct run *run)
{
	const struct json_tree *tree = run->vector->tree;
	const struct json_tree *headers = json_tree_get(tree, "http.headers");
	const struct json_tree *in = json_tree_get(tree, "in");
	int64_t status;

	must(json_to_int64(json_tree_get(tree, "http.status")->text, &status));
	struct provider_answer answer = {
		.status = (uint16_t)status,
		.headers = { .date = plain_at(run, headers, "date"),
			     .retry_after = plain_at(run, headers, "retry-after"),
			     .retry_after_ms = plain_at(run, headers, "retry-after-ms"),
			     .should_retry = plain_at(run, headers, "x-should-retry"),
			     .request_id = plain_at(run, headers, "request-id") },
		.body = in->kind == JSON_STRING ? plain_at(run, tree, "in")
						: golden_value(run->vector, in),
	};
	if (slice_absent(answer.headers.request_id))
		answer.headers.request_id = plain_at(run, headers, "x-request-id");
	return answer;
}

static bool same_usage(struct run *run, const struct usage *have)
{
	const struct json_tree *want = json_tree_get(run->vector->tree, "usage");
	char text[256];

	if (want == NULL || want->kind == JSON_NULL)
		return !have->known || wrong(run, "usage was found where there is none");
	if (!have->known)
		return wrong(run, "usage is missing");
	int len = snprintf(text, sizeof(text),
			   "{\"input_tokens\":%llu,\"output_tokens\":%llu,"
			   "\"cache_read_tokens\":%llu,\"cache_write_tokens\":%llu,"
			   "\"reasoning_tokens\":%llu}",
			   (unsigned long long)have->input, (unsigned long long)have->output,
			   (unsigned long long)have->cache_read,
			   (unsigned long long)have->cache_write,
			   (unsigned long long)have->reasoning);
	return same_tree(run, want, slice_of(text, (size_t)len), false);
}

/* What a vector's `learn` looks like. */
static const char *const learn_texts[] = {
	[LEARN_NOTHING] = NULL,
	[LEARN_NO_TEMPERATURE] = "{\"temperature\":null}",
	[LEARN_NO_STOP] = "{\"max_stop\":0}",
	[LEARN_COMPLETION_TOKENS] = "{\"max_tokens_field\":\"max_completion_tokens\"}",
	[LEARN_EFFORT_NONE] = "{\"tools_need_effort_none\":true}",
	[LEARN_NO_FORCED_TOOL] = "{\"forced_tool\":false}",
	[LEARN_UNBIND_THINKING] = "{\"unbind_thinking\":true}",
};

static bool same_learn(struct run *run, enum learn have)
{
	const struct json_tree *want = json_tree_get(run->vector->tree, "learn");

	if (want == NULL)
		return have == LEARN_NOTHING || wrong(run, "something was learnt");
	if (have == LEARN_NOTHING)
		return wrong(run, "nothing was learnt");
	return same_tree(run, want, slice_str(learn_texts[have]), false);
}

static bool failure_passes(struct run *run, const struct provider_failure *failure)
{
	struct fault fault = { .err = failure->err,
			       .offset = FAULT_NO_OFFSET,
			       .detail = failure->detail };
	struct error_data data = error_data_none;

	data.retry_after_ms = failure->retry_after_ms;
	data.provider_status = failure->status;
	data.retryable = failure->retryable;
	data.provider_request_id = failure->request_id;
	return same_error(run, &fault, &data) && same_learn(run, failure->learn);
}

/* What is remembered of an answer, against the vector's `replay_saved`: an entry for each call, all the
 * same. */
static bool same_replay(struct run *run, const struct decode_context *context,
			const struct sampling_result *result)
{
	const struct json_tree *want = json_tree_get(run->vector->tree, "replay_saved");
	struct encode_out sent = { .decode = *context };
	bool same = true;

	if (want == NULL)
		return slice_absent(result->replay) || wrong(run, "something is remembered");
	if (slice_absent(result->replay))
		return wrong(run, "nothing is remembered");
	gather_init(&sent.body, &run->arena);
	gather_lit(&sent.body, "{\"messages\":[]}]}");
	struct slice record =
		replay_write(dialect_of(run), plain_at(run, run->vector->tree, "context.provider"),
			     &sent, result, &run->arena);
	must(!slice_absent(record));
	struct json_tree *have = json_tree_parse(record);
	must(have != NULL);
	for (const struct json_tree *entry = want->first; same && entry != NULL;
	     entry = entry->next) {
		same = slice_eq(json_tree_get(entry, "provider")->text,
				json_tree_get(have, "provider")->text) &&
		       slice_eq(json_tree_get(entry, "model")->text,
				json_tree_get(have, "model")->text);
		if (!same)
			(void)wrong(run, "another provider or model is remembered");
		else
			same = same_tree(run, json_tree_get(have, "content"),
					 golden_replay_content(run->vector, &run->arena, entry),
					 false);
	}
	json_tree_free(have);
	return same;
}

/* What came of an answer, against the vector's `out` or `error`. */
static bool outcome_passes(struct run *run, const struct decode_context *context, enum err err,
			   const struct sampling_result *result,
			   const struct provider_failure *failure)
{
	const struct json_tree *want = json_tree_get(run->vector->tree, "out");
	struct gather g;

	if (err != ERR_OK)
		return failure_passes(run, failure);
	if (want == NULL)
		return wrong(run, "an error was expected");
	gather_init(&g, &run->arena);
	sampling_write_bare(&g, result, context->revision, context->tools_present, NULL);
	struct slice text = gather_flat(&g, &run->arena);
	must(!slice_absent(text));
	return same_tree(run, want, text, false) && same_usage(run, &result->usage) &&
	       same_adjustments(run, result->adjustments) && same_replay(run, context, result);
}

static bool answer_passes(struct run *run)
{
	struct decode_context context = context_of(run);
	struct provider_answer answer = answer_of(run);
	struct sampling_result result;
	struct provider_failure failure;
	enum err err = dialect_decode(dialect_of(run), &context, &answer, run->work, &run->arena,
				      &result, &failure);

	return outcome_passes(run, &context, err, &result, &failure);
}

/* ---- streams ---- */

static bool stream_passes_cut(struct run *run, struct stream *s, struct slice body,
			      struct stream_cut cut)
{
	static const struct stream_limits limits = { .answer_bytes_max = 1 << 20 };
	struct decode_context context = context_of(run);
	struct provider_answer head = answer_of(run);
	struct sampling_result result;
	struct provider_failure failure;

	stream_open(s, dialect_of(run), &context, &head, &limits, run->work, &run->arena);
	(void)stream_feed_cut(s, body, cut);
	enum err err = stream_end(s, STREAM_ENDED, &result, &failure);
	bool passes = outcome_passes(run, &context, err, &result, &failure);
	arena_give(&run->arena);
	return passes;
}

/* As it was recorded, in one piece, byte by byte, and in two pieces. */
static bool stream_passes(struct run *run)
{
	struct slice body = json_tree_string(run->vector->tree, "in");
	const struct json_tree *sizes = json_tree_get(run->vector->tree, "chunk_sizes");
	struct stream_slab streams;

	must(!slice_absent(body) && stream_slab_init(&streams, 1));
	struct stream *s = stream_take(&streams);
	bool passes = stream_passes_cut(run, s, body, (struct stream_cut){ .step = 0 }) &&
		      stream_passes_cut(run, s, body, (struct stream_cut){ .step = 1 });
	if (passes && sizes->kind == JSON_ARRAY && sizes->first != NULL)
		passes = stream_passes_cut(run, s, body,
					   (struct stream_cut){ .sizes = sizes->first });
	for (size_t at = 1; passes && body.len <= SPLIT_MAX && at < body.len; at++)
		passes = stream_passes_cut(run, s, body, (struct stream_cut){ .once = at });
	stream_give(&streams, s);
	stream_slab_fini(&streams);
	free((void *)(uintptr_t)body.at);
	return passes;
}

/* ---- tests ---- */

static size_t passed;

/* With everything else given back; ends the test where it does not. */
static void vector_holds_by(const struct vector *vector, const struct codec_set *set)
{
	struct run run;

	run_begin(&run, vector, set);
	bool holds = vector->request    ? request_passes(&run)
		     : vector->streamed ? stream_passes(&run)
					: answer_passes(&run);
	run_end(&run);
	if (!holds)
		fail_msg("%s by %s: %s", vector->name, set->name, run.why);
}

static void vector_holds(void **state)
{
	const struct codec_set *set;

	for (size_t i = 0; (set = codec_set_at(i)) != NULL; i++)
		vector_holds_by(*state, set);
	passed++;
}

static void no_vector_is_both_passing_and_pending(void **state)
{
	const struct golden_set *sets = *state;

	for (size_t i = 0; i < sets->count; i++)
		if (golden_is_pending(sets, sets->vectors[i].name))
			fail_msg("%s is in pending.txt and in its folder", sets->vectors[i].name);
	assert_int_equal(sets->count - sets->own_count + sets->pending_count, GOLDEN_COUNT);
	assert_true(sets->own_count > 0);
}

static const struct vector *find_vector(const struct golden_set *sets, const char *name)
{
	for (size_t i = 0; i < sets->count; i++)
		if (strcmp(sets->vectors[i].name, name) == 0)
			return &sets->vectors[i];
	return NULL;
}

/* The number of reference vectors in the direction; each must be in a set, copies unchanged. */
static size_t compare_direction(const struct golden_set *sets, const char *shared,
				const char *direction)
{
	struct dirent **entries;
	char path[2 * PATH_SIZE], name[PATH_SIZE];

	(void)snprintf(path, sizeof(path), "%s/%s", shared, direction);
	int count = scandir(path, &entries, golden_is_json, alphasort);
	assert_true(count > 0);
	for (int i = 0; i < count; i++) {
		(void)snprintf(name, sizeof(name), "%s/%s", direction, entries[i]->d_name);
		free(entries[i]);
		const struct vector *vector = find_vector(sets, name);
		if (vector == NULL && !golden_is_pending(sets, name))
			fail_msg("%s is in neither set", name);
		if (vector == NULL)
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s", shared, name);
		struct slice reference = golden_read(path);
		bool same = slice_eq(reference, vector->text);
		free((void *)(uintptr_t)reference.at);
		if (!same)
			fail_msg("%s differs from the reference vector", name);
	}
	free(entries);
	return (size_t)count;
}

static void copies_are_the_reference_vectors_and_none_is_forgotten(void **state)
{
	const struct golden_set *sets = *state;
	const char *shared = golden_shared();
	size_t count = 0;

	if (shared == NULL)
		skip();
	for (size_t i = 0; i < COUNT_OF(shared_directions); i++)
		count += compare_direction(sets, shared, shared_directions[i]);
	assert_int_equal(count, GOLDEN_COUNT);
}

int main(void)
{
	struct golden_set sets;

	golden_load(&sets);
	size_t count = sets.count + 2;
	struct CMUnitTest *tests = calloc(count, sizeof(*tests));
	must(tests != NULL);
	for (size_t i = 0; i < sets.count; i++)
		tests[i] = (struct CMUnitTest){ .name = sets.vectors[i].name,
						.test_func = vector_holds,
						.initial_state = &sets.vectors[i] };
	tests[count - 2] = (struct CMUnitTest)cmocka_unit_test_prestate(
		no_vector_is_both_passing_and_pending, &sets);
	tests[count - 1] = (struct CMUnitTest)cmocka_unit_test_prestate(
		copies_are_the_reference_vectors_and_none_is_forgotten, &sets);
	int failed = _cmocka_run_group_tests("vectors", tests, count, NULL, NULL);
	(void)printf("%zu passed, up to the set %s; %zu pending by name\n", passed,
		     codec_set_best()->name, sets.pending_count);
	free(tests);
	golden_free(&sets);
	return failed != 0;
}
