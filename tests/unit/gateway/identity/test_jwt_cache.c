#include "gateway/identity/jwt_cache.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

enum { NOW = 1000, SETS = 2 };

static const struct tenant acme = { .magic = TENANT_MAGIC };

static int set_up(void **state)
{
	static struct jwt_cache cache;

	assert_true(jwt_cache_init(&cache, SETS * JWT_CACHE_WAYS));
	*state = &cache;
	return 0;
}

static int tear_down(void **state)
{
	jwt_cache_fini(*state);
	return 0;
}

/* A digest that belongs to `set`. */
static const uint8_t *digest_of(uint8_t set, uint8_t n)
{
	static uint8_t digest[SHA256_BYTES];

	(void)memset(digest, 0, sizeof(digest));
	digest[0] = set;
	digest[SHA256_BYTES - 1] = n;
	return digest;
}

static struct jwt_token token_of(struct slice server, uint64_t good_until_s)
{
	return (struct jwt_token){ .server = server,
				   .good_until_s = good_until_s,
				   .subject = { "whom it is for.." } };
}

static void add(struct jwt_cache *cache, uint8_t set, uint8_t n, uint64_t good_until_s)
{
	const struct jwt_token token = token_of(SLICE("billing"), good_until_s);
	const struct jwt_known *known = jwt_cache_add(cache, digest_of(set, n), &acme, &token, NOW);

	assert_ptr_equal(known, jwt_cache_find(cache, digest_of(set, n), NOW));
}

static bool knows(struct jwt_cache *cache, uint8_t set, uint8_t n, uint64_t now_s)
{
	return jwt_cache_find(cache, digest_of(set, n), now_s) != NULL;
}

static void what_was_added_is_found_until_its_time_is_over(void **state)
{
	struct jwt_cache *cache = *state;

	assert_false(knows(cache, 0, 1, NOW));
	add(cache, 0, 1, NOW + 10);
	const struct jwt_known *known = jwt_cache_find(cache, digest_of(0, 1), NOW + 9);
	assert_non_null(known);
	assert_ptr_equal(known->tenant, &acme);
	assert_int_equal(known->server_len, 7);
	assert_memory_equal(known->server, "billing", 7);
	assert_memory_equal(known->subject, "whom it is for..", JWT_SUBJECT_BYTES);
	assert_false(knows(cache, 0, 2, NOW));
	assert_false(knows(cache, 1, 1, NOW));
	assert_false(knows(cache, 0, 1, NOW + 10));
}

static void a_token_without_a_server_has_none(void **state)
{
	struct jwt_cache *cache = *state;
	char longest[JWT_SERVER_MAX];

	(void)memset(longest, 'x', sizeof(longest));
	const struct jwt_token none = token_of((struct slice){ NULL, 0 }, NOW + 1);
	const struct jwt_token most = token_of(slice_of(longest, sizeof(longest)), NOW + 1);
	assert_int_equal(jwt_cache_add(cache, digest_of(0, 1), &acme, &none, NOW)->server_len, 0);
	assert_int_equal(jwt_cache_add(cache, digest_of(0, 2), &acme, &most, NOW)->server_len,
			 JWT_SERVER_MAX);
}

static void who_was_refused_is_found_with_the_reason_and_without_a_tenant(void **state)
{
	struct jwt_cache *cache = *state;

	for (uint8_t n = 1; n <= JWT_CACHE_WAYS; n++)
		add(cache, 0, n, NOW + 10);
	jwt_cache_refuse(cache, digest_of(0, 100), JWT_TENANT_UNKNOWN, NOW + 10, NOW);
	const struct jwt_known *known = jwt_cache_find(cache, digest_of(0, 100), NOW);
	assert_non_null(known);
	assert_int_equal(known->fault, JWT_TENANT_UNKNOWN);
	assert_null(known->tenant);
	assert_int_equal(known->server_len, 0);
	add(cache, 1, 1, NOW + 10);
	assert_int_equal(jwt_cache_find(cache, digest_of(1, 1), NOW)->fault, JWT_OK);
	assert_false(knows(cache, 0, 100, NOW + 10));
}

static void a_new_generation_knows_nothing(void **state)
{
	struct jwt_cache *cache = *state;

	add(cache, 0, 1, NOW + 10);
	add(cache, 1, 1, NOW + 10);
	jwt_cache_renew(cache);
	assert_false(knows(cache, 0, 1, NOW));
	assert_false(knows(cache, 1, 1, NOW));
	add(cache, 0, 1, NOW + 10);
	assert_true(knows(cache, 0, 1, NOW));
}

static void who_was_not_seen_for_longest_makes_room(void **state)
{
	struct jwt_cache *cache = *state;

	for (uint8_t n = 1; n <= JWT_CACHE_WAYS; n++)
		add(cache, 0, n, NOW + 10);
	add(cache, 1, 9, NOW + 10);
	assert_true(knows(cache, 0, 1, NOW)); /* seen again: the second is the oldest now */
	add(cache, 0, 100, NOW + 10);
	assert_false(knows(cache, 0, 2, NOW));
	assert_true(knows(cache, 0, 1, NOW) && knows(cache, 0, 3, NOW) && knows(cache, 0, 4, NOW) &&
		    knows(cache, 0, 100, NOW));
	assert_true(knows(cache, 1, 9, NOW)); /* another set is not concerned */
}

static void what_is_over_makes_room_first(void **state)
{
	const struct jwt_token token = token_of(SLICE("s"), NOW + 10);
	struct jwt_cache *cache = *state;

	for (uint8_t n = 1; n <= JWT_CACHE_WAYS; n++)
		add(cache, 0, n, n == 3 ? NOW + 1 : NOW + 10);
	assert_non_null(jwt_cache_add(cache, digest_of(0, 100), &acme, &token, NOW + 1));
	for (uint8_t n = 1; n <= JWT_CACHE_WAYS; n++)
		assert_int_equal(knows(cache, 0, n, NOW), n != 3);
	assert_true(knows(cache, 0, 100, NOW));
}

/* Each with a token of his own, in turn: whoever is forgotten before he comes again is never remembered. */
static void ten_thousand_callers_are_remembered(void **state)
{
	enum { CALLERS = 10000 };
	const struct jwt_token token = token_of(SLICE("billing"), NOW + 10);
	struct jwt_cache cache;
	uint32_t known = 0;

	(void)state;
	assert_true(jwt_cache_init(&cache, JWT_CACHE_TOKENS));
	for (uint32_t i = 0; i < 2 * CALLERS; i++) {
		const uint32_t caller = i % CALLERS;
		uint8_t digest[SHA256_BYTES];
		sha256(slice_of((const char *)&caller, sizeof(caller)), digest);
		if (jwt_cache_find(&cache, digest, NOW) != NULL)
			known++;
		else
			(void)jwt_cache_add(&cache, digest, &acme, &token, NOW);
	}
	assert_true(known > CALLERS / 100 * 95);
	jwt_cache_fini(&cache);
}

int main(void)
{
#define FRESH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		FRESH(what_was_added_is_found_until_its_time_is_over),
		FRESH(a_token_without_a_server_has_none),
		FRESH(who_was_refused_is_found_with_the_reason_and_without_a_tenant),
		FRESH(a_new_generation_knows_nothing),
		FRESH(who_was_not_seen_for_longest_makes_room),
		FRESH(what_is_over_makes_room_first),
		cmocka_unit_test(ten_thousand_callers_are_remembered),
	};

	return cmocka_run_group_tests_name("jwt_cache", tests, NULL, NULL);
}
