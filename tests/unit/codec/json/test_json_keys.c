#include "codec/json/json_keys.h"

#include "tests/unit/codec/json/json_rig.h"

static void duplicate_keys_are_found_by_meaning_at_any_depth(void **state)
{
	static const struct {
		const char *text;
		enum err err;
	} rows[] = {
		{ "{\"a\":1,\"a\":2}", ERR_DUPLICATE_KEY },
		{ "{\"\":1,\"\":2}", ERR_DUPLICATE_KEY },
		{ "{\"a\":1,\"a\" :2}", ERR_DUPLICATE_KEY }, /* nothing behind the quote counts */
		{ "{\"\" :1,\"\"\n:2}", ERR_DUPLICATE_KEY },
		{ "{\"exactly\":1,\"exactly\"\t:2}", ERR_DUPLICATE_KEY },
		{ "{\"role\":1,\"r\\u006fle\":2}", ERR_DUPLICATE_KEY },
		{ "{\"r\\u006fle\":1,\"role\":2}", ERR_DUPLICATE_KEY },
		{ "{\"\\u00e9\":1,\"\xc3\xa9\":2}", ERR_DUPLICATE_KEY },
		{ "{\"\\ud83d\\ude00\":1,\"\xf0\x9f\x98\x80\":2}", ERR_DUPLICATE_KEY },
		{ "{\"a/b\":1,\"a\\/b\":2}", ERR_DUPLICATE_KEY },
		{ "{\"exactly8\":1,\"exactly8\":2}", ERR_DUPLICATE_KEY },
		{ "{\"more than eight\":1,\"more than\\u0020eight\":2}", ERR_DUPLICATE_KEY },
		{ "[{\"x\":[{\"a\":{},\"b\":[],\"a\":0}]}]", ERR_DUPLICATE_KEY },
		{ "{\"a\":{\"a\":{\"a\":1}},\"b\":[{\"a\":1},{\"a\":2}]}", ERR_OK },
		{ "{\"a\":{\"b\":1,\"c\":2},\"b\":1,\"c\":{\"a\":1},\"a\":9}", ERR_DUPLICATE_KEY },
		{ "{\"a\":1,\"A\":2,\"a \":3,\"\":4}", ERR_OK },
		{ "{\"a\\u0000\":1,\"a\":2}", ERR_OK },
		{ "{\"\\\\u0061\":1,\"a\":2}", ERR_OK },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++)
		if (judge(slice_str(rows[i].text), NULL) != rows[i].err)
			fail_msg("%s", rows[i].text);
}

/* {"key0":0,...} with `count` keys and, at the end, `last` as one more member. */
static struct exact many_keys(uint32_t count, const char *last)
{
	size_t size = (size_t)count * 24 + strlen(last) + 3, len = 1;
	char *text = malloc(size);

	assert_non_null(text);
	text[0] = '{';
	for (uint32_t i = 0; i < count; i++)
		len += (size_t)snprintf(text + len, size - len, "\"key%u\":{\"a\":1},", i);
	len += (size_t)snprintf(text + len, size - len, "%s}", last);
	return (struct exact){ slice_of(text, len), text };
}

static void a_duplicate_among_many_keys_is_found(void **state)
{
	static const uint32_t counts[] = { 1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 100, 1000, 4095 };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(counts); i++) {
		char last[32];
		struct exact fine = many_keys(counts[i], "\"other\":0");
		assert_true(json_valid(fine.text, NULL, work, NULL));
		free(fine.bytes);
		(void)snprintf(last, sizeof(last), "\"\\u006bey%u\":0", counts[i] / 2);
		struct exact twice = many_keys(counts[i], last);
		assert_int_equal(judge(twice.text, NULL), ERR_DUPLICATE_KEY);
		free(twice.bytes);
	}
}

/* How many bytes an escape means differs, and where they come to lie in a word of the hash. */
static void a_key_is_the_same_with_and_without_escapes(void **state)
{
	static const uint32_t counts[] = { 0, 20, 300 };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(counts); i++)
		for (int lead = 0; lead < 20; lead++) {
			char pair[128];
			for (int other = 0; other < 2; other++) {
				(void)snprintf(pair, sizeof(pair),
					       "\"%.*s\xc3\xa9\xe8\xaa\x9e\xf0\x9f\x98\x80 %s\":0,"
					       "\"%.*s\\u00e9\\u8a9e\\ud83d\\uDE00\\u0020z\":0",
					       lead, "twenty of characters", other == 1 ? "y" : "z",
					       lead, "twenty of characters");
				struct exact text = many_keys(counts[i], pair);
				assert_int_equal(judge(text.text, NULL),
						 other == 1 ? ERR_OK : ERR_DUPLICATE_KEY);
				free(text.bytes);
			}
		}
}

/* Ids of calls are in a set as well, of more members than an object may have. */
static void a_set_holds_as_many_as_it_may(void **state)
{
	enum { LEN = 8 };
	static char names[(KEYS_SET_MAX + 1) * LEN + 1];
	const char *end = names + sizeof(names);

	(void)state;
	json_keys_clear(work);
	struct json_level set;
	json_keys_begin(work, &set, 0);
	for (uint32_t i = 0; i <= KEYS_SET_MAX; i++)
		(void)snprintf(names + (size_t)i * LEN, LEN + 1, "%07u\"", i);
	for (uint32_t i = 0; i <= KEYS_SET_MAX; i++) {
		const struct slice name = slice_of(names + (size_t)i * LEN, LEN - 1);
		assert_int_equal(json_keys_add(work, &set, KEYS_SET_MAX, name, false, end),
				 i < KEYS_SET_MAX ? KEYS_ADDED : KEYS_FULL);
	}
	for (uint32_t i = 0; i <= KEYS_SET_MAX; i++) {
		const struct slice name = slice_of(names + (size_t)i * LEN, LEN - 1);
		assert_true(json_keys_has(work, &set, work->key_top, name) == (i < KEYS_SET_MAX));
	}
	json_keys_end(work, &set);
	assert_ptr_equal(work->slot_top, work->slots);
}

static void the_number_of_keys_is_bounded_per_object(void **state)
{
	struct exact fits = many_keys(JSON_KEYS_MAX - 1, "\"last\":0");
	struct exact over = many_keys(JSON_KEYS_MAX, "\"last\":0");

	(void)state;
	assert_int_equal(judge(fits.text, NULL), ERR_OK);
	assert_int_equal(judge(over.text, NULL), ERR_TOO_MANY_KEYS);
	free(fits.bytes);
	free(over.bytes);
	const struct json_limits two = { .depth_max = 8, .keys_max = 2 };
	assert_true(json_valid(SLICE("{\"a\":1,\"b\":{\"c\":1,\"d\":2}}"), &two, work, NULL));
	assert_false(json_valid(SLICE("{\"a\":1,\"b\":2,\"c\":3}"), &two, work, NULL));
}

/* 64 objects one in the other with many keys each: more than the work area keeps at once. */
static void too_many_keys_over_all_open_objects_is_a_refusal(void **state)
{
	enum { KEYS = 1500 };
	size_t size = (size_t)JSON_DEPTH_MAX * KEYS * 12, len = 0;
	char *text = malloc(size);

	(void)state;
	assert_non_null(text);
	for (int depth = 0; depth < JSON_DEPTH_MAX; depth++) {
		text[len++] = '{';
		for (int i = 0; i < KEYS; i++)
			len += (size_t)snprintf(text + len, size - len, "\"%d\":0,", i);
		len += (size_t)snprintf(text + len, size - len, "\"x\":");
	}
	assert_int_equal(judge(slice_of(text, len), NULL), ERR_TOO_MANY_KEYS);
	assert_int_equal(judge(SLICE("{\"a\":{\"b\":1}}"), NULL), ERR_OK); /* usable as before */
	struct json_reader r;
	json_open(&r, slice_of(text, len), NULL, work);
	assert_false(json_skip(&r, NULL));
	json_open(&r, SLICE("{\"a\":{\"b\":1}}"), NULL,
		  work); /* whatever the one before has left */
	assert_true(json_skip(&r, NULL) && json_finish(&r));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(duplicate_keys_are_found_by_meaning_at_any_depth),
		cmocka_unit_test(a_duplicate_among_many_keys_is_found),
		cmocka_unit_test(a_key_is_the_same_with_and_without_escapes),
		cmocka_unit_test(a_set_holds_as_many_as_it_may),
		cmocka_unit_test(the_number_of_keys_is_bounded_per_object),
		cmocka_unit_test(too_many_keys_over_all_open_objects_is_a_refusal),
	};
	return cmocka_run_group_tests_name("json_keys", tests, open_work, close_work);
}
