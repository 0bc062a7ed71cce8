/* Chunked bodies, however they are cut, and that both directions read them alike. */
#include "gateway/base/http_chunk.h"
#include "gateway/upstream/upstream_http.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { TRAILERS_MAX = 64 };

static const struct row {
	const char *name, *text, *problem; /* problem: a part of it; NULL: none */
	size_t behind; /* bytes behind the body's end; SIZE_MAX: it has not ended */
} rows[] = {
	{ "chunks", "5\r\nhello\r\n0\r\n\r\n", NULL, 0 },
	{ "chunks and another request", "5\r\nhello\r\n0\r\n\r\nPOST", NULL, 4 },
	{ "nothing", "0\r\n\r\n", NULL, 0 },
	{ "zeros, capitals, blanks", "00A \t\r\n0123456789\r\n000 \r\n\r\n", NULL, 0 },
	{ "extensions and trailers", "3;a=\"b c\";d\r\nabc\r\n0;x\r\nX-Sum: 1\r\nY:\r\n\r\n", NULL,
	  0 },
	{ "data that looks like framing", "7\r\n0\r\n\r\n0\r\r\n0\r\n\r\n", NULL, 0 },
	{ "no end", "5\r\nhello\r\n", NULL, SIZE_MAX },
	{ "no end of the trailers", "0\r\nX: y\r\n", NULL, SIZE_MAX },
	{ "a size that ends in LF", "5\nhello\r\n0\r\n\r\n", "CR LF", 0 },
	{ "no size", "\r\nhello", "malformed", 0 },
	{ "a size in the usual notation", "0x5\r\nhello", "malformed", 0 },
	{ "a sign", "-1\r\nhello", "malformed", 0 },
	{ "a blank first", " 5\r\nhello", "malformed", 0 },
	{ "text behind a size", "5 x\r\nhello", "malformed", 0 },
	{ "sixteen digits", "0000000000000005\r\nhello", "too many digits", 0 },
	{ "LF in an extension", "5;a\nb\r\nhello", "CR LF", 0 },
	{ "CR in an extension", "5;a\rb\r\nhello", "control character", 0 },
	{ "NUL-like text in an extension", "5;a\x01\r\nhello", "control character", 0 },
	{ "data that ends in LF", "5\r\nhello\n0\r\n\r\n", "CR LF", 0 },
	{ "data that goes on", "5\r\nhello!\r\n0\r\n\r\n", "CR LF", 0 },
	{ "an end in LF", "0\n\n", "CR LF", 0 },
	{ "trailers that end in LF", "0\r\nX: y\n\n", "CR LF", 0 },
	{ "a folded trailer", "0\r\nX: y\r\n z\r\n\r\n", "folded", 0 },
	{ "a trailer without a colon", "0\r\nrubbish\r\n\r\n", "name", 0 },
	{ "a trailer without a name", "0\r\n: y\r\n\r\n", "name", 0 },
	{ "a blank in a trailer's name", "0\r\nX y: z\r\n\r\n", "name", 0 },
};

/* In pieces of `step` bytes, each in a block of its own size. */
static const char *scan_cut(const char *text, size_t step, struct http_chunks *chunks)
{
	const size_t len = strlen(text);
	const char *problem = NULL;

	*chunks = (struct http_chunks){ 0 };
	for (size_t at = 0; at < len && problem == NULL; at += step) {
		const size_t size = step < len - at ? step : len - at;
		char *piece = malloc(size);
		assert_non_null(piece);
		(void)memcpy(piece, text + at, size);
		problem = http_chunks_scan(chunks, piece, size, TRAILERS_MAX);
		free(piece);
	}
	return problem;
}

static void bodies_end_or_fail_as_they_must_however_they_are_cut(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		print_message("  %s\n", rows[i].name);
		for (size_t step = 1; step <= strlen(rows[i].text); step++) {
			struct http_chunks chunks;
			const char *problem = scan_cut(rows[i].text, step, &chunks);
			if (rows[i].problem != NULL) {
				assert_non_null(problem);
				assert_non_null(strstr(problem, rows[i].problem));
			} else {
				assert_null(problem);
				assert_int_equal(chunks.part == HTTP_CHUNK_OVER,
						 rows[i].behind != SIZE_MAX);
			}
		}
	}
}

static void answers_of_providers_are_read_alike(void **state)
{
	(void)state;
	const struct upstream_http_limits limits = { .head_max = 512, .body_max = 1024 };
	static const char head[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		char text[512];
		struct upstream_http http;
		print_message("  %s\n", rows[i].name);
		const int len = snprintf(text, sizeof(text), "%s%s", head, rows[i].text);
		upstream_http_init(&http, &limits);
		const enum upstream_http_verdict verdict =
			upstream_http_read(&http, text, (size_t)len);
		assert_int_equal(verdict, rows[i].problem != NULL      ? UPSTREAM_HTTP_REFUSED
					  : rows[i].behind == SIZE_MAX ? UPSTREAM_HTTP_MORE
								       : UPSTREAM_HTTP_DONE);
		if (verdict == UPSTREAM_HTTP_DONE)
			assert_int_equal((size_t)len - http.at, rows[i].behind);
	}
}

static void lines_and_trailers_have_a_bound(void **state)
{
	(void)state;
	struct http_chunks chunks;
	char line[HTTP_CHUNK_LINE_MAX + 8] = "5;", trailers[TRAILERS_MAX + 16] = "0\r\nX:";

	(void)memset(line + 2, 'a', HTTP_CHUNK_LINE_MAX - 4);
	(void)memcpy(line + HTTP_CHUNK_LINE_MAX - 2, "\r\n", 3);
	assert_null(scan_cut(line, sizeof(line), &chunks));
	(void)memcpy(line + HTTP_CHUNK_LINE_MAX - 2, "a\r\n", 4);
	assert_string_equal(scan_cut(line, sizeof(line), &chunks),
			    "a chunk's size line is too long");
	(void)memset(trailers + 5, 'a', TRAILERS_MAX + 10);
	assert_string_equal(scan_cut(trailers, sizeof(trailers), &chunks),
			    "the trailers are too large");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bodies_end_or_fail_as_they_must_however_they_are_cut),
		cmocka_unit_test(answers_of_providers_are_read_alike),
		cmocka_unit_test(lines_and_trailers_have_a_bound),
	};
	return cmocka_run_group_tests_name("http_chunk", tests, NULL, NULL);
}
