/* Header blocks, each with what is learnt from it. How many fields are too many is test_h2_guard's. */
#include "gateway/http/h2_guard_block.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { PADDED = 8, PRIORITY = 0x20 };
enum { PACKED_MAX = 11 }; /* bytes of a number that are looked at */

#define BLOCK(text) text, sizeof(text) - 1

static const struct row {
	const char *name, *bytes;
	size_t len;
	unsigned fields;
	uint64_t content_length;
	uint8_t flags;
} rows[] = {
	{ "nothing", BLOCK(""), 0, 0, 0 },
	{ "never indexed",
	  BLOCK("\x1f\x0d\x03"
		"123"),
	  1, 123, 0 },
	{ "not indexed",
	  BLOCK("\x0f\x0d\x03"
		"123"),
	  1, 123, 0 },
	{ "indexed",
	  BLOCK("\x5c\x03"
		"123"),
	  1, 123, 0 },
	{ "among others",
	  BLOCK("\x82\x5c\x01"
		"7\x00\x01n\x01v\x20"),
	  4, 7, 0 },
	{ "twice: the last",
	  BLOCK("\x5c\x02"
		"12\x5c\x01"
		"9"),
	  2, 9, 0 },
	{ "packed (RFC 7541 C.6.1)", BLOCK("\x5c\x82\x64\x02"), 1, 302, 0 },
	{ "packed (RFC 7541 C.6.2)", BLOCK("\x5c\x83\x64\x0e\xff"), 1, 307, 0 },
	{ "another name",
	  BLOCK("\x5d\x03"
		"123"),
	  1, 0, 0 },
	{ "a name by the table of the connection",
	  BLOCK("\x7e\x03"
		"123"),
	  1, 0, 0 },
	{ "no number",
	  BLOCK("\x5c\x03"
		"12x"),
	  1, 0, 0 },
	{ "no digits", BLOCK("\x5c\x00"), 1, 0, 0 },
	{ "2^64 - 1",
	  BLOCK("\x5c\x14"
		"18446744073709551615"),
	  1, UINT64_MAX, 0 },
	{ "2^64",
	  BLOCK("\x5c\x14"
		"18446744073709551616"),
	  1, 0, 0 },
	{ "packed text", BLOCK("\x5c\x86\xa8\xeb\x10\x64\x9c\xbf"), 1, 0, 0 }, /* "no-cache" */
	{ "packed, a byte of padding", BLOCK("\x5c\x83\x64\x02\xff"), 1, 0, 0 },
	{ "packed, padding of zeros", BLOCK("\x5c\x81\x08"), 1, 0, 0 },
	{ "packed, too many digits", BLOCK("\x5c\x8e\0\0\0\0\0\0\0\0\0\0\0\0\0\0"), 1, 0, 0 },
	{ "cut off in the number",
	  BLOCK("\x82\x5c\x03"
		"12"),
	  1, 0, 0 },
	{ "cut off in its length", BLOCK("\x82\x5c\x7f"), 1, 0, 0 },
	{ "padded, with a priority",
	  BLOCK("\x02ppppp\x5c\x01"
		"7\x5c\x01"),
	  1, 7, PADDED | PRIORITY },
	{ "padded by more than there is",
	  BLOCK("\x09\x5c\x01"
		"7"),
	  0, 0, PADDED },
};

static void blocks_are_read_as_far_as_they_go(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *row = &rows[i];
		print_message("  %s\n", row->name);
		struct guard_block block = guard_block_read(row->bytes, row->len, row->flags);
		assert_int_equal(block.fields, row->fields);
		assert_true(block.content_length == row->content_length);
	}
}

/* RFC 7541 5.2 and appendix B; returns the length. */
static size_t pack(const char *digits, uint8_t into[32])
{
	uint64_t bits = 0;
	size_t count = 0, len = 0;
	for (; *digits != '\0'; digits++) {
		unsigned digit = (unsigned)(*digits - '0'), width = digit < 3 ? 5 : 6;
		bits = bits << width | (digit < 3 ? digit : 0x19 + digit - 3);
		for (count += width; count >= 8; count -= 8)
			into[len++] = (uint8_t)(bits >> (count - 8));
	}
	if (count != 0)
		into[len++] = (uint8_t)(bits << (8 - count) | 0xff >> count);
	return len;
}

static void packed_numbers_are_read(void **state)
{
	(void)state;
	for (uint64_t n = 1; n < UINT64_MAX / 7; n = n * 7 / 4 + 1) {
		char digits[32], block[64] = "\x5c";
		uint8_t packed[32];
		(void)snprintf(digits, sizeof(digits), "%llu", (unsigned long long)n);
		size_t len = pack(digits, packed);
		block[1] = (char)(0x80 | len);
		(void)memcpy(block + 2, packed, len);
		struct guard_block facts = guard_block_read(block, 2 + len, 0);
		assert_true(facts.content_length == (len <= PACKED_MAX ? n : 0));
		for (size_t cut = 0; cut < 2 + len; cut++) /* never anything beyond the end */
			assert_int_equal(guard_block_read(block, cut, 0).content_length, 0);
	}
}

static void any_bytes_can_be_read(void **state)
{
	(void)state;
	uint64_t random = 1;
	for (int i = 0; i < 200000; i++) {
		char bytes[40];
		for (size_t n = 0; n < sizeof(bytes); n++) {
			random = random * 6364136223846793005U + 1442695040888963407U;
			bytes[n] = (char)(random >> 56);
		}
		size_t len = (size_t)(random >> 33) % sizeof(bytes);
		uint8_t flags = (uint8_t)(random >> 40);
		struct guard_block block = guard_block_read(bytes, len, flags);
		assert_true(block.fields <= len);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_are_read_as_far_as_they_go),
		cmocka_unit_test(packed_numbers_are_read),
		cmocka_unit_test(any_bytes_can_be_read),
	};
	return cmocka_run_group_tests_name("h2_guard_block", tests, NULL, NULL);
}
