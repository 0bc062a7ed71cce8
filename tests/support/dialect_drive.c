#include "tests/support/dialect_drive.h"

#include "codec/base/must.h"
#include "codec/dialects.h"
#include "codec/set.h"

#include <stdlib.h>

enum { ARENA_CAP = 2 * 1024 * 1024, BODY_MAX = 64 * 1024 };

struct drive {
	const struct dialect *dialect;
	uint8_t choice, second;
	struct slice body;
	struct json_work *work;
	struct arena_pool pool;
	struct arena arena;
};

/* Our output is JSON; only deeper than we read it may be what was deep before. */
static void check_output(struct drive *d, struct gather *g)
{
	struct fault fault = { 0 };
	struct slice text =
		gather_done(g) == ERR_OK ? gather_flat(g, &d->arena) : (struct slice){ NULL, 0 };

	if (slice_absent(text))
		return; /* the arena's end */
	must(text.len == g->total);
	must(json_valid(text, NULL, d->work, &fault) || fault.err == ERR_TOO_DEEP ||
	     fault.err == ERR_TOO_MANY_KEYS);
}

/* ---- requests ---- */

static struct profile profile_of(const struct drive *d)
{
	struct profile profile;
	uint8_t bits = d->choice >> 1;

	profile_defaults(&profile, d->dialect->id, SLICE("2023-06-01"));
	profile.image = bits & 1;
	profile.audio = bits & 1;
	profile.forced_tool = bits & 2;
	profile.structured_output = bits & 4;
	profile.prefill = bits & 8;
	profile.text_content_as_string = bits & 8;
	profile.user_after_tool = bits & 16;
	profile.id_rule = bits & 32 ? ID_RULE_MISTRAL9 : ID_RULE_NONE;
	profile.max_stop = bits & 64 ? 1 : 4;
	return profile;
}

static void check_same(struct drive *d, const struct encode_out *a, const struct encode_out *b)
{
	struct slice left = gather_flat(&a->body, &d->arena);
	struct slice right = gather_flat(&b->body, &d->arena);

	must(a->adjustments == b->adjustments && a->max_tokens == b->max_tokens);
	must(slice_absent(left) || slice_absent(right) || slice_eq(left, right));
}

static void drive_request(struct drive *d)
{
	struct profile profile = profile_of(d);
	struct sampling_request request = { 0 };
	struct encode_out out, again;
	struct fault fault = { 0 };
	struct jsonrpc rpc;

	if (sampling_read(d->body, (enum revision)(d->second % REVISION_COUNT),
			  &sampling_limits_default, d->work, &d->arena, &rpc, &request,
			  &fault) != ERR_OK ||
	    rpc.method != RPC_CREATE_MESSAGE)
		return;
	struct encode_in in = { .request = &request,
				.profile = &profile,
				.model = SLICE("model \"x\""),
				.max_tokens = 100,
				.final_round = d->second & 128 };
	enum err err = dialect_encode(d->dialect, &in, d->work, &d->arena, &out, &fault);
	if (err != ERR_OK) {
		must(fault.err == err);
		must(err == ERR_BUSY || err_info(err)->code == -32602);
		return;
	}
	check_output(d, &out.body);
	must(out.body.images <= out.body.total);
	if (dialect_encode(d->dialect, &in, d->work, &d->arena, &again, &fault) == ERR_OK)
		check_same(d, &out, &again);
}

/* ---- answers ---- */

static struct decode_context context_of(const struct drive *d)
{
	static struct slice names[] = { SLICE_INIT("get_weather"), SLICE_INIT("files.read"),
					SLICE_INIT("__schema__") };
	static struct tool_alias aliases[] = { { SLICE_INIT("files_read_601e4eb6"),
						 SLICE_INIT("files.read") } };
	static struct key_alias keys[] = { { SLICE_INIT("get_weather"), SLICE_INIT("_top_81bf98e4"),
					     SLICE_INIT("$top") } };
	static const struct key_list list = { .at = keys, .count = COUNT_OF(keys) };
	static struct slice stops[] = { SLICE_INIT("END"), SLICE_INIT("\\n\\n") };
	uint8_t bits = d->choice >> 1;

	return (struct decode_context){ .revision = REVISION_2025_11_25,
					.tools_present = bits & 1,
					.calls_forbidden = bits & 2,
					.native_schema = bits & 4,
					.think_tags = bits & 8,
					.teachable = (learn_set)~0,
					.requested_model = SLICE("asked \"for\""),
					.tool_names = names,
					.tool_count = 3,
					.aliases = aliases,
					.alias_count = 1,
					.keys = &list,
					.emulate_stop = stops,
					.emulate_stop_count = bits & 16 ? 2 : 0,
					.audio_format = bits & 32 ? SLICE("wav")
								  : (struct slice){ NULL, 0 } };
}

static void drive_answer(struct drive *d)
{
	static const uint16_t statuses[] = { 200, 200, 200, 201, 302, 400, 401, 402,
					     403, 404, 413, 422, 429, 500, 503, 529 };
	struct decode_context context = context_of(d);
	struct provider_answer answer = { .status = statuses[d->second % COUNT_OF(statuses)],
					  .body = d->body,
					  .wall_s = 1800000000 };
	struct sampling_result result;
	struct provider_failure failure;
	struct gather g;

	if (d->second & 16) /* the body's front as a header: it may be a date or a number */
		answer.headers.retry_after =
			slice_of(d->body.at, d->body.len < 40 ? d->body.len : 40);
	enum err err = dialect_decode(d->dialect, &context, &answer, d->work, &d->arena, &result,
				      &failure);
	if (err != ERR_OK) {
		must(failure.err == err);
		must(err == ERR_BUSY || err == ERR_CONTEXT_WINDOW ||
		     (err >= ERR_PROVIDER_RATE && err <= ERR_PROVIDER_ANSWER));
		must(failure.retry_after_ms >= -1);
		return;
	}
	must(result.block_count >= 1 && !slice_absent(result.model));
	must(result.usage.cache_read + result.usage.cache_write <= result.usage.input);
	gather_init(&g, &d->arena);
	sampling_write_bare(&g, &result, context.revision, context.tools_present, NULL);
	check_output(d, &g);
}

void dialect_drive(enum dialect_id id, const uint8_t *data, size_t size)
{
	if (size < DRIVE_HEADER || size - DRIVE_HEADER > BODY_MAX)
		return;
	static struct json_work *work; /* kept: it is large, and whole again after every use */
	if (work == NULL)
		work = json_work_new(codec_set_best());
	must(work != NULL);
	struct drive d = { .dialect = dialect_get(id),
			   .choice = data[0],
			   .second = data[1],
			   .body = slice_of((const char *)data + DRIVE_HEADER, size - DRIVE_HEADER),
			   .work = work,
			   .pool = { .fail_next = data[2] == '0' ? 0 : data[2] } };

	arena_init(&d.arena, &d.pool, ARENA_CAP);
	if (d.choice & 1)
		drive_answer(&d);
	else
		drive_request(&d);
	arena_give(&d.arena);
	arena_pool_fini(&d.pool);
}
