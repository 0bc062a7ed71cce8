#include "tenants/base64url.h"

#include "codec/base/attr.h"
#include "tests/support/jwt_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static void every_run_of_bytes_has_one_text(void **state)
{
	static const struct {
		const char *name;
		struct slice text, bytes; /* absent: refused */
	} rows[] = {
		{ "nothing", SLICE_INIT(""), SLICE_INIT("") },
		{ "one byte", SLICE_INIT("Zg"), SLICE_INIT("f") },
		{ "two bytes", SLICE_INIT("Zm8"), SLICE_INIT("fo") },
		{ "three bytes", SLICE_INIT("Zm9v"), SLICE_INIT("foo") },
		{ "four bytes", SLICE_INIT("Zm9vYg"), SLICE_INIT("foob") },
		{ "the two last digits", SLICE_INIT("-_-_"), SLICE_INIT("\xfb\xff\xbf") },
		{ "a digit too many", SLICE_INIT("Zm9vY"), { NULL, 0 } },
		{ "one digit", SLICE_INIT("Z"), { NULL, 0 } },
		{ "padding", SLICE_INIT("Zg=="), { NULL, 0 } },
		{ "another last digit of the same byte", SLICE_INIT("Zh"), { NULL, 0 } },
		{ "another last digit of the same two bytes", SLICE_INIT("Zm9"), { NULL, 0 } },
		{ "base64's plus", SLICE_INIT("+/+/"), { NULL, 0 } },
		{ "a space", SLICE_INIT("Zm 9v"), { NULL, 0 } },
		{ "a line break", SLICE_INIT("Zm9v\n"), { NULL, 0 } },
		{ "a NUL", SLICE_INIT("Zm\0v"), { NULL, 0 } },
		{ "a byte above ASCII", SLICE_INIT("Zm9\xc3"), { NULL, 0 } },
	};
	char out[8];

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const size_t len = base64url_decode(rows[i].text, out, sizeof(out));
		if (slice_absent(rows[i].bytes) != (len == SIZE_MAX) ||
		    (len != SIZE_MAX && !slice_eq(slice_of(out, len), rows[i].bytes)))
			fail_msg("%s: %zu bytes", rows[i].name, len);
	}
}

static void no_byte_is_written_past_the_room(void **state)
{
	char out[4] = "abc";

	(void)state;
	assert_int_equal(base64url_decode(SLICE("Zm9vYg"), out, 3), SIZE_MAX);
	assert_int_equal(out[3], '\0');
	assert_int_equal(base64url_decode(SLICE("Zm9v"), out, 3), 3);
	assert_memory_equal(out, "foo", 4);
}

static void what_is_encoded_is_decoded(void **state)
{
	char bytes[257], out[257], encoded[512];

	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (char)(i * 167);
	for (size_t len = 0; len <= sizeof(bytes); len++) {
		char *text = jwt_text_base64url(slice_of(bytes, len));
		(void)memset(encoded, '.', sizeof(encoded));
		base64url_encode(bytes, len, encoded);
		assert_int_equal(base64url_len(len), strlen(text));
		assert_memory_equal(encoded, text, strlen(text));
		assert_int_equal(encoded[strlen(text)], '.'); /* nothing behind it is written */
		assert_int_equal(base64url_decode(slice_str(text), out, sizeof(out)), len);
		assert_memory_equal(out, bytes, len);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_run_of_bytes_has_one_text),
		cmocka_unit_test(no_byte_is_written_past_the_room),
		cmocka_unit_test(what_is_encoded_is_decoded),
	};

	return cmocka_run_group_tests_name("base64url", tests, NULL, NULL);
}
