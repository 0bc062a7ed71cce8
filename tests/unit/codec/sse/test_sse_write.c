/* A message as an event: what is read back is the message, in one line. */
#include "codec/sse/sse_write.h"

#include "codec/sse/sse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

struct rig {
	struct arena_pool pool;
	struct arena arena;
	struct gather json, event;
};

static void rig_init(struct rig *rig, size_t room)
{
	*rig = (struct rig){ .pool = { .keep_max = 8 } };
	arena_init(&rig->arena, &rig->pool, room);
	gather_init(&rig->json, &rig->arena);
	gather_init(&rig->event, &rig->arena);
}

static void rig_fini(struct rig *rig)
{
	arena_give(&rig->arena);
	arena_pool_fini(&rig->pool);
}

static const struct row {
	const char *name, *json, *event;
} rows[] = {
	{ "one line", "{\"a\":1}", "event: message\ndata: {\"a\":1}\n\n" },
	{ "LF, CR and CR LF between tokens", "{\n\"a\" :\r1,\r\n\"b\":\n\n[]}\r",
	  "event: message\ndata: {\"a\" :1,\"b\":[]}\n\n" },
	{ "escaped line ends are text", "\"a\\nb\\r\"", "event: message\ndata: \"a\\nb\\r\"\n\n" },
	{ "nothing but line ends", "\n\r\n", "event: message\ndata: \n\n" },
	{ "nothing", "", "event: message\ndata: \n\n" },
};

static void an_event_has_its_message_in_one_line(void **state)
{
	(void)state;
	struct rig rig;

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		rig_init(&rig, 1 << 20);
		gather_raw(&rig.json, slice_str(rows[i].json));
		assert_int_equal(gather_done(&rig.json), ERR_OK);
		sse_write_message(&rig.event, &rig.json);
		assert_int_equal(gather_done(&rig.event), ERR_OK);
		struct slice flat = gather_flat(&rig.event, &rig.arena);
		if (!slice_eq(flat, slice_str(rows[i].event)))
			fail_msg("%s: %.*s", rows[i].name, (int)flat.len, flat.at);
		assert_int_equal(rig.event.total, flat.len);
		rig_fini(&rig);
	}
}

static void long_spans_are_borrowed_on_and_read_back_the_same(void **state)
{
	(void)state;
	enum { LONG = 5000 };
	static char text[LONG];
	char buffer[SSE_EVENT_ROOM];
	struct sse_event event;
	struct rig rig;
	struct sse sse;

	(void)memset(text, 'x', sizeof(text));
	rig_init(&rig, 1 << 20);
	gather_lit(&rig.json, "{\"text\":");
	gather_str(&rig.json, slice_of(text, LONG));
	gather_lit(&rig.json, ",\n\"more\":");
	gather_str(&rig.json, slice_of(text, LONG));
	gather_lit(&rig.json, "}");
	assert_int_equal(gather_done(&rig.json), ERR_OK);
	sse_write_message(&rig.event, &rig.json);
	assert_int_equal(gather_done(&rig.event), ERR_OK);
	assert_true(rig.event.copied < 600);
	sse_init(&sse, buffer, sizeof(buffer));
	sse_feed(&sse, gather_flat(&rig.event, &rig.arena));
	assert_int_equal(sse_next(&sse, &event), SSE_EVENT);
	assert_true(slice_eq(event.name, SLICE("message")));
	assert_int_equal(event.data.len, rig.json.total - 1); /* the line end */
	assert_int_equal(sse_next(&sse, &event), SSE_NOTHING);
	rig_fini(&rig);
}

static void want_of_memory_is_told_at_the_end(void **state)
{
	(void)state;
	struct rig rig;

	rig_init(&rig, 1 << 20);
	gather_lit(&rig.json, "{}");
	assert_int_equal(gather_done(&rig.json), ERR_OK);
	rig.arena.cap = rig.arena.used; /* no more */
	sse_write_message(&rig.event, &rig.json);
	assert_int_equal(gather_done(&rig.event), ERR_BUSY);
	rig_fini(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_event_has_its_message_in_one_line),
		cmocka_unit_test(long_spans_are_borrowed_on_and_read_back_the_same),
		cmocka_unit_test(want_of_memory_is_told_at_the_end),
	};
	return cmocka_run_group_tests_name("sse_write", tests, NULL, NULL);
}
