#include "codec/base/sha256.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void the_digest_of_the_standard_example(void **state)
{
	uint8_t digest[SHA256_BYTES];
	char hex[65] = "";
	(void)state;

	sha256(SLICE("abc"), digest); /* FIPS 180-2, B.1 */
	sha256_hex(digest, 64, hex);
	assert_string_equal(hex,
			    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

static void hex_may_be_cut(void **state)
{
	uint8_t digest[SHA256_BYTES];
	char hex[8] = "";
	(void)state;

	sha256(SLICE("abc"), digest);
	sha256_hex(digest, 5, hex);
	assert_string_equal(hex, "ba781");
}

static void pieces_make_the_digest_of_the_whole(void **state)
{
	char text[300];
	uint8_t whole[SHA256_BYTES], pieces[SHA256_BYTES];
	(void)state;

	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (char)(i * 7);
	sha256(slice_of(text, sizeof(text)), whole);
	for (size_t cut = 0; cut <= sizeof(text); cut++) {
		struct sha256_sum sum;
		sha256_begin(&sum);
		sha256_add(&sum, slice_of(text, cut));
		sha256_add(&sum, slice_of(text, 0));
		sha256_add(&sum, slice_of(text + cut, sizeof(text) - cut));
		sha256_end(&sum, pieces);
		assert_memory_equal(whole, pieces, sizeof(whole));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_digest_of_the_standard_example),
		cmocka_unit_test(hex_may_be_cut),
		cmocka_unit_test(pieces_make_the_digest_of_the_whole),
	};
	return cmocka_run_group_tests_name("sha256", tests, NULL, NULL);
}
