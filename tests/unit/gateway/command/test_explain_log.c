/* test_explain_log.c - what log.h writes is read back. */
#include "codec/set.h"
#include "gateway/command/explain_log.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct rig {
	struct arena_pool pool;
	struct arena arena;
	struct json_work *work;
	struct logged out;
	const char *problem;
};

static void rig_init(struct rig *rig)
{
	*rig = (struct rig){ .work = json_work_new(codec_set_best()) };
	assert_non_null(rig->work);
	arena_init(&rig->arena, &rig->pool, 1 << 20);
}

static void rig_fini(struct rig *rig)
{
	arena_give(&rig->arena);
	arena_pool_fini(&rig->pool);
	json_work_free(rig->work);
}

static bool read(struct rig *rig, const char *line)
{
	return logged_read(slice_str(line), rig->work, &rig->arena, &rig->out, &rig->problem);
}

static void assert_text(struct slice s, const char *text)
{
	assert_int_equal(s.len, strlen(text));
	assert_memory_equal(s.at, text, s.len);
}

static void what_the_log_wrote_is_read_back(void **state)
{
	const struct log_request line = {
		.request_id = "00112233445566778899aabbccddeeff",
		.tenant = SLICE("ac\"me"),
		.server = SLICE("billing"),
		.model = SLICE("sonnet"),
		.provider = SLICE("anthropic"),
		.endpoint = SLICE("https://a.example"),
		.err = ERR_PROVIDER_DOWN,
		.route = { .config_digest = "0123456789abcdef",
			   .seed = 0xdeadbeef,
			   .hint = SLICE("son\\u006eet"),
			   .alias = 3,
			   .input_tokens = 1234,
			   .max_tokens = 100,
			   .image = true,
			   .held = LOG_HELD_ENDPOINT,
			   .cost = 0.5,
			   .speed = NAN,
			   .intelligence = 0.25,
			   .candidates = { { 3, 0.8125 }, { 1, 0.5 } },
			   .candidate_count = 2,
			   .drawn = { { 7, 12.5 }, { 0, 0.25 } },
			   .drawn_count = 2 },
		.attempts = 1,
	};
	struct log_ring *ring = log_ring_new();
	struct rig rig;
	(void)state;
	rig_init(&rig);
	assert_non_null(ring);
	assert_true(log_request(ring, &line));
	assert_true(logged_read(log_ring_peek(ring), rig.work, &rig.arena, &rig.out, &rig.problem));
	assert_text(rig.out.tenant, "ac\"me");
	assert_text(rig.out.server, "billing");
	assert_text(rig.out.model, "sonnet");
	assert_text(rig.out.provider, "anthropic");
	assert_text(rig.out.endpoint, "https://a.example");
	assert_text(rig.out.error, "provider_unavailable");
	assert_text(rig.out.config, "0123456789abcdef");
	assert_text(rig.out.seed, "00000000deadbeef");
	assert_text(rig.out.held, "endpoint");
	assert_int_equal(rig.out.attempts, 1);
	const struct log_route *route = &rig.out.route;
	assert_text(route->hint, "son\\u006eet");
	assert_int_equal(route->alias, 3);
	assert_int_equal(route->input_tokens, 1234);
	assert_int_equal(route->max_tokens, 100);
	assert_true(route->image && !route->audio);
	assert_true(route->cost == 0.5 && isnan(route->speed) && route->intelligence == 0.25);
	assert_int_equal(route->candidate_count, 2);
	assert_int_equal(route->candidates[0].model, 3);
	assert_true(route->candidates[0].score == 0.8125);
	assert_int_equal(route->drawn_count, 2);
	assert_int_equal(route->drawn[0].endpoint, 7);
	assert_true(route->drawn[0].cost == 12.5);
	log_ring_free(ring);
	rig_fini(&rig);
}

static void what_is_not_said_is_none(void **state)
{
	struct rig rig;
	(void)state;
	rig_init(&rig);
	assert_true(read(&rig, "{\"tenant\":\"a\",\"route\":{\"config\":\"0\"},\"later\":[{}]}\n"));
	assert_int_equal(rig.out.route.alias, -1);
	assert_true(isnan(rig.out.route.cost) && isnan(rig.out.route.speed) &&
		    isnan(rig.out.route.intelligence));
	assert_true(slice_absent(rig.out.route.hint) && slice_absent(rig.out.server) &&
		    slice_absent(rig.out.classes) && slice_absent(rig.out.held));
	assert_int_equal(rig.out.route.candidate_count, 0);
	rig_fini(&rig);
}

static void what_is_no_line_of_a_routed_request_is_refused(void **state)
{
	static const char *const lines[] = {
		"",
		"{",
		"[]",
		"sluice: serving",
		"{\"tenant\":\"a\"}",
		"{\"route\":{\"config\":\"0\"}}",
		"{\"tenant\":1,\"route\":{\"config\":\"0\"}}",
		"{\"tenant\":\"a\",\"route\":[]}",
		"{\"tenant\":\"a\",\"route\":{\"config\":\"0\",\"input\":-1}}",
		"{\"tenant\":\"a\",\"route\":{\"config\":\"0\",\"output\":4294967296}}",
		"{\"tenant\":\"a\",\"route\":{\"config\":\"0\",\"alias\":1.5}}",
		"{\"tenant\":\"a\",\"route\":{\"config\":\"0\",\"image\":1}}",
		"{\"tenant\":\"a\",\"route\":{\"config\":\"0\",\"candidates\":[1]}}",
		"{\"tenant\":\"a\",\"route\":{\"config\":\"0\",\"candidates\":{}}}",
		"{\"tenant\":\"a\",\"route\":{\"config\":\"0\"}} {}",
	};
	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct rig rig;
		rig_init(&rig);
		if (read(&rig, lines[i]))
			fail_msg("taken: %s", lines[i]);
		assert_non_null(rig.problem);
		rig_fini(&rig);
	}
}

static void more_than_there_is_room_for_is_passed_over(void **state)
{
	struct rig rig;
	(void)state;
	rig_init(&rig);
	assert_true(read(&rig,
			 "{\"tenant\":\"a\",\"route\":{\"config\":\"0\",\"candidates\":["
			 "{\"model\":1},{\"model\":2},{\"model\":3},{\"model\":4},{\"model\":5}],"
			 "\"endpoints\":[{\"endpoint\":1,\"cost\":null},{\"endpoint\":2},{}]}}"));
	assert_int_equal(rig.out.route.candidate_count, LOG_CANDIDATES);
	assert_int_equal(rig.out.route.candidates[3].model, 4);
	assert_int_equal(rig.out.route.drawn_count, LOG_DRAWN);
	rig_fini(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_log_wrote_is_read_back),
		cmocka_unit_test(what_is_not_said_is_none),
		cmocka_unit_test(what_is_no_line_of_a_routed_request_is_refused),
		cmocka_unit_test(more_than_there_is_room_for_is_passed_over),
	};
	return cmocka_run_group_tests_name("explain_log", tests, NULL, NULL);
}
