#include "codec/json/json_escape.h"
#include "codec/set.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "codec/json/json_read.h"
#include "codec/json/json_write.h"

/* Texts lie at the very end of an allocation, so that a byte read behind them is found. */
struct rig {
	struct arena_pool pool;
	struct arena arena;
	struct json_work *work;
	char *exact;
};

static int set_up(void **state)
{
	struct rig *rig = calloc(1, sizeof(*rig));

	if (rig == NULL)
		return 1;
	rig->work = json_work_new(codec_set_best());
	arena_init(&rig->arena, &rig->pool, (size_t)64 * 1024 * 1024);
	*state = rig;
	return rig->work == NULL;
}

static int tear_down(void **state)
{
	struct rig *rig = *state;

	arena_give(&rig->arena);
	arena_pool_fini(&rig->pool);
	json_work_free(rig->work);
	free(rig->exact);
	free(rig);
	return 0;
}

static struct slice exact(struct rig *rig, struct slice text)
{
	free(rig->exact);
	rig->exact = malloc(text.len == 0 ? 1 : text.len);
	assert_non_null(rig->exact);
	if (text.len != 0)
		(void)memcpy(rig->exact, text.at, text.len);
	return slice_of(rig->exact, text.len);
}

static struct slice escaped(struct rig *rig, struct slice json)
{
	struct gather g;

	gather_init(&g, &rig->arena);
	gather_json_escaped(&g, json);
	assert_int_equal(gather_done(&g), ERR_OK);
	struct slice text = gather_flat(&g, &rig->arena);
	assert_false(slice_absent(text));
	return text;
}

/* ---- one byte at a time: what the blocks must agree with ---- */

static size_t plain_escape(const char *json, size_t len, char *out)
{
	bool inside = false;
	size_t count = 0;

	for (size_t i = 0; i < len; i++) {
		bool space =
			json[i] == ' ' || json[i] == '\n' || json[i] == '\r' || json[i] == '\t';
		if (space && !inside)
			continue;
		if (json[i] == '"')
			inside = !inside;
		if (json[i] == '"' || json[i] == '\\')
			out[count++] = '\\';
		out[count++] = json[i];
		if (json[i] != '\\')
			continue;
		i++; /* the second half of an escape ends no string */
		if (json[i] == '"' || json[i] == '\\')
			out[count++] = '\\';
		out[count++] = json[i];
	}
	return count;
}

/* A JSON text of about `len` bytes, different for every seed: strings full of escapes, white space of all
 * kinds, runs of every length. */
static size_t make_json(uint32_t seed, size_t len, char *out)
{
	static const char *const pieces[] = {
		"\\\"",     "\\\\",
		"\\n",      "\\u00e9",
		"a",        " ",
		"b c",      "\\\\\\\"",
		"[ ]",      "xxxxxxxxxxxxxxxxxx",
		"\xc3\xa9", "\\ud83d\\ude00",
		"{:,}",
	};
	static const char *const gaps[] = { "", " ", "\n\t", "  \r\n   ", "" };
	size_t count = 0;

	out[count++] = '[';
	while (count < len) {
		count += (size_t)sprintf(out + count, "%s\"", gaps[(seed >> 7) % COUNT_OF(gaps)]);
		for (uint32_t i = 0; i < (seed >> 9) % 12; i++) {
			seed = seed * 1664525 + 1013904223;
			count += (size_t)sprintf(out + count, "%s",
						 pieces[(seed >> 16) % COUNT_OF(pieces)]);
		}
		seed = seed * 1664525 + 1013904223;
		count += (size_t)sprintf(out + count, "\"%s,", gaps[(seed >> 11) % COUNT_OF(gaps)]);
	}
	return count + (size_t)sprintf(out + count, "-1.50e3 ]");
}

static void blocks_and_single_bytes_agree_whatever_the_text(void **state)
{
	enum { ROOM = 4096 };
	static char json[ROOM], want[2 * ROOM];
	struct rig *rig = *state;

	for (uint32_t seed = 0; seed < 3000; seed++) {
		struct slice text = exact(rig, slice_of(json, make_json(seed, seed % 400, json)));
		assert_true(json_valid(text, NULL, rig->work, NULL));
		size_t len = plain_escape(text.at, text.len, want);
		struct slice have = escaped(rig, text);
		if (!slice_eq(have, slice_of(want, len)))
			fail_msg("seed %u: %.*s\n have %.*s", seed, (int)text.len, text.at,
				 (int)have.len, have.at);
		arena_give(&rig->arena);
	}
}

static void what_went_in_comes_out_compact(void **state)
{
	enum { ROOM = 4096 };
	static char json[ROOM];
	struct rig *rig = *state;

	for (uint32_t seed = 0; seed < 1000; seed++) {
		struct slice text = slice_of(json, make_json(seed, seed % 500, json));
		struct slice inside = exact(rig, escaped(rig, text));
		struct slice back = json_unescape(inside, &rig->arena);
		assert_false(slice_absent(back));
		assert_true(json_valid(back, NULL, rig->work, NULL));
		/* compact already: once more in and out changes nothing */
		struct slice again = json_unescape(escaped(rig, back), &rig->arena);
		assert_true(slice_eq(back, again));
		arena_give(&rig->arena);
	}
}

static void meanings_are_those_of_the_reader(void **state)
{
	enum { ROOM = 4096 };
	static char json[ROOM];
	struct rig *rig = *state;

	for (uint32_t seed = 0; seed < 2000; seed++) {
		size_t len = make_json(seed, seed % 300, json);
		struct slice inside = exact(rig, escaped(rig, slice_of(json, len)));
		struct slice have = json_unescape(inside, &rig->arena);
		assert_true(slice_eq(have, json_str_plain(inside, &rig->arena)));
		arena_give(&rig->arena);
	}
}

static void an_escape_may_stand_across_two_blocks(void **state)
{
	static const char *const escapes[] = { "\\n", "\\\\", "\\u0041", "\\ud83d\\ude00" };
	static const char *const meanings[] = { "\n", "\\", "A", "\xf0\x9f\x98\x80" };
	struct rig *rig = *state;
	char raw[200], want[200];

	for (size_t e = 0; e < COUNT_OF(escapes); e++)
		for (int before = 40; before < 80; before++) {
			size_t len = (size_t)sprintf(raw, "%0*d%sz", before, 7, escapes[e]);
			(void)sprintf(want, "%0*d%sz", before, 7, meanings[e]);
			struct slice text = exact(rig, slice_of(raw, len));
			struct slice have = json_unescape(text, &rig->arena);
			if (!slice_eq(have, slice_str(want)))
				fail_msg("%s behind %d bytes", escapes[e], before);
			arena_give(&rig->arena);
		}
}

static void a_text_without_escapes_is_not_copied(void **state)
{
	static const char text[] =
		"nothing to see here, and it goes on for more than one block of 64";
	struct rig *rig = *state;

	assert_ptr_equal(json_unescape(slice_str(text), &rig->arena).at, text);
	assert_ptr_equal(json_unescape(slice_of(text, 0), &rig->arena).at, text);
	assert_true(slice_absent(json_unescape(slice_str(NULL), &rig->arena)));
}

static void long_runs_are_borrowed_and_short_ones_copied(void **state)
{
	enum { LONG = 5000 };
	static char json[LONG + 2];
	struct rig *rig = *state;
	struct gather g;
	size_t borrowed = 0;

	(void)memset(json, 'x', sizeof(json));
	json[0] = json[LONG + 1] = '"';
	gather_init(&g, &rig->arena);
	gather_json_escaped(&g, slice_of(json, sizeof(json)));
	assert_int_equal(gather_done(&g), ERR_OK);
	for (uint32_t i = 0; i < g.count; i++)
		if ((char *)g.v[i].iov_base >= json &&
		    (char *)g.v[i].iov_base < json + sizeof(json))
			borrowed += g.v[i].iov_len;
	assert_true(borrowed >= LONG);
	assert_int_equal(g.copied, 0);
	assert_int_equal(g.total, sizeof(json) + 2);
}

static void running_out_of_memory_is_said(void **state)
{
	static const char json[] = "[\"a\\nb\", \"c\\\\d\", 1, 2, 3]";
	struct rig *rig = *state;
	struct gather g;

	rig->arena.cap = 8;
	assert_true(
		slice_absent(json_unescape(SLICE("\\n and more than eight bytes"), &rig->arena)));
	gather_init(&g, &rig->arena);
	gather_json_escaped(&g, slice_str(json));
	assert_int_equal(gather_done(&g), ERR_BUSY);
	rig->arena.cap = (size_t)1024 * 1024;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		test(blocks_and_single_bytes_agree_whatever_the_text),
		test(what_went_in_comes_out_compact),
		test(meanings_are_those_of_the_reader),
		test(an_escape_may_stand_across_two_blocks),
		test(a_text_without_escapes_is_not_copied),
		test(long_runs_are_borrowed_and_short_ones_copied),
		test(running_out_of_memory_is_said),
	};
	return cmocka_run_group_tests_name("json_escape", tests, NULL, NULL);
}
