/* Heads, each with the fault they must end in; each is also given byte by byte. */
#include "gateway/http/h1_guard.h"

#include "codec/base/attr.h"
#include "gateway/base/bounds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { BODY_MAX = 1000 };

#define POST "POST /v1/sampling HTTP/1.1\r\nHost: x\r\n"
#define OLD "POST /v1/sampling HTTP/1.0\r\n"

static const struct row {
	const char *name, *head;
	enum h1_fault fault;
} rows[] = {
	{ "no body", POST "\r\n", H1_FINE },
	{ "a length", POST "Content-Length: 12\r\n\r\n", H1_FINE },
	{ "chunks", POST "Transfer-Encoding: chunked\r\n\r\n", H1_FINE },
	{ "chunks, in another case", POST "tRANSFER-eNCODING:\tCHUNKED\r\n\r\n", H1_FINE },
	{ "an empty line first", "\r\n" POST "Content-Length: 12\r\n\r\n", H1_FINE },
	{ "HTTP/1.0", OLD "Content-Length: 12\r\n\r\n", H1_FINE },
	{ "names that only begin so",
	  POST
	  "Content-Length-X: a\r\nContent-Lengt: b\r\nTransfer-Encodings: c\r\nHosts: d\r\n\r\n",
	  H1_FINE },
	{ "a length in a value", POST "X: Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
	  H1_FINE },
	{ "the largest body", POST "Content-Length: 1000\r\n\r\n", H1_FINE },
	{ "not yet whole", POST "Content-Length: 12\r\n", H1_FINE },
	{ "length, then encoding", POST "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
	  H1_LENGTH_AND_ENCODING },
	{ "encoding, then length", POST "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n",
	  H1_LENGTH_AND_ENCODING },
	{ "two lengths", POST "Content-Length: 3\r\nContent-Length: 4\r\n\r\n", H1_LENGTH_TWICE },
	{ "two equal lengths", POST "Content-Length: 3\r\nX: y\r\ncontent-length: 3\r\n\r\n",
	  H1_LENGTH_TWICE },
	{ "a list of lengths", POST "Content-Length: 3, 3\r\n\r\n", H1_LENGTH },
	{ "a signed length", POST "Content-Length: +3\r\n\r\n", H1_LENGTH },
	{ "a negative length", POST "Content-Length: -3\r\n\r\n", H1_LENGTH },
	{ "a hexadecimal length", POST "Content-Length: 0x3\r\n\r\n", H1_LENGTH },
	{ "an empty length", POST "Content-Length:\r\n\r\n", H1_LENGTH },
	{ "a length of 2^64", POST "Content-Length: 18446744073709551616\r\n\r\n", H1_LENGTH },
	{ "a length of 2^64 - 1", POST "Content-Length: 18446744073709551615\r\n\r\n",
	  H1_BODY_TOO_LARGE },
	{ "a body of a byte too much", POST "Content-Length: 1001\r\n\r\n", H1_BODY_TOO_LARGE },
	{ "two encodings", POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
	  H1_ENCODING_TWICE },
	{ "an encoding nobody asked for", POST "Transfer-Encoding: gzip, chunked\r\n\r\n",
	  H1_ENCODING },
	{ "identity", POST "Transfer-Encoding: identity\r\n\r\n", H1_ENCODING },
	{ "an encoding with a vertical tab", POST "Transfer-Encoding: \vchunked\r\n\r\n",
	  H1_ENCODING },
	{ "HTTP/1.0 with an encoding", OLD "Transfer-Encoding: chunked\r\n\r\n", H1_ENCODING_OLD },
	{ "a folded line", POST "X: y\r\n Content-Length: 3\r\n\r\n", H1_FOLDED_LINE },
	{ "a line folded by a tab", POST "Transfer-Encoding:\r\n\tchunked\r\n\r\n", H1_ENCODING },
	{ "the first line folded", "GET / HTTP/1.1\r\n Host: x\r\n\r\n", H1_FOLDED_LINE },
	{ "LF alone", POST "X: y\nContent-Length: 3\r\n\r\n", H1_LINE_END },
	{ "LF alone behind the request", "GET / HTTP/1.1\nHost: x\r\n\r\n", H1_LINE_END },
	{ "an end of LF alone", POST "X: y\r\n\n", H1_LINE_END },
	{ "LF alone first", "\n" POST "\r\n", H1_LINE_END },
	{ "another protocol", "OPTIONS rtsp://x RTSP/1.0\r\n\r\n", H1_FOREIGN },
	{ "an invalid preface of HTTP/2", "INVALID CONNECTION PREFACE\r\n\r\n", H1_FOREIGN },
	{ "an odd method", "!odd / HTTP/1.1\r\nHost: x\r\n\r\n", H1_FINE },
	{ "a method that is no token", "@@ / HTTP/1.1\r\nHost: x\r\n\r\n", H1_METHOD },
	{ "no method", " / HTTP/1.1\r\nHost: x\r\n\r\n", H1_METHOD },
	{ "nor is another version", "GET / HTTP/2.7\r\nHost: x\r\n\r\n", H1_FINE },
	{ "nor the same in lower case", "GET / http/1.1\r\nHost: x\r\n\r\n", H1_FINE },
	{ "nor no version", "GET /\r\nHost: x\r\n\r\n", H1_FINE },
	{ "nor one word", "hello\r\nHost: x\r\n\r\n", H1_FINE },
	{ "no host", "GET / HTTP/1.1\r\nX: y\r\n\r\n", H1_HOST },
	{ "no host in HTTP/1.0", "GET / HTTP/1.0\r\nX: y\r\n\r\n", H1_FINE },
	{ "two hosts", POST "HOST: y\r\n\r\n", H1_HOST },
	{ "two hosts in HTTP/1.0", "GET / HTTP/1.0\r\nHost: x\r\nHost: x\r\n\r\n", H1_HOST },
};

static bool is_whole(const struct row *row)
{
	size_t len = strlen(row->head);
	return row->fault == H1_FINE && strcmp(row->head + len - 4, "\r\n\r\n") == 0;
}

static void heads_end_as_they_must(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct h1_guard guard = { 0 };
		size_t len = strlen(rows[i].head);
		print_message("  %s\n", rows[i].name);
		char *head = strdup(rows[i].head);
		assert_non_null(head);
		assert_int_equal(h1_guard_scan(&guard, head, len, BODY_MAX), rows[i].fault);
		free(head);
		if (rows[i].fault == H1_FINE)
			assert_int_equal(guard.whole, is_whole(&rows[i]) ? len : 0);
	}
}

/* In memory that ends with what has come, so that a sanitizer sees each look beyond it. */
static void heads_end_the_same_byte_by_byte(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct h1_guard guard = { 0 };
		enum h1_fault fault = H1_FINE;
		size_t len = strlen(rows[i].head);
		print_message("  %s\n", rows[i].name);
		for (size_t n = 1; n <= len && fault == H1_FINE; n++) {
			char *part = malloc(n);
			assert_non_null(part);
			(void)memcpy(part, rows[i].head, n);
			fault = h1_guard_scan(&guard, part, n, BODY_MAX);
			free(part);
		}
		assert_int_equal(fault, rows[i].fault);
		if (fault == H1_FINE)
			assert_int_equal(guard.whole, is_whole(&rows[i]) ? len : 0);
	}
}

/* What libh2o is to answer with 100; HTTP/1.0 has none, and libh2o is not to see that it was asked for. */
static void expectations_are_seen(void **state)
{
	static const struct {
		const char *head;
		bool expects, hidden;
	} heads[] = {
		{ POST "Expect: 100-continue\r\n\r\n", true, false },
		{ POST "eXPECT:100-Continue \r\nContent-Length: 1\r\n\r\n", true, false },
		{ POST "Expect: 200-ok\r\n\r\n", false, false },
		{ POST "Accept: 100-continue\r\nExpects: 100-continue\r\n\r\n", false, false },
		{ POST "\r\nExpect: 100-continue\r\n\r\n", false, false },
		{ OLD "Expect: 100-continue\r\n\r\n", false, true },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(heads); i++) {
		struct h1_guard guard = { 0 };
		char *head = strdup(heads[i].head);
		assert_non_null(head);
		assert_int_equal(h1_guard_scan(&guard, head, strlen(head), BODY_MAX), H1_FINE);
		assert_int_equal(guard.expects, heads[i].expects);
		assert_int_equal(strstr(head, "xxxxxx: 100-continue") != NULL, heads[i].hidden);
		assert_int_equal(strcmp(head, heads[i].head) != 0, heads[i].hidden);
		free(head);
	}
}

static void what_follows_the_head_is_not_judged(void **state)
{
	(void)state;
	struct h1_guard guard = { 0 };
	const char head[] = POST "Content-Length: 12\r\n\r\n";
	char text[] = POST "Content-Length: 12\r\n\r\n"
			   "Content-Length: 13\n folded\n";
	assert_int_equal(h1_guard_scan(&guard, text, sizeof(text) - 1, BODY_MAX), H1_FINE);
	assert_int_equal(guard.whole, sizeof(head) - 1);
	assert_int_equal(h1_guard_scan(&guard, text, sizeof(text) - 1, BODY_MAX), H1_FINE);
}

static void blanks_behind_a_length_or_an_encoding_move_in_front_of_it(void **state)
{
	(void)state;
	static const struct {
		const char *head, *becomes;
	} blanks[] = {
		{ POST "Content-Length: 40 \r\n\r\n", POST "Content-Length:  40\r\n\r\n" },
		{ POST "Content-Length:40\t \r\n\r\n", POST "Content-Length:  40\r\n\r\n" },
		{ POST "Transfer-Encoding: chunked \r\n\r\n",
		  POST "Transfer-Encoding:  chunked\r\n\r\n" },
		{ POST "Content-Length: 40\r\n\r\n", POST "Content-Length: 40\r\n\r\n" },
		{ POST "X: y \r\n\r\n", POST "X: y \r\n\r\n" },
	};

	for (size_t i = 0; i < COUNT_OF(blanks); i++) {
		char text[128];
		struct h1_guard guard = { 0 };
		const size_t len = strlen(blanks[i].head);
		(void)memcpy(text, blanks[i].head, len + 1);
		assert_int_equal(h1_guard_scan(&guard, text, len, BODY_MAX), H1_FINE);
		assert_string_equal(text, blanks[i].becomes);
	}
}

static void a_head_may_be_so_long_and_no_longer(void **state)
{
	(void)state;
	static const char begin[] = POST "X: ";
	char *text = malloc(HTTP1_HEAD_MAX + 1);
	assert_non_null(text);
	(void)memset(text, 'x', HTTP1_HEAD_MAX + 1);
	(void)memcpy(text, begin, sizeof(begin) - 1);
	(void)memcpy(text + HTTP1_HEAD_MAX - 4, "\r\n\r\n", 4);
	struct h1_guard whole = { 0 };
	assert_int_equal(h1_guard_scan(&whole, text, HTTP1_HEAD_MAX, BODY_MAX), H1_FINE);
	assert_int_equal(whole.whole, HTTP1_HEAD_MAX);

	(void)memcpy(text + HTTP1_HEAD_MAX - 4, "x\r\n\r\n", 5);
	struct h1_guard longer = { 0 };
	assert_int_equal(h1_guard_scan(&longer, text, HTTP1_HEAD_MAX + 1, BODY_MAX),
			 H1_HEAD_TOO_LARGE);

	/* A line that never ends, too. */
	(void)memset(text + sizeof(begin), 'x', HTTP1_HEAD_MAX - sizeof(begin));
	struct h1_guard line = { 0 };
	assert_int_equal(h1_guard_scan(&line, text, HTTP1_HEAD_MAX - 1, BODY_MAX), H1_FINE);
	assert_int_equal(h1_guard_scan(&line, text, HTTP1_HEAD_MAX, BODY_MAX), H1_HEAD_TOO_LARGE);
	free(text);
}

static void every_fault_has_an_answer_of_the_length_it_says(void **state)
{
	(void)state;
	for (int fault = H1_FINE + 1; fault < H1_FAULTS; fault++) {
		struct h1_answer answer;
		h1_guard_answer((enum h1_fault)fault, &answer);
		assert_int_equal(strlen(answer.text), answer.len);
		const char *gap = strstr(answer.text, "\r\n\r\n");
		const char *length = strstr(answer.text, "Content-Length: ");
		assert_non_null(gap);
		assert_non_null(length);
		assert_ptr_equal(answer.text + answer.body_at, gap + 4);
		assert_int_equal(strtoul(length + strlen("Content-Length: "), NULL, 10),
				 answer.len - answer.body_at);
		assert_int_equal(strtoul(answer.text + strlen("HTTP/1.1 "), NULL, 10),
				 answer.status);
		assert_int_equal(strstr(answer.text, "\r\nRetry-After: 1\r\n") != NULL,
				 answer.retry);
		assert_non_null(strstr(gap, "\"code\":"));
		assert_null(strstr(answer.text, "(null)"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(heads_end_as_they_must),
		cmocka_unit_test(heads_end_the_same_byte_by_byte),
		cmocka_unit_test(expectations_are_seen),
		cmocka_unit_test(what_follows_the_head_is_not_judged),
		cmocka_unit_test(blanks_behind_a_length_or_an_encoding_move_in_front_of_it),
		cmocka_unit_test(a_head_may_be_so_long_and_no_longer),
		cmocka_unit_test(every_fault_has_an_answer_of_the_length_it_says),
	};
	return cmocka_run_group_tests_name("h1_guard", tests, NULL, NULL);
}
