/* fuzz_codec_sets.c - every instruction set says the same of every input, wherever it lies in memory
 * and whatever lies behind it.
 *
 * Two bytes in front choose: [0] the task, [1] revision and profile of a request, status and context
 * of an answer. Every set runs twice: with a block of exactly the text's size, so that ASan sees a byte
 * read too far, and inside a block full of quotes, which show when they are believed. */
#include "codec/base/must.h"
#include "codec/dialects.h"
#include "codec/set.h"

#include <stdlib.h>

enum {
	HEADER = 2,
	TEXT_MAX = 64 * 1024,
	ARENA_CAP = 8 * 1024 * 1024,
	SETS_MAX = 8,
	MARGIN = 256, /* of quotes around the text */
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum task { VALID, TO_ANTHROPIC, TO_OPENAI, FROM_ANTHROPIC, FROM_OPENAI, TASK_COUNT };

/* All that a caller can see of a run. */
struct outcome {
	enum err err;
	struct fault fault;
	struct slice id; /* of a request, as it stands */
	adjust_set adjustments;
	struct provider_failure failure;
	struct slice output;
};

struct run {
	const struct codec_set *set;
	struct json_work *work;
	uint8_t task, choice;
	struct slice text;
	struct arena *into;
};

static struct slice whole(struct gather *g, struct arena *into)
{
	must(gather_done(g) == ERR_OK);
	struct slice text = gather_flat(g, into);
	must(!slice_absent(text) && text.len == g->total);
	return text;
}

static void run_request(const struct run *run, struct outcome *outcome)
{
	enum dialect_id dialect = run->task == TO_OPENAI ? DIALECT_OPENAI : DIALECT_ANTHROPIC;
	struct sampling_request request = { 0 };
	struct jsonrpc rpc = { 0 };
	struct profile profile;
	struct encode_out out = { 0 };

	outcome->err = sampling_read(run->text, (enum revision)(run->choice % REVISION_COUNT),
				     &sampling_limits_default, run->work, run->into, &rpc, &request,
				     &outcome->fault);
	outcome->id = rpc.id;
	if (outcome->err != ERR_OK || rpc.method != RPC_CREATE_MESSAGE)
		return;
	profile_defaults(&profile, dialect, SLICE("2023-06-01"));
	profile.image = profile.audio = true;
	profile.structured_output = run->choice & 64;
	profile.forced_tool = run->choice & 128;
	const struct encode_in in = {
		.request = &request, .profile = &profile, .model = SLICE("m"), .max_tokens = 100
	};
	outcome->err = dialect_encode(dialect_get(dialect), &in, run->work, run->into, &out,
				      &outcome->fault);
	outcome->adjustments = out.adjustments;
	if (outcome->err == ERR_OK)
		outcome->output = whole(&out.body, run->into);
}

static void run_answer(const struct run *run, struct outcome *outcome)
{
	static struct slice names[] = { SLICE_INIT("get_weather"), SLICE_INIT("__schema__") };
	static const uint16_t statuses[] = { 200, 200, 200, 400, 429, 500, 503, 529 };
	const struct decode_context context = { .revision = REVISION_2025_11_25,
						.tools_present = run->choice & 8,
						.native_schema = run->choice & 16,
						.think_tags = run->choice & 32,
						.requested_model = SLICE("asked"),
						.tool_names = names,
						.tool_count = COUNT_OF(names) };
	const struct provider_answer answer = { .status = statuses[run->choice % 8],
						.body = run->text,
						.wall_s = 1800000000 };
	struct sampling_result result = { 0 };
	struct gather g;

	outcome->err = dialect_decode(
		dialect_get(run->task == FROM_OPENAI ? DIALECT_OPENAI : DIALECT_ANTHROPIC),
		&context, &answer, run->work, run->into, &result, &outcome->failure);
	outcome->adjustments = result.adjustments;
	if (outcome->err != ERR_OK)
		return;
	gather_init(&g, run->into);
	sampling_write_bare(&g, &result, context.revision, context.tools_present, NULL);
	outcome->output = whole(&g, run->into);
}

static void run_task(const struct run *run, struct outcome *outcome)
{
	if (run->task == VALID)
		outcome->err = run->set->json_valid(run->text, NULL, run->work, &outcome->fault)
				       ? ERR_OK
				       : outcome->fault.err;
	else if (run->task == TO_ANTHROPIC || run->task == TO_OPENAI)
		run_request(run, outcome);
	else
		run_answer(run, outcome);
}

/* In particular what a refusal says, and where. */
static void must_be_equal(const struct outcome *a, const struct outcome *b)
{
	must(a->err == b->err);
	must(a->fault.offset == b->fault.offset);
	must(slice_eq(a->fault.path, b->fault.path));
	must(slice_eq(slice_str(a->fault.detail), slice_str(b->fault.detail)));
	must(slice_absent(a->id) == slice_absent(b->id) && slice_eq(a->id, b->id));
	must(a->adjustments == b->adjustments);
	must(a->failure.err == b->failure.err && a->failure.learn == b->failure.learn);
	must(slice_eq(slice_str(a->failure.detail), slice_str(b->failure.detail)));
	must(a->failure.retry_after_ms == b->failure.retry_after_ms);
	must(slice_eq(a->output, b->output));
}

/* One run, and what its outcome may point to. */
struct attempt {
	char *block;
	struct arena arena;
	struct outcome outcome;
};

/* The text lies in a block of its own, `margin` quotes before and behind it. */
static void attempt_make(struct attempt *attempt, struct run run, struct slice text, size_t margin,
			 struct arena_pool *pool)
{
	size_t size = text.len + 2 * margin;

	*attempt = (struct attempt){ .block = malloc(size == 0 ? 1 : size) };
	must(attempt->block != NULL);
	(void)memset(attempt->block, '"', size);
	(void)memcpy(attempt->block + margin, text.at, text.len);
	arena_init(&attempt->arena, pool, ARENA_CAP);
	run.text = slice_of(attempt->block + margin, text.len);
	run.into = &attempt->arena;
	run_task(&run, &attempt->outcome);
	must(memcmp(run.text.at, text.at, text.len) == 0); /* is not written to */
}

static void attempt_drop(struct attempt *attempt)
{
	arena_give(&attempt->arena);
	free(attempt->block);
}

/* The work area of set number `i`: the fuzzer's own state, made once. */
static struct json_work *work_of(size_t i, const struct codec_set *set)
{
	static struct json_work *works[SETS_MAX];

	must(i < SETS_MAX);
	if (works[i] == NULL)
		works[i] = json_work_new(codec_set_best());
	must(works[i] != NULL);
	json_work_use(works[i], set);
	return works[i];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const size_t margins[] = { 0, MARGIN - 1 };
	const struct codec_set *set;
	struct attempt first, now;
	struct arena_pool pool = { .keep_max = 64 };

	if (size < HEADER || size - HEADER > TEXT_MAX)
		return 0;
	struct slice text = slice_of((const char *)data + HEADER, size - HEADER);
	struct run run = { .set = codec_set_at(0),
			   .work = work_of(0, codec_set_at(0)),
			   .task = data[0] % TASK_COUNT,
			   .choice = data[1] };
	attempt_make(&first, run, text, 0, &pool);
	for (size_t i = 0; (set = codec_set_at(i)) != NULL; i++) {
		run.set = set;
		run.work = work_of(i, set);
		for (size_t k = 0; k < COUNT_OF(margins); k++) {
			attempt_make(&now, run, text, margins[k], &pool);
			must_be_equal(&first.outcome, &now.outcome);
			attempt_drop(&now);
		}
	}
	attempt_drop(&first);
	arena_pool_fini(&pool);
	return 0;
}
