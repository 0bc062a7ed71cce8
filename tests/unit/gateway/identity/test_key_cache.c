#include "gateway/identity/key_cache.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static void remember(struct key_memory *memory, struct slice key)
{
	uint8_t digest[SHA256_BYTES];

	sha256(key, digest);
	key_memory_add(memory, key, digest);
}

static bool is_known(const struct key_memory *memory, struct slice key)
{
	const uint8_t *found = key_memory_find(memory, key);
	uint8_t digest[SHA256_BYTES];

	if (found == NULL)
		return false;
	sha256(key, digest);
	assert_memory_equal(found, digest, sizeof(digest)); /* never another key's */
	return true;
}

static void what_was_remembered_is_found_and_nothing_else(void **state)
{
	struct key_memory *memory = key_memory_new();

	(void)state;
	assert_non_null(memory);
	assert_false(is_known(memory, SLICE("sk-0123456789abcdef")));
	remember(memory, SLICE("sk-0123456789abcdef"));
	assert_true(is_known(memory, SLICE("sk-0123456789abcdef")));
	key_memory_free(memory);
	key_memory_free(NULL);
}

/* The place is chosen by the last bytes, so all of these are compared with the remembered one. */
static void a_key_that_differs_in_one_byte_is_another_one(void **state)
{
	for (size_t len = 16; len <= KEY_MEMORY_KEY_MAX; len++) {
		char text[KEY_MEMORY_KEY_MAX];
		struct key_memory *memory = key_memory_new();
		assert_non_null(memory);
		(void)memset(text, 'k', sizeof(text));
		remember(memory, slice_of(text, len));
		for (size_t i = 0; i < len; i++) {
			text[i] ^= 1;
			assert_false(is_known(memory, slice_of(text, len)));
			text[i] ^= 1;
		}
		assert_true(is_known(memory, slice_of(text, len)));
		assert_false(is_known(memory, slice_of(text, len - 1)));
		key_memory_free(memory);
	}
	(void)state;
}

static void a_key_that_is_too_long_is_not_remembered_and_harms_nobody(void **state)
{
	char text[KEY_MEMORY_KEY_MAX + 1];
	struct key_memory *memory = key_memory_new();

	(void)state;
	assert_non_null(memory);
	(void)memset(text, 'k', sizeof(text));
	remember(memory, slice_of(text, KEY_MEMORY_KEY_MAX)); /* of the same place */
	remember(memory, slice_of(text, sizeof(text)));
	assert_false(is_known(memory, slice_of(text, sizeof(text))));
	assert_true(is_known(memory, slice_of(text, KEY_MEMORY_KEY_MAX)));
	key_memory_free(memory);
}

static void the_later_key_takes_a_place_and_no_answer_is_ever_another_keys(void **state)
{
	struct key_memory *memory = key_memory_new();
	size_t known = 0;

	(void)state;
	assert_non_null(memory);
	for (int round = 0; round < 2; round++)
		for (int n = 0; n < 10 * KEY_MEMORY_PLACES; n++) {
			char text[40];
			(void)snprintf(text, sizeof(text), "sk-test-%016d", n);
			if (!is_known(memory, slice_str(text)))
				remember(memory, slice_str(text));
			assert_true(is_known(memory, slice_str(text)));
		}
	for (int n = 0; n < 10 * KEY_MEMORY_PLACES; n++) {
		char text[40];
		(void)snprintf(text, sizeof(text), "sk-test-%016d", n);
		known += is_known(memory, slice_str(text));
	}
	assert_in_range(known, 1, KEY_MEMORY_PLACES);
	key_memory_free(memory);
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
