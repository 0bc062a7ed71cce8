/* Integers and strings of HPACK: the examples of RFC 7541 appendix C, every code of appendix B, and what is
 * no integer and no code. */
#include "gateway/http/hpack.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gateway/http/huffman.h"

static const struct symbol {
	uint8_t symbol, bits;
	uint32_t code;
} symbols[] = {
#define ROW(symbol, code, bits) { symbol, bits, code },
	HUFFMAN_SHORT(ROW) HUFFMAN_LONG(ROW)
#undef ROW
};

/* ---- integers ---- */
static size_t read_bytes(const char *bytes, size_t len, unsigned bits, size_t *left)
{
	/* Of their size, so that AddressSanitizer sees what is read behind them. */
	uint8_t *copy = malloc(len + (len == 0));
	assert_non_null(copy);
	if (len != 0)
		(void)memcpy(copy, bytes, len);
	struct hpack_reader reader = { copy, copy + len };
	size_t value = hpack_read_int(&reader, bits);
	*left = (size_t)(reader.end - reader.at);
	free(copy);
	return value;
}

static void integers_are_read(void **state)
{
	static const struct row {
		const char *name, *bytes;
		size_t len, value, left;
		unsigned bits;
	} rows[] = {
		{ "C.1.1: 10 in 5 bits", "\xea", 1, 10, 0, 5 },
		{ "C.1.2: 1337 in 5 bits", "\x1f\x9a\x0a", 3, 1337, 0, 5 },
		{ "C.1.3: 42 in 8 bits", "\x2a", 1, 42, 0, 8 },
		{ "the least that goes on", "\x7f\x00z", 3, 127, 1, 7 },
		{ "zeros in front", "\x0f\x80\x80\x80\x00", 5, 15, 0, 4 },
		{ "four more bytes", "\x0f\xff\xff\xff\x7f", 5, 15 + 0xfffffff, 0, 4 },
		{ "five more bytes", "\x0f\xff\xff\xff\xff\x01", 6, SIZE_MAX, 1, 4 },
		{ "no byte", "", 0, SIZE_MAX, 0, 7 },
		{ "cut off behind the first byte", "\x7f", 1, SIZE_MAX, 0, 7 },
		{ "cut off further on", "\x7f\x80", 2, SIZE_MAX, 0, 7 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		size_t left = 0;
		print_message("%s\n", rows[i].name);
		assert_int_equal(read_bytes(rows[i].bytes, rows[i].len, rows[i].bits, &left),
				 rows[i].value);
		assert_int_equal(left, rows[i].left);
	}
}

static void integers_are_read_as_they_were_written(void **state)
{
	static const size_t values[] = {
		0,   1,   14,  15,    16,    30,   31,      32,       126,      127,      128,
		254, 255, 256, 16383, 16384, 1337, 0xfffff, 0x1fffff, 0x200000, 0xfffffff
	};

	(void)state;
	for (unsigned bits = 4; bits <= 7; bits++)
		for (size_t i = 0; i < COUNT_OF(values); i++) {
			uint8_t bytes[HPACK_INT_MAX];
			const uint8_t flags = (uint8_t)(0xff << bits);
			size_t len = (size_t)(hpack_put_int(bytes, flags, bits, values[i]) - bytes),
			       left;
			assert_in_range(len, 1, HPACK_INT_MAX);
			assert_int_equal(bytes[0] & flags, flags);
			assert_int_equal(read_bytes((char *)bytes, len, bits, &left), values[i]);
			assert_int_equal(left, 0);
		}
}

/* ---- strings ---- */
static void strings_are_read_as_they_were_written(void **state)
{
	char text[300];
	uint8_t bytes[sizeof(text) + HPACK_INT_MAX];

	(void)state;
	(void)memset(text, 'x', sizeof(text));
	for (size_t len = 0; len <= sizeof(text); len++) {
		const uint8_t *end = hpack_put_text(bytes, slice_of(text, len));
		struct hpack_reader reader = { bytes, end };
		struct hpack_text read;
		assert_true(hpack_read_text(&reader, &read));
		assert_false(read.packed);
		assert_true(slice_eq(read.bytes, slice_of(text, len)));
		assert_ptr_equal(reader.at, end);
		reader = (struct hpack_reader){ bytes, end - 1 };
		assert_false(hpack_read_text(&reader, &read));
	}
}

/* ---- Huffman's code ---- */
/* From and into memory of just the size. */
static size_t unpack(const uint8_t *bytes, size_t len, char *into)
{
	const size_t room = hpack_unpacked_max(len);
	char *copy = malloc(len + 1), *to = malloc(room + 1);
	assert_non_null(copy);
	assert_non_null(to);
	(void)memcpy(copy + 1, bytes, len); /* ends where the memory does */
	size_t unpacked = hpack_unpack(slice_of(copy + 1, len), to + 1);
	if (unpacked != SIZE_MAX) {
		assert_in_range(unpacked, 0, room);
		(void)memcpy(into, to + 1, unpacked);
	}
	free(copy);
	free(to);
	return unpacked;
}

struct pen {
	uint8_t bytes[512];
	size_t bits;
};

static void put_bits(struct pen *pen, uint32_t code, unsigned bits)
{
	for (unsigned bit = bits; bit-- > 0; pen->bits++) {
		assert_true(pen->bits / 8 < sizeof(pen->bytes));
		if ((code >> bit & 1) != 0)
			pen->bytes[pen->bits / 8] |= (uint8_t)(0x80 >> pen->bits % 8);
	}
}

/* Ones up to the end of the byte; how many bytes there are. */
static size_t pad(struct pen *pen)
{
	while (pen->bits % 8 != 0)
		put_bits(pen, 1, 1);
	return pen->bits / 8;
}

static void every_code_is_unpacked(void **state)
{
	char text[64];

	(void)state;
	assert_int_equal(COUNT_OF(symbols), 256);
	for (size_t i = 0; i < COUNT_OF(symbols); i++) {
		struct pen pen = { .bits = 0 };
		put_bits(&pen, symbols[i].code, symbols[i].bits);
		assert_int_equal(unpack(pen.bytes, pad(&pen), text), 1);
		assert_int_equal((uint8_t)text[0], symbols[i].symbol);
	}
}

static void texts_of_any_codes_are_unpacked(void **state)
{
	uint32_t seed = 7541;

	(void)state;
	for (size_t round = 0; round < 20000; round++) {
		struct pen pen = { .bits = 0 };
		char text[sizeof(pen.bytes) * 2], wanted[100];
		size_t len = round % sizeof(wanted);
		for (size_t i = 0; i < len; i++) {
			seed = seed * 1664525 + 1013904223;
			/* Every second text of short codes alone. */
			const struct symbol *one =
				&symbols[(seed >> 8) % (round % 2 == 0 ? 74 : 256)];
			wanted[i] = (char)one->symbol;
			put_bits(&pen, one->code, one->bits);
		}
		assert_int_equal(unpack(pen.bytes, pad(&pen), text), len);
		assert_memory_equal(text, wanted, len);
	}
}

static void the_examples_are_unpacked(void **state)
{
	static const struct row {
		const char *text, *packed;
		size_t len;
	} rows[] = {
		{ "www.example.com", "\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff", 12 },
		{ "no-cache", "\xa8\xeb\x10\x64\x9c\xbf", 6 },
		{ "custom-value", "\x25\xa8\x49\xe9\x5b\xb8\xe8\xb4\xbf", 9 },
		{ "302", "\x64\x02", 2 },
		{ "https://www.example.com",
		  "\x9d\x29\xad\x17\x18\x63\xc7\x8f\x0b\x97\xc8\xe9\xae\x82\xae\x43\xd3", 17 },
		{ "", "", 0 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		char text[64];
		size_t len = unpack((const uint8_t *)rows[i].packed, rows[i].len, text);
		assert_int_equal(len, strlen(rows[i].text));
		assert_memory_equal(text, rows[i].text, len);
	}
}

static void what_is_no_code_is_not_unpacked(void **state)
{
	static const struct row {
		const char *name, *packed;
		size_t len;
	} rows[] = {
		{ "padding of zeros", "\x18", 1 },
		{ "padding with one zero", "\x1e", 1 },
		{ "a byte of padding", "\xff", 1 },
		{ "a byte of padding behind a character", "\x1f\xff", 2 },
		{ "seven bytes of padding", "\xff\xff\xff\xff\xff\xff\xff", 7 },
		{ "EOS", "\xff\xff\xff\xff", 4 },
		{ "EOS behind a character", "\x1f\xff\xff\xff\xff", 5 },
		{ "EOS before a character", "\xff\xff\xff\xfc\x1f", 5 },
		{ "a long code that is cut off", "\xff\xff\xff\xe0", 4 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		char text[64];
		print_message("%s\n", rows[i].name);
		assert_true(unpack((const uint8_t *)rows[i].packed, rows[i].len, text) == SIZE_MAX);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(integers_are_read),
		cmocka_unit_test(integers_are_read_as_they_were_written),
		cmocka_unit_test(strings_are_read_as_they_were_written),
		cmocka_unit_test(every_code_is_unpacked),
		cmocka_unit_test(texts_of_any_codes_are_unpacked),
		cmocka_unit_test(the_examples_are_unpacked),
		cmocka_unit_test(what_is_no_code_is_not_unpacked),
	};
	return cmocka_run_group_tests_name("hpack", tests, NULL, NULL);
}
