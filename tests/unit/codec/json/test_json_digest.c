/* Texts have the same digest exactly if they mean the same. */
#include "codec/json/json_digest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct digesting {
	struct arena_pool pool;
	struct arena arena;
};

static void begin(struct digesting *d)
{
	*d = (struct digesting){ .pool = { .keep_max = 4 } };
	arena_init(&d->arena, &d->pool, 8 << 20);
}

static void end(struct digesting *d)
{
	arena_give(&d->arena);
	assert_int_equal(d->pool.out, 0);
	arena_pool_fini(&d->pool);
}

struct sum {
	uint8_t at[SHA256_BYTES];
};

static struct sum digest_of(struct digesting *d, struct slice text)
{
	static const char *const without[] = { "_meta", "left out" };
	struct sum sum;

	assert_true(json_digest(text, without, 2, &d->arena, sum.at));
	return sum;
}

static bool same(struct digesting *d, struct slice a, struct slice b)
{
	const struct sum x = digest_of(d, a), y = digest_of(d, b);

	return memcmp(x.at, y.at, sizeof(x.at)) == 0;
}

static const struct pair_row {
	const char *a, *b;
	bool same;
} pair_rows[] = {
	{ "{}", "{ }", true },
	{ "{\"a\":1,\"b\":[true,null]}", " { \"b\" : [ true , null ] , \"\\u0061\" : 1.0 } ",
	  true },
	{ "{\"a\":\"\\u00e4\\/\"}", "{\"a\":\"\xc3\xa4/\"}", true },
	{ "{\"a\":{\"x\":1,\"y\":2}}", "{\"a\":{\"y\":2,\"x\":1}}", true },
	{ "{\"_meta\":{\"t\":1},\"a\":1}", "{\"a\":1,\"left out\":[]}", true },
	{ "{\"\\u005fmeta\":0}", "{}", true },
	{ "[1e2]", "[100]", true },
	{ "\"a\"", "\"\\u0061\"", true },
	{ "{}", "[]", false },
	{ "{\"a\":1}", "{\"a\":\"1\"}", false },
	{ "{\"a\":1}", "{\"a\":2}", false },
	{ "{\"a\":1}", "{\"b\":1}", false },
	{ "{\"a\":1}", "{\"a\":1,\"c\":1}", false },
	{ "{\"a\":1,\"b\":2}", "{\"a\":2,\"b\":1}", false },
	{ "{\"a\":{\"b\":1}}", "{\"a\":{},\"b\":1}", false },
	{ "{\"a\":{\"_meta\":1}}", "{\"a\":{\"_meta\":2}}",
	  false }, /* not a member of the outermost */
	{ "[\"_meta\"]", "[]", false },
	{ "[1,2]", "[2,1]", false },
	{ "[[1],2]", "[[1,2]]", false },
	{ "[[]]", "[]", false },
	{ "[{}]", "[[]]", false },
	{ "[null]", "[false]", false },
	{ "[\"null\"]", "[null]", false },
	{ "{\"a\":1,\"a\":1}", "{\"a\":1}", false },
	{ "{\"a\":9007199254740993}", "{\"a\":9007199254740992}", false },
	/* what is not JSON is only itself */
	{ "{\"a\":}", "{\"a\":}", true },
	{ "{\"a\":}", "{ \"a\":}", false },
	{ "[1 2]", "[12]", false },
};

static struct slice value_of(const char *text)
{
	struct slice value;

	assert_true(json_loose_whole(slice_str(text), &value));
	return value;
}

static void texts_that_mean_the_same_have_one_digest(void **state)
{
	struct digesting d;

	(void)state;
	begin(&d);
	for (size_t i = 0; i < COUNT_OF(pair_rows); i++) {
		const struct pair_row *row = &pair_rows[i];
		if (same(&d, value_of(row->a), value_of(row->b)) != row->same)
			fail_msg("%s and %s", row->a, row->b);
	}
	end(&d);
}

/* `{"k0":0,"k1":1,...}`, from front to rear or the other way round. */
static struct slice numbered(struct digesting *d, unsigned count, bool backwards)
{
	char *text = arena_take(&d->arena, count * 32 + 2), *to = text;

	assert_non_null(text);
	*to++ = '{';
	for (unsigned i = 0; i < count; i++) {
		const unsigned k = backwards ? count - 1 - i : i;
		to += sprintf(to, "%s\"k%u\":%u", i == 0 ? "" : ",", k, k);
	}
	*to++ = '}';
	return slice_of(text, (size_t)(to - text));
}

static void the_order_of_many_members_does_not_count(void **state)
{
	struct digesting d;

	(void)state;
	for (unsigned count = 0; count < 70; count++) {
		begin(&d);
		assert_true(same(&d, numbered(&d, count, false), numbered(&d, count, true)));
		assert_false(same(&d, numbered(&d, count, false), numbered(&d, count + 1, true)));
		end(&d);
	}
	begin(&d);
	assert_true(same(&d, numbered(&d, 5000, false), numbered(&d, 5000, true)));
	end(&d);
}

/* `open` so many times, `inner`, `close` as often. */
static struct slice nested(struct digesting *d, size_t depth, const char *open, const char *inner,
			   const char *close)
{
	const size_t len = depth * (strlen(open) + strlen(close)) + strlen(inner);
	char *text = arena_take(&d->arena, len + 1), *to = text;

	assert_non_null(text);
	for (size_t i = 0; i < depth; i++)
		to = stpcpy(to, open);
	to = stpcpy(to, inner);
	for (size_t i = 0; i < depth; i++)
		to = stpcpy(to, close);
	return slice_of(text, len);
}

static void depth_has_no_bound(void **state)
{
	struct digesting d;

	(void)state;
	begin(&d);
	for (size_t depth = 1; depth < 3 * JSON_DIGEST_DEPTH; depth++) {
		const struct slice one = nested(&d, depth, "[", "1", "]");
		assert_true(same(&d, one, one));
		assert_false(same(&d, one, nested(&d, depth, "[", "2", "]")));
		assert_false(same(&d, one, nested(&d, depth + 1, "[", "1", "]")));
		/* inside of what is only itself, white space counts */
		assert_int_equal(same(&d, one, nested(&d, depth, "[", " 1", "]")),
				 depth <= JSON_DIGEST_DEPTH);
	}
	const struct slice deep = nested(&d, 200000, "{\"a\":", "1", "}");
	assert_true(same(&d, deep, deep));
	end(&d);
}

/* `[0,0,...]` within `{"_meta":N,"a":`, `}`; `gap` stands in front of its last item. */
static struct slice crowd(struct digesting *d, size_t count, unsigned meta, const char *gap)
{
	char *text = arena_take(&d->arena, 2 * count + 64), *to = text;

	assert_non_null(text);
	to += sprintf(to, "{\"_meta\": %u,\"a\":[", meta);
	for (size_t i = 1; i < count; i++)
		to = stpcpy(to, "0,");
	to += sprintf(to, "%s0]}", gap);
	return slice_of(text, (size_t)(to - text));
}

/* More than JSON_DIGEST_ITEMS of them: bytes count, but for members that are left out. */
static void of_many_items_the_bytes_count(void **state)
{
	struct digesting d;

	(void)state;
	begin(&d);
	d.arena.cap = 256 << 20;
	for (size_t more = 0; more < 2; more++) {
		const size_t count = JSON_DIGEST_ITEMS - 2 + more; /* beside the two members */
		const struct slice one = crowd(&d, count, 1, "");
		assert_true(same(&d, one, crowd(&d, count, 2, "")));
		assert_false(same(&d, one, crowd(&d, count + 1, 1, "")));
		assert_int_equal(same(&d, one, crowd(&d, count, 1, " ")), more == 0);
	}
	end(&d);
}

static void refused_memory_is_said(void **state)
{
	struct sum sum, whole;
	struct digesting d;

	(void)state;
	begin(&d);
	const struct slice text = numbered(&d, 2000, false);
	whole = digest_of(&d, text);
	size_t failures = 0;
	for (size_t n = 1;; n++) {
		struct arena_pool pool = { .keep_max = 4, .fail_next = n };
		struct arena arena;
		arena_init(&arena, &pool, 8 << 20);
		const bool made = json_digest(text, NULL, 0, &arena, sum.at);
		arena_give(&arena);
		arena_pool_fini(&pool);
		if (made)
			break;
		failures++;
	}
	assert_true(failures > 2);
	assert_memory_equal(sum.at, whole.at, sizeof(sum.at));
	end(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_that_mean_the_same_have_one_digest),
		cmocka_unit_test(the_order_of_many_members_does_not_count),
		cmocka_unit_test(depth_has_no_bound),
		cmocka_unit_test(of_many_items_the_bytes_count),
		cmocka_unit_test(refused_memory_is_said),
	};
	return cmocka_run_group_tests_name("json_digest", tests, NULL, NULL);
}
