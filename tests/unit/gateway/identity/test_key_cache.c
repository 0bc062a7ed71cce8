#include "gateway/identity/key_cache.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static void remember(struct key_cache *cache, struct slice key)
{
	uint8_t digest[SHA256_BYTES];

	sha256(key, digest);
	key_cache_add(cache, key, digest);
}

static bool is_known(const struct key_cache *cache, struct slice key)
{
	const uint8_t *found = key_cache_find(cache, key);
	uint8_t digest[SHA256_BYTES];

	if (found == NULL)
		return false;
	sha256(key, digest);
	assert_memory_equal(found, digest, sizeof(digest)); /* never another key's */
	return true;
}

static void what_was_remembered_is_found_and_nothing_else(void **state)
{
	struct key_cache *cache = key_cache_new();

	(void)state;
	assert_non_null(cache);
	assert_false(is_known(cache, SLICE("sk-0123456789abcdef")));
	remember(cache, SLICE("sk-0123456789abcdef"));
	assert_true(is_known(cache, SLICE("sk-0123456789abcdef")));
	key_cache_free(cache);
	key_cache_free(NULL);
}

/* The slot is chosen by the last bytes, so all of these are compared with the remembered one. */
static void a_key_that_differs_in_one_byte_is_another_one(void **state)
{
	for (size_t len = 16; len <= KEY_CACHE_KEY_MAX; len++) {
		char text[KEY_CACHE_KEY_MAX];
		struct key_cache *cache = key_cache_new();
		assert_non_null(cache);
		(void)memset(text, 'k', sizeof(text));
		remember(cache, slice_of(text, len));
		for (size_t i = 0; i < len; i++) {
			text[i] ^= 1;
			assert_false(is_known(cache, slice_of(text, len)));
			text[i] ^= 1;
		}
		assert_true(is_known(cache, slice_of(text, len)));
		assert_false(is_known(cache, slice_of(text, len - 1)));
		key_cache_free(cache);
	}
	(void)state;
}

static void a_key_that_is_too_long_is_not_remembered_and_harms_nobody(void **state)
{
	char text[KEY_CACHE_KEY_MAX + 1];
	struct key_cache *cache = key_cache_new();

	(void)state;
	assert_non_null(cache);
	(void)memset(text, 'k', sizeof(text));
	remember(cache, slice_of(text, KEY_CACHE_KEY_MAX)); /* of the same slot */
	remember(cache, slice_of(text, sizeof(text)));
	assert_false(is_known(cache, slice_of(text, sizeof(text))));
	assert_true(is_known(cache, slice_of(text, KEY_CACHE_KEY_MAX)));
	key_cache_free(cache);
}

static void the_later_key_takes_a_place_and_no_answer_is_ever_another_keys(void **state)
{
	struct key_cache *cache = key_cache_new();
	size_t known = 0;

	(void)state;
	assert_non_null(cache);
	for (int round = 0; round < 2; round++)
		for (int n = 0; n < 10 * KEY_CACHE_SLOTS; n++) {
			char text[40];
			(void)snprintf(text, sizeof(text), "sk-test-%016d", n);
			if (!is_known(cache, slice_str(text)))
				remember(cache, slice_str(text));
			assert_true(is_known(cache, slice_str(text)));
		}
	for (int n = 0; n < 10 * KEY_CACHE_SLOTS; n++) {
		char text[40];
		(void)snprintf(text, sizeof(text), "sk-test-%016d", n);
		known += is_known(cache, slice_str(text));
	}
	assert_in_range(known, 1, KEY_CACHE_SLOTS);
	key_cache_free(cache);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_remembered_is_found_and_nothing_else),
		cmocka_unit_test(a_key_that_differs_in_one_byte_is_another_one),
		cmocka_unit_test(a_key_that_is_too_long_is_not_remembered_and_harms_nobody),
		cmocka_unit_test(the_later_key_takes_a_place_and_no_answer_is_ever_another_keys),
	};
	return cmocka_run_group_tests_name("key_cache", tests, NULL, NULL);
}
