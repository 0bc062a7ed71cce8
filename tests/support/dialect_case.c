#include "tests/support/dialect_case.h"

#include "codec/base/must.h"
#include "codec/dialects.h"
#include "codec/set.h"

#include <stdio.h>
#include <stdlib.h>

enum { ARENA_CAP = 64 * 1024 * 1024 };

void case_init(struct dialect_case *c, enum dialect_id id)
{
	static struct slice tool_names[] = { SLICE_INIT("get_weather") };

	*c = (struct dialect_case){ .dialect = dialect_get(id),
				    .work = json_work_new(codec_set_best()) };
	must(c->work != NULL);
	arena_init(&c->arena, &c->pool, ARENA_CAP);
	profile_defaults(&c->profile, id, SLICE("2023-06-01"));
	c->profile.image = true;
	c->context = (struct decode_context){ .revision = REVISION_2025_11_25,
					      .tools_present = true,
					      .requested_model = SLICE("asked"),
					      .tool_names = tool_names,
					      .tool_count = 1 };
	c->answer.status = 200;
	c->answer.wall_s = 1800000000;
}

void case_reset(struct dialect_case *c)
{
	arena_give(&c->arena);
}

void case_fini(struct dialect_case *c)
{
	arena_give(&c->arena);
	arena_pool_fini(&c->pool);
	json_work_free(c->work);
}

/* The list as one text in the arena. */
static const char *flat(struct dialect_case *c, const struct gather *g)
{
	struct slice text = gather_flat(g, &c->arena);

	must(!slice_absent(text));
	text = arena_copy(&c->arena, text);
	must(!slice_absent(text));
	return text.at;
}

enum err case_encode(struct dialect_case *c, const char *params)
{
	static const char head[] =
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"sampling/createMessage\","
		"\"params\":{\"maxTokens\":100,";
	size_t head_len = sizeof(head) - 1, len = strlen(params);
	char *body = arena_take(&c->arena, head_len + len + 2);
	struct jsonrpc rpc;

	must(body != NULL);
	(void)memcpy(body, head, head_len);
	(void)memcpy(body + head_len, params, len);
	(void)memcpy(body + head_len + len, "}}", 2);
	c->request = (struct sampling_request){ 0 };
	enum err err = sampling_read(slice_of(body, head_len + len + 2), REVISION_2025_11_25,
				     &sampling_limits_default, c->work, &c->arena, &rpc,
				     &c->request, &c->fault);
	if (err != ERR_OK) { /* the test's own request is wrong */
		(void)fprintf(stderr, "%s: %s\n", params, case_fault_text(c));
		abort();
	}
	return case_encode_again(c);
}

enum err case_encode_again(struct dialect_case *c)
{
	struct encode_in in = { .request = &c->request,
				.profile = &c->profile,
				.model = SLICE("m"),
				.max_tokens = 100,
				.final_round = c->final_round,
				.replay = c->replay,
				.replay_count = c->replay_count,
				.provider = SLICE("p") };
	enum err err = dialect_encode(c->dialect, &in, c->work, &c->arena, &c->out, &c->fault);

	if (err == ERR_OK)
		c->context = c->out.decode;
	return err;
}

const char *case_body(struct dialect_case *c)
{
	return flat(c, &c->out.body);
}

enum err case_decode(struct dialect_case *c, const char *body)
{
	c->answer.body = slice_str(body);
	return dialect_decode(c->dialect, &c->context, &c->answer, c->work, &c->arena, &c->result,
			      &c->failure);
}

const char *case_result(struct dialect_case *c)
{
	struct gather g;

	gather_init(&g, &c->arena);
	sampling_write_bare(&g, &c->result, c->context.revision, c->context.tools_present, NULL);
	return flat(c, &g);
}

size_t case_starve(struct dialect_case *c, enum err (*run)(struct dialect_case *c))
{
	size_t cap = c->arena.cap, failures = 0;
	enum err err = ERR_BUSY;

	for (size_t room = 0; err != ERR_OK; room += 8) {
		c->arena.cap = c->arena.used + room;
		err = run(c);
		must(err == ERR_OK || err == ERR_BUSY);
		failures += err != ERR_OK;
	}
	c->arena.cap = cap;
	err = ERR_BUSY;
	for (size_t n = 1; err != ERR_OK; n++) {
		c->arena.at = c->arena.end; /* the next take needs a chunk */
		c->pool.fail_next = n;
		err = run(c);
		c->pool.fail_next = 0;
		must(err == ERR_OK || err == ERR_BUSY);
		failures += err != ERR_OK;
	}
	return failures;
}

const char *case_adjustments(struct dialect_case *c, adjust_set set)
{
	struct gather g;
	bool first = true;

	gather_init(&g, &c->arena);
	for (int i = 0; i < ADJUST_COUNT; i++) {
		if (!(set & ADJUST_BIT(i)))
			continue;
		gather_raw(&g, first ? SLICE("") : SLICE(" "));
		gather_raw(&g, slice_str(adjustment_code((enum adjustment)i)));
		first = false;
	}
	return flat(c, &g);
}

const char *case_fault_text(const struct dialect_case *c)
{
	return c->fault.detail != NULL ? c->fault.detail : err_info(c->fault.err)->text;
}

const char *case_failure_text(const struct dialect_case *c)
{
	return c->failure.detail != NULL ? c->failure.detail : err_info(c->failure.err)->text;
}
