#include "codec/json/json_write.h"
#include "codec/set.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "codec/json/json_read.h"

struct rig {
	struct arena_pool pool;
	struct arena arena;
	struct gather g;
};

static int set_up(void **state)
{
	struct rig *rig = calloc(1, sizeof(*rig));

	if (rig == NULL)
		return 1;
	arena_init(&rig->arena, &rig->pool, 256 * 1024 * 1024);
	gather_init(&rig->g, &rig->arena);
	*state = rig;
	return 0;
}

static int tear_down(void **state)
{
	struct rig *rig = *state;

	arena_give(&rig->arena);
	arena_pool_fini(&rig->pool);
	free(rig);
	return 0;
}

static struct slice flat(struct rig *rig)
{
	assert_int_equal(gather_done(&rig->g), ERR_OK);
	struct slice text = gather_flat(&rig->g, &rig->arena);
	assert_int_equal(text.len, rig->g.total);
	return text;
}

#define assert_text(rig, expected) assert_true(slice_eq(flat(rig), SLICE(expected)))

static bool borrowed(const struct gather *g, const char *at)
{
	for (uint32_t i = 0; i < g->count; i++)
		if (g->v[i].iov_base == at)
			return true;
	return false;
}

static void short_texts_are_copied_into_one_entry(void **state)
{
	struct rig *rig = *state;

	gather_lit(&rig->g, "{\"a\":");
	gather_str(&rig->g, SLICE("x\\ny"));
	gather_lit(&rig->g, ",\"b\":");
	gather_int(&rig->g, -42);
	gather_raw(&rig->g, slice_str(NULL));
	gather_lit(&rig->g, "}");
	assert_text(rig, "{\"a\":\"x\\ny\",\"b\":-42}");
	assert_int_equal(rig->g.count, 1);
	assert_int_equal(rig->g.copied, 0);
}

static void long_texts_are_borrowed_and_the_threshold_is_exact(void **state)
{
	struct rig *rig = *state;
	static char text[GATHER_COPY_MAX + 1], big[100000];

	(void)memset(text, 'x', sizeof(text));
	(void)memset(big, 'y', sizeof(big));
	gather_raw(&rig->g, slice_of(text, GATHER_COPY_MAX));
	assert_false(borrowed(&rig->g, text));
	gather_raw(&rig->g, slice_of(text, sizeof(text)));
	assert_true(borrowed(&rig->g, text));
	gather_str(&rig->g, slice_of(big, sizeof(big)));
	assert_true(borrowed(&rig->g, big));
	assert_int_equal(gather_done(&rig->g), ERR_OK);
	assert_int_equal(rig->g.total, 2 * GATHER_COPY_MAX + 1 + sizeof(big) + 2);
	assert_int_equal(rig->g.copied, 0);
	assert_int_equal(flat(rig).at[rig->g.total - 1], '"');
}

static void neighbours_in_memory_become_one_entry(void **state)
{
	struct rig *rig = *state;
	static const char text[2000] = { 'a' };

	gather_raw(&rig->g, slice_of(text, 1000));
	gather_raw(&rig->g, slice_of(text + 1000, 1000));
	assert_int_equal(rig->g.count, 1);
	assert_int_equal(rig->g.v[0].iov_len, 2000);
}

static void base64_of_images_is_counted_by_itself(void **state)
{
	struct rig *rig = *state;
	static char data[5000];

	(void)memset(data, 'A', sizeof(data));
	gather_lit(&rig->g, "\"");
	gather_image(&rig->g, slice_of(data, sizeof(data)));
	gather_image(&rig->g, slice_of(data, 8));
	gather_lit(&rig->g, "\"");
	assert_int_equal(gather_done(&rig->g), ERR_OK);
	assert_int_equal(rig->g.images, 5008);
	assert_int_equal(rig->g.total, 5010);
}

static void plain_text_is_escaped_as_little_as_json_allows(void **state)
{
	struct rig *rig = *state;

	gather_plain(&rig->g, SLICE(""));
	gather_plain(&rig->g, SLICE("a\"b\\c/d\x7f\xc3\xa9"));
	gather_plain(&rig->g, slice_of("\b\f\n\r\t\0\x01\x1f", 8));
	gather_escaped(&rig->g, SLICE("no \"quotes\" around"));
	assert_text(rig, "\"\"\"a\\\"b\\\\c/d\x7f\xc3\xa9\"\"\\b\\f\\n\\r\\t\\u0000\\u0001\\u001f\""
			 "no \\\"quotes\\\" around");
}

static void escaping_is_undone_by_reading_whatever_the_alignment(void **state)
{
	struct rig *rig = *state;
	struct json_work *work = json_work_new(codec_set_best());
	char text[80];

	assert_non_null(work);
	for (size_t len = 0; len < sizeof(text); len++) {
		struct json_reader r;
		struct slice raw;
		for (size_t i = 0; i < len; i++)
			text[i] = (char)((i * 7 + len) % 0x80); /* every ASCII byte, in time */
		gather_init(&rig->g, &rig->arena);
		gather_plain(&rig->g, slice_of(text, len));
		json_open(&r, flat(rig), NULL, work);
		assert_true(json_string(&r, &raw) && json_finish(&r));
		assert_true(slice_eq(json_str_plain(raw, &rig->arena), slice_of(text, len)));
	}
	json_work_free(work);
}

static void json_goes_compact_into_a_string(void **state)
{
	static const struct {
		const char *json, *inside;
	} rows[] = {
		{ "{}", "{}" },
		{ " { \"a b\" : [ 1 , 2.50 , true ] }\n", "{\\\"a b\\\":[1,2.50,true]}" },
		{ "\"x\\ny\"", "\\\"x\\\\ny\\\"" },
		{ "[\"\\\\\", \"\\\"\", \"\\u0041\"]",
		  "[\\\"\\\\\\\\\\\",\\\"\\\\\\\"\\\",\\\"\\\\u0041\\\"]" },
		{ "\"\\\\\\\\ \\\\\"", "\\\"\\\\\\\\\\\\\\\\ \\\\\\\\\\\"" },
		{ "\"\"", "\\\"\\\"" },
	};
	struct rig *rig = *state;

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		gather_init(&rig->g, &rig->arena);
		gather_json_escaped(&rig->g, slice_str(rows[i].json));
		struct slice text = flat(rig);
		if (!slice_eq(text, slice_str(rows[i].inside)))
			fail_msg("%s: %.*s", rows[i].json, (int)text.len, text.at);
	}
}

static void integers_are_exact_to_their_ends(void **state)
{
	struct rig *rig = *state;

	gather_int(&rig->g, INT64_MIN);
	gather_lit(&rig->g, " ");
	gather_int(&rig->g, INT64_MAX);
	gather_lit(&rig->g, " ");
	gather_uint(&rig->g, UINT64_MAX);
	gather_lit(&rig->g, " ");
	gather_uint(&rig->g, 0);
	assert_text(rig, "-9223372036854775808 9223372036854775807 18446744073709551615 0");
}

/* Many texts of one length between short ones; the list may never pass what the kernel takes. */
static void the_list_stays_short_whatever_comes(void **state)
{
	static const struct {
		size_t len, texts;
	} rows[] = {
		{ 257, 3000 }, { 300, 20000 }, { 1000, 5000 }, { 5000, 2000 }, { 70000, 600 },
	};
	static char text[70000];
	struct rig *rig = *state;

	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (char)('a' + i % 26);
	for (size_t row = 0; row < COUNT_OF(rows); row++) {
		gather_init(&rig->g, &rig->arena);
		for (size_t i = 0; i < rows[row].texts; i++) {
			gather_raw(&rig->g, slice_of(text, rows[row].len));
			gather_lit(&rig->g, "|");
			assert_true(rig->g.count <= GATHER_IOVEC_MAX);
		}
		struct slice all = flat(rig);
		assert_int_equal(all.len, rows[row].texts * (rows[row].len + 1));
		for (size_t i = 0; i < rows[row].texts; i++) {
			const char *at = all.at + i * (rows[row].len + 1);
			assert_memory_equal(at, text, rows[row].len);
			assert_int_equal(at[rows[row].len], '|');
		}
		arena_give(&rig->arena);
	}
}

static void up_to_two_hundred_long_texts_nothing_long_is_copied(void **state)
{
	static char text[257];
	struct rig *rig = *state;

	(void)memset(text, 'x', sizeof(text));
	for (int i = 0; i < 200; i++) {
		gather_lit(&rig->g, ",");
		gather_str(&rig->g, slice_of(text, sizeof(text)));
	}
	assert_int_equal(gather_done(&rig->g), ERR_OK);
	assert_int_equal(rig->g.copied, 0);
	assert_int_equal(rig->g.total, 200 * (257 + 3));
}

static void what_the_last_stage_has_left_goes_back(void **state)
{
	struct rig *rig = *state;

	gather_trim(&rig->g); /* nothing was taken */
	gather_lit(&rig->g, "\"one");
	assert_int_equal(gather_done(&rig->g), ERR_OK);
	const size_t whole = rig->arena.used;
	gather_trim(&rig->g);
	assert_true(rig->arena.used + 900 < whole);
	(void)memset(arena_take(&rig->arena, 100), 0xff, 100); /* somebody else's by now */
	gather_lit(&rig->g, ", two\"");
	assert_text(rig, "\"one, two\"");
	gather_trim(&rig->g); /* not the last any more */
	assert_text(rig, "\"one, two\"");
}

static void running_out_of_memory_is_said_at_the_end(void **state)
{
	static const char text[1000] = { 'x' };
	size_t fail = 1;

	(void)state;
	for (bool failed = true; failed; fail++) {
		struct arena_pool pool = { .fail_next = fail };
		struct arena arena;
		struct gather g;
		arena_init(&arena, &pool, 16 * 1024 * 1024);
		gather_init(&g, &arena);
		for (int i = 0; i < 2000; i++) {
			gather_raw(&g, slice_of(text, sizeof(text)));
			gather_plain(&g, SLICE("a\nb"));
			gather_int(&g, i);
		}
		bool incomplete = gather_done(&g) == ERR_BUSY;
		failed = slice_absent(gather_flat(&g, &arena)); /* it may be the one that fails */
		assert_true(failed || !incomplete);
		arena_give(&arena);
		arena_pool_fini(&pool);
	}
	assert_true(fail > 4); /* it did fail at several places */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		test(short_texts_are_copied_into_one_entry),
		test(long_texts_are_borrowed_and_the_threshold_is_exact),
		test(neighbours_in_memory_become_one_entry),
		test(base64_of_images_is_counted_by_itself),
		test(plain_text_is_escaped_as_little_as_json_allows),
		test(escaping_is_undone_by_reading_whatever_the_alignment),
		test(json_goes_compact_into_a_string),
		test(integers_are_exact_to_their_ends),
		test(the_list_stays_short_whatever_comes),
		test(up_to_two_hundred_long_texts_nothing_long_is_copied),
		test(what_the_last_stage_has_left_goes_back),
		test(running_out_of_memory_is_said_at_the_end),
	};
	return cmocka_run_group_tests_name("json_write", tests, NULL, NULL);
}
