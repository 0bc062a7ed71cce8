#include "tests/support/stream_case.h"

#include "codec/base/must.h"
#include "codec/dialects.h"
#include "codec/set.h"

#include <stdio.h>

enum { SHORT = 1500, STRIDE = 37 };

static struct slice tools[] = { SLICE_INIT("get_weather"), SLICE_INIT("a"), SLICE_INIT("b") };

void stream_case_init(struct stream_case *c, enum dialect_id id)
{
	*c = (struct stream_case){
		.dialect = dialect_get(id),
		.work = json_work_new(codec_set_best()),
		.pool = { .keep_max = 64 },
		.context = { .revision = REVISION_2025_11_25,
			     .tools_present = true,
			     .requested_model = SLICE("asked"),
			     .tool_names = tools,
			     .tool_count = COUNT_OF(tools) },
		.limits = { .answer_bytes_max = 1 << 20 },
		.memory = 8 << 20,
		.ending = STREAM_ENDED,
	};
	must(c->work != NULL && stream_slab_init(&c->streams, 1));
	c->stream = stream_take(&c->streams);
	arena_init(&c->arena, &c->pool, c->memory);
}

void stream_case_fini(struct stream_case *c)
{
	stream_give(&c->streams, c->stream);
	arena_give(&c->arena);
	arena_pool_fini(&c->pool);
	json_work_free(c->work);
	stream_slab_fini(&c->streams);
}

/* ---- what came of it ---- */

static void put_usage(struct gather *g, const struct usage *usage)
{
	const uint64_t counters[] = { usage->input, usage->output, usage->cache_read,
				      usage->cache_write, usage->reasoning };

	if (!usage->known)
		return;
	gather_lit(g, " | usage ");
	for (size_t i = 0; i < COUNT_OF(counters); i++) {
		if (i != 0)
			gather_lit(g, "/");
		gather_uint(g, counters[i]);
	}
}

static void put_result(struct gather *g, const struct sampling_result *result)
{
	gather_raw(g, slice_str(stop_reason_name(result->stop)));
	for (uint32_t i = 0; i < result->block_count; i++) {
		const struct result_block *block = &result->blocks[i];
		gather_lit(g, " | ");
		if (!block->is_tool_use) {
			gather_str(g, slice_absent(block->data) ? block->text : block->data);
			continue;
		}
		gather_raw(g, block->id);
		gather_lit(g, " ");
		gather_raw(g, block->name);
		gather_lit(g, " ");
		gather_raw(g, block->input);
	}
	put_usage(g, &result->usage);
	for (int i = 0; i < ADJUST_COUNT; i++)
		if (result->adjustments & ADJUST_BIT(i)) {
			gather_lit(g, " | ");
			gather_raw(g, slice_str(adjustment_code((enum adjustment)i)));
		}
}

static void put_failure(struct gather *g, const struct provider_failure *failure)
{
	gather_int(g, err_info(failure->err)->code);
	gather_lit(g, " ");
	gather_raw(g, slice_str(failure->detail != NULL ? failure->detail
							: err_info(failure->err)->text));
	if (failure->retryable)
		gather_lit(g, " | retryable");
	if (failure->usage_known)
		put_usage(g, &failure->usage);
}

/* ---- runs ---- */

/* A byte at a time, so that no event is taken by its shape. */
static enum stream_state feed_without_shapes(struct stream *s, struct slice body)
{
	enum stream_state state = STREAM_OPEN;

	for (size_t i = 0; i < body.len; i++) {
		s->shape.set = false;
		state = stream_feed(s, slice_of(body.at + i, 1));
	}
	return state;
}

struct slice stream_case_read(struct stream_case *c, struct slice body, struct stream_cut cut)
{
	const struct provider_answer head = { .status = 200, .chance = "chance" };
	struct gather g;

	arena_give(&c->arena);
	c->arena.cap = c->memory;
	stream_open(c->stream, c->dialect, &c->context, &head, &c->limits, c->work, &c->arena);
	c->state = c->without_shapes ? feed_without_shapes(c->stream, body)
				     : stream_feed_cut(c->stream, body, cut);
	c->progress = c->stream->progress;
	c->used = c->arena.used;
	c->err = stream_end(c->stream, c->ending, &c->result, &c->failure);
	c->arena.cap = SIZE_MAX;
	gather_init(&g, &c->arena);
	if (c->err == ERR_OK)
		put_result(&g, &c->result);
	else
		put_failure(&g, &c->failure);
	gather_raw(&g, slice_of("", 1));
	return gather_flat(&g, &c->arena);
}

const char *stream_case_run(struct stream_case *c, const char *body, struct stream_cut cut)
{
	struct slice text = stream_case_read(c, slice_str(body), cut);

	must(!slice_absent(text));
	return text.at;
}

bool stream_progress_same(const struct stream_progress *a, const struct stream_progress *b)
{
	return a->output_bytes == b->output_bytes && a->deltas == b->deltas &&
	       a->begun == b->begun && a->event_seen == b->event_seen;
}

static bool same(struct stream_case *c, const char *body, const char *expect, const char *how,
		 struct stream_cut cut)
{
	const char *have = stream_case_run(c, body, cut);

	if (strcmp(have, expect) == 0)
		return true;
	(void)snprintf(c->why, sizeof(c->why), "%s, %zu:\n  have: %.400s\n  want: %.400s", how,
		       cut.once, have, expect);
	return false;
}

/* In one read, with every instruction set of this machine. */
static bool same_in_all_sets(struct stream_case *c, const char *body, const char *expect)
{
	const struct codec_set *set;
	bool all = true;

	for (size_t i = 0; all && (set = codec_set_at(i)) != NULL; i++) {
		json_work_use(c->work, set);
		all = same(c, body, expect, set->name, (struct stream_cut){ 0 });
	}
	return all;
}

const char *stream_case_differs(struct stream_case *c, const char *body, const char *expect)
{
	size_t len = strlen(body), stride = len <= SHORT ? 1 : STRIDE;
	bool all = same_in_all_sets(c, body, expect);
	struct stream_progress whole = c->progress;

	all = all && same(c, body, expect, "byte by byte", (struct stream_cut){ .step = 1 });
	must(!all || stream_progress_same(&whole, &c->progress));
	for (size_t at = 1; all && at < len; at += stride)
		all = same(c, body, expect, "cut in two", (struct stream_cut){ .once = at });
	c->without_shapes = true;
	all = all && same(c, body, expect, "without shapes", (struct stream_cut){ 0 });
	c->without_shapes = false;
	must(!all || stream_progress_same(&whole, &c->progress));
	return all ? NULL : c->why;
}
