/* Good and hostile answers; every way to cut one in two, and byte by byte, must end the same. */
#include "gateway/upstream/upstream_http.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static const struct upstream_http_limits small = { .head_max = 512, .body_max = 64 };

struct row {
	const char *name;
	struct slice input;
	const char *problem; /* a part of it; NULL: not refused */
	bool closed;         /* the peer closes behind the input */
	bool more;           /* the answer is not complete */
	/* of a complete answer */
	uint16_t status;
	const char *body;
	size_t extra; /* bytes behind the answer */
	bool keep;
};

/* The fields above that a complete answer has. */
#define ANSWER(status_, body_, keep_) .status = (status_), .body = (body_), .keep = (keep_)

static const struct row good[] = {
	{ "content-length", SLICE_INIT("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc"),
	  ANSWER(200, "abc", true) },
	{ "content-length 0", SLICE_INIT("HTTP/1.1 500 X\r\nContent-Length: 0\r\n\r\n"),
	  ANSWER(500, "", true) },
	{ "no blank behind the colon", SLICE_INIT("HTTP/1.1 200 OK\r\ncontent-length:3\r\n\r\nabc"),
	  ANSWER(200, "abc", true) },
	{ "blanks around a value",
	  SLICE_INIT("HTTP/1.1 200 OK\r\nCONTENT-LENGTH: \t3 \t\r\n\r\nabc"),
	  ANSWER(200, "abc", true) },
	{ "an empty reason", SLICE_INIT("HTTP/1.1 200 \r\nContent-Length: 1\r\n\r\na"),
	  ANSWER(200, "a", true) },
	{ "no reason and no blank", SLICE_INIT("HTTP/1.1 200\r\nContent-Length: 1\r\n\r\na"),
	  ANSWER(200, "a", true) },
	{ "a reason in UTF-8", SLICE_INIT("HTTP/1.1 200 \xc3\x9c\r\nContent-Length: 1\r\n\r\na"),
	  ANSWER(200, "a", true) },
	{ "an empty header value",
	  SLICE_INIT("HTTP/1.1 200 OK\r\nX:\r\nContent-Length: 1\r\n\r\na"),
	  ANSWER(200, "a", true) },
	{ "connection: close",
	  SLICE_INIT("HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"),
	  ANSWER(413, "", false) },
	{ "close within a list",
	  SLICE_INIT("HTTP/1.1 200 OK\r\nConnection: x , CLOSE\r\nContent-Length: 1\r\n\r\na"),
	  ANSWER(200, "a", false) },
	{ "close beats keep-alive",
	  SLICE_INIT("HTTP/1.1 200 OK\r\nConnection: close\r\nConnection: keep-alive\r\n"
		     "Content-Length: 1\r\n\r\na"),
	  ANSWER(200, "a", false) },
	{ "HTTP/1.0 closes", SLICE_INIT("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na"),
	  ANSWER(200, "a", false) },
	{ "HTTP/1.0 with keep-alive",
	  SLICE_INIT("HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 1\r\n\r\na"),
	  ANSWER(200, "a", true) },
	{ "bytes behind the body",
	  SLICE_INIT("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcdefgh"),
	  ANSWER(200, "abc", true), .extra = 5 },
	{ "204 has no body", SLICE_INIT("HTTP/1.1 204 No Content\r\n\r\n"), ANSWER(204, "", true) },
	{ "204 with a length of 0",
	  SLICE_INIT("HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n"),
	  ANSWER(204, "", true) },
	{ "204 has no body, but one that it announces may come",
	  SLICE_INIT("HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n"),
	  ANSWER(204, "", false) },
	{ "304 has no body, whatever its length says, but it may come",
	  SLICE_INIT("HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n"),
	  ANSWER(304, "", false) },
	{ "until close", SLICE_INIT("HTTP/1.1 200 OK\r\n\r\nabc"), .closed = true,
	  ANSWER(200, "abc", false) },
	{ "an empty body until close", SLICE_INIT("HTTP/1.0 200 OK\r\n\r\n"), .closed = true,
	  ANSWER(200, "", false) },
	{ "chunked",
	  SLICE_INIT("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
		     "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"),
	  ANSWER(200, "abcde", true) },
	{ "chunked, empty",
	  SLICE_INIT("HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n0\r\n\r\n"),
	  ANSWER(200, "", true) },
	{ "chunk sizes in hex, with zeros and blanks",
	  SLICE_INIT("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
		     "00A \r\n0123456789\r\n00b\r\nabcdefghijk\r\n000\r\n\r\n"),
	  ANSWER(200, "0123456789abcdefghijk", true) },
	{ "chunk extensions and trailers",
	  SLICE_INIT("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
		     "3;a=b;c=\"d e\"\r\nabc\r\n0 ; last\r\nX-Sum: 1\r\nY: 2\r\n\r\n"),
	  ANSWER(200, "abc", true) },
	{ "a length in the trailers means nothing",
	  SLICE_INIT("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
		     "3\r\nabc\r\n0\r\nContent-Length: 9\r\nConnection: close\r\n\r\n"),
	  ANSWER(200, "abc", true) },
	{ "bytes behind the trailers",
	  SLICE_INIT("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nHTTP"),
	  ANSWER(200, "", true), .extra = 4 },
	{ "100 before the answer",
	  SLICE_INIT("HTTP/1.1 100 Continue\r\n\r\n"
		     "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na"),
	  ANSWER(200, "a", true) },
	{ "103 with headers that are not the answer's",
	  SLICE_INIT("HTTP/1.1 103 Early Hints\r\nConnection: close\r\nrequest-id: x\r\n\r\n"
		     "HTTP/1.1 102 Processing\r\n\r\n"
		     "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na"),
	  ANSWER(200, "a", true) },
	{ "a coding that is none",
	  SLICE_INIT("HTTP/1.1 200 OK\r\nContent-Encoding: Identity, \r\n"
		     "Content-Length: 1\r\n\r\na"),
	  ANSWER(200, "a", true) },
	{ "an error that cannot be read says by its status what it is",
	  SLICE_INIT("HTTP/1.1 429 Slow Down\r\nContent-Length: 4\r\nContent-Encoding: gzip\r\n"
		     "\r\n\x1f\x8b\x08x"),
	  ANSWER(429, "", true) },
	{ "likewise in chunks",
	  SLICE_INIT("HTTP/1.1 503 X\r\nContent-Encoding: br\r\nTransfer-Encoding: chunked\r\n"
		     "\r\n3\r\nabc\r\n0\r\n\r\n"),
	  ANSWER(503, "", true) },
	{ "a body of the largest size",
	  SLICE_INIT("HTTP/1.1 200 OK\r\nContent-Length: 64\r\n\r\n"
		     "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"),
	  ANSWER(200, "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", true) },
};

static const struct row unfinished[] = {
	{ "nothing", SLICE_INIT(""), .more = true },
	{ "nothing, then closed", SLICE_INIT(""), .more = true, .closed = true },
	{ "a CR, perhaps of a line's end", SLICE_INIT("HTTP/1.1 200 OK\r\nX: y\r"), .more = true },
	{ "half a status line", SLICE_INIT("HTTP/1.1 2"), .more = true, .closed = true },
	{ "half a head", SLICE_INIT("HTTP/1.1 200 OK\r\nContent-Le"), .more = true,
	  .closed = true },
	{ "only a 100", SLICE_INIT("HTTP/1.1 100 Continue\r\n\r\n"), .more = true, .closed = true },
	{ "half a body, then closed", SLICE_INIT("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabc"),
	  .more = true, .closed = true },
	{ "until close, not closed", SLICE_INIT("HTTP/1.1 200 OK\r\n\r\nabc"), .more = true },
	{ "no last chunk, then closed",
	  SLICE_INIT("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"),
	  .more = true, .closed = true },
	{ "no end of the trailers, then closed",
	  SLICE_INIT("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: y\r\n"),
	  .more = true, .closed = true },
};

#define HEAD "HTTP/1.1 200 OK\r\n"
#define CHUNKED HEAD "Transfer-Encoding: chunked\r\n\r\n"

static const struct row hostile[] = {
	{ "a coding that was not asked for",
	  SLICE_INIT(HEAD "Content-Length: 4\r\nContent-Encoding: gzip\r\n\r\n\x1f\x8b\x08x"),
	  .problem = "content-encoding" },
	{ "one of several codings",
	  SLICE_INIT(HEAD "content-encoding: identity,\tBR\r\nContent-Length: 1\r\n\r\na"),
	  .problem = "content-encoding" },
	{ "a coding in a second line",
	  SLICE_INIT(HEAD "content-encoding: identity\r\nContent-Encoding: deflate\r\n"
			  "Content-Length: 1\r\n\r\na"),
	  .problem = "content-encoding" },
	{ "another protocol", SLICE_INIT("SSH-2.0-OpenSSH_9.2\r\n"), .problem = "not HTTP/1" },
	{ "another protocol, no line end", SLICE_INIT("\x15\x03\x01"), .problem = "not HTTP/1" },
	{ "HTTP/2", SLICE_INIT("HTTP/2 200 OK\r\n\r\n"), .problem = "not HTTP/1" },
	{ "HTTP/1.2", SLICE_INIT("HTTP/1.2 200 OK\r\n\r\n"), .problem = "status line" },
	{ "HTTP/0.9", SLICE_INIT("<html>"), .problem = "not HTTP/1" },
	{ "lower case", SLICE_INIT("http/1.1 200 OK\r\n\r\n"), .problem = "not HTTP/1" },
	{ "an empty line first", SLICE_INIT("\r\nHTTP/1.1 200 OK\r\n\r\n"),
	  .problem = "not HTTP/1" },
	{ "a short status", SLICE_INIT("HTTP/1.1 20\r\n\r\n"), .problem = "status line" },
	{ "a long status", SLICE_INIT("HTTP/1.1 2000 OK\r\n\r\n"), .problem = "three digits" },
	{ "a status with letters", SLICE_INIT("HTTP/1.1 2x0 OK\r\n\r\n"),
	  .problem = "three digits" },
	{ "status 000", SLICE_INIT("HTTP/1.1 000 OK\r\n\r\n"), .problem = "from 100" },
	{ "status 600", SLICE_INIT("HTTP/1.1 600 OK\r\n\r\n"), .problem = "from 100" },
	{ "status 101", SLICE_INIT("HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n"),
	  .problem = "switched" },
	{ "two blanks in the status line", SLICE_INIT("HTTP/1.1  200 OK\r\n\r\n"),
	  .problem = "three digits" },
	{ "NUL in the reason", SLICE_INIT("HTTP/1.1 200 O\0K\r\n\r\n"), .problem = "control" },
	{ "bare LF behind the status", SLICE_INIT("HTTP/1.1 200 OK\nContent-Length: 0\n\n"),
	  .problem = "CR LF" },
	{ "bare LF behind a header", SLICE_INIT(HEAD "X: y\n\r\n"), .problem = "CR LF" },
	{ "bare LF ends the head", SLICE_INIT(HEAD "X: y\r\n\n"), .problem = "CR LF" },
	{ "bare CR in a value", SLICE_INIT(HEAD "X: y\rContent-Length: 3\r\n\r\n"),
	  .problem = "control" },
	{ "NUL in a value", SLICE_INIT(HEAD "X: \0\r\n\r\n"), .problem = "control" },
	{ "NUL in a name", SLICE_INIT(HEAD "X\0: y\r\n\r\n"), .problem = "control" },
	{ "NUL in a line without end", SLICE_INIT(HEAD "X: \0"), .problem = "control" },
	{ "a CR in a line without end", SLICE_INIT(HEAD "X: \ry"), .problem = "control" },
	{ "DEL in a status line without end", SLICE_INIT("HTTP/1.1 200 \x7f"),
	  .problem = "control" },
	{ "a folded header", SLICE_INIT(HEAD "X: y\r\n z\r\n\r\n"), .problem = "folded" },
	{ "folded right behind the status", SLICE_INIT(HEAD "\tz: a\r\n\r\n"),
	  .problem = "folded" },
	{ "no colon", SLICE_INIT(HEAD "nonsense\r\n\r\n"), .problem = "proper name" },
	{ "no name", SLICE_INIT(HEAD ": y\r\n\r\n"), .problem = "proper name" },
	{ "a blank before the colon", SLICE_INIT(HEAD "Content-Length : 3\r\n\r\nabc"),
	  .problem = "proper name" },
	{ "content-length abc", SLICE_INIT(HEAD "Content-Length: abc\r\n\r\n"),
	  .problem = "not a number" },
	{ "content-length empty", SLICE_INIT(HEAD "Content-Length:\r\n\r\n"),
	  .problem = "not a number" },
	{ "content-length negative", SLICE_INIT(HEAD "Content-Length: -1\r\n\r\n"),
	  .problem = "not a number" },
	{ "content-length with a sign", SLICE_INIT(HEAD "Content-Length: +3\r\n\r\nabc"),
	  .problem = "not a number" },
	{ "content-length in hex", SLICE_INIT(HEAD "Content-Length: 0x3\r\n\r\nabc"),
	  .problem = "not a number" },
	{ "content-length over 64 bits",
	  SLICE_INIT(HEAD "Content-Length: 18446744073709551619\r\n\r\nabc"),
	  .problem = "not a number" },
	{ "content-length at the end of 64 bits",
	  SLICE_INIT(HEAD "Content-Length: 18446744073709551615\r\n\r\nabc"),
	  .problem = "body is too large" },
	{ "content-length twice, conflicting",
	  SLICE_INIT(HEAD "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc"),
	  .problem = "twice" },
	{ "content-length twice, equal",
	  SLICE_INIT(HEAD "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc"),
	  .problem = "twice" },
	{ "content-length as a list", SLICE_INIT(HEAD "Content-Length: 3, 3\r\n\r\nabc"),
	  .problem = "not a number" },
	{ "transfer-encoding gzip", SLICE_INIT(HEAD "Transfer-Encoding: gzip\r\n\r\n"),
	  .problem = "not chunked" },
	{ "transfer-encoding gzip, chunked",
	  SLICE_INIT(HEAD "Transfer-Encoding: gzip, chunked\r\n\r\n"), .problem = "not chunked" },
	{ "transfer-encoding identity", SLICE_INIT(HEAD "Transfer-Encoding: identity\r\n\r\n"),
	  .problem = "not chunked" },
	{ "transfer-encoding empty", SLICE_INIT(HEAD "Transfer-Encoding:\r\n\r\n"),
	  .problem = "not chunked" },
	{ "transfer-encoding twice",
	  SLICE_INIT(HEAD "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"),
	  .problem = "twice" },
	{ "chunked and a length",
	  SLICE_INIT(HEAD "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n"),
	  .problem = "both" },
	{ "a length and chunked",
	  SLICE_INIT(HEAD "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"),
	  .problem = "both" },
	{ "chunked in HTTP/1.0",
	  SLICE_INIT("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
	  .problem = "HTTP/1.0" },
	{ "a 1xx answer with a length",
	  SLICE_INIT("HTTP/1.1 100 Continue\r\nContent-Length: 3\r\n\r\n"), .problem = "1xx" },
	{ "a 1xx answer with chunks",
	  SLICE_INIT("HTTP/1.1 100 Continue\r\nTransfer-Encoding: chunked\r\n\r\n"),
	  .problem = "1xx" },
	{ "a length over the limit", SLICE_INIT(HEAD "Content-Length: 65\r\n\r\n"),
	  .problem = "body is too large" },
	{ "until close over the limit",
	  SLICE_INIT(HEAD "\r\n0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdefg"),
	  .problem = "body is too large" },
	{ "a chunk over the limit", SLICE_INIT(CHUNKED "41\r\n"), .problem = "body is too large" },
	{ "chunks over the limit together",
	  SLICE_INIT(CHUNKED "20\r\n0123456789abcdef0123456789abcdef\r\n21\r\n"),
	  .problem = "body is too large" },
	{ "a chunk size without digits", SLICE_INIT(CHUNKED "\r\n"), .problem = "malformed" },
	{ "a chunk size with a sign", SLICE_INIT(CHUNKED "+3\r\nabc\r\n0\r\n\r\n"),
	  .problem = "malformed" },
	{ "a chunk size with 0x", SLICE_INIT(CHUNKED "0x3\r\nabc\r\n0\r\n\r\n"),
	  .problem = "malformed" },
	{ "a chunk size with a blank before", SLICE_INIT(CHUNKED " 3\r\nabc\r\n0\r\n\r\n"),
	  .problem = "malformed" },
	{ "a chunk size with rubbish behind", SLICE_INIT(CHUNKED "3 x\r\nabc\r\n0\r\n\r\n"),
	  .problem = "malformed" },
	{ "a chunk size over 64 bits", SLICE_INIT(CHUNKED "10000000000000003\r\nabc\r\n"),
	  .problem = "too many digits" },
	{ "a chunk size of 15 digits", SLICE_INIT(CHUNKED "fffffffffffffff\r\nabc\r\n"),
	  .problem = "body is too large" },
	{ "bare LF behind a chunk size", SLICE_INIT(CHUNKED "3\nabc\r\n0\r\n\r\n"),
	  .problem = "CR LF" },
	{ "bare CR in an extension", SLICE_INIT(CHUNKED "3;a\rb\r\nabc\r\n"),
	  .problem = "control character" },
	{ "a chunk longer than it says", SLICE_INIT(CHUNKED "3\r\nabcd\r\n0\r\n\r\n"),
	  .problem = "CR LF" },
	{ "a chunk that ends in LF", SLICE_INIT(CHUNKED "3\r\nabc\n0\r\n\r\n"),
	  .problem = "CR LF" },
	{ "a folded trailer", SLICE_INIT(CHUNKED "0\r\nX: y\r\n z\r\n\r\n"), .problem = "folded" },
	{ "a trailer without a name", SLICE_INIT(CHUNKED "0\r\nrubbish\r\n\r\n"),
	  .problem = "proper name" },
};

/* What one way of reading came to. */
struct outcome {
	struct upstream_http http;
	enum upstream_http_verdict verdict;
	char body[256];
	struct provider_answer answer;
};

/* Reads input[0, len), after `cuts` shows where a piece may end. Every piece comes in a new block
 * of exactly its size, so that a pointer kept or a byte read too far is seen by ASan. */
static void read_cut(const struct upstream_http_limits *limits, struct slice input, bool closed,
		     size_t first, size_t step, struct outcome *out)
{
	char *held = NULL;
	size_t len = 0, next = first;

	*out = (struct outcome){ .verdict = UPSTREAM_HTTP_MORE };
	upstream_http_init(&out->http, limits);
	do {
		next = next > input.len ? input.len : next;
		char *moved = malloc(next + 1);
		assert_non_null(moved);
		if (len != 0)
			(void)memcpy(moved, held, len);
		(void)memcpy(moved + len, input.at + len, next - len);
		free(held);
		held = realloc(moved, next == 0 ? 1 : next);
		len = next;
		next += step;
		out->verdict = upstream_http_read(&out->http, held, len);
	} while (out->verdict == UPSTREAM_HTTP_MORE && len < input.len);
	if (closed && out->verdict == UPSTREAM_HTTP_MORE)
		out->verdict = upstream_http_end(&out->http);
	if (out->verdict == UPSTREAM_HTTP_DONE) {
		upstream_http_answer(&out->http, held, &out->answer);
		assert_true(out->answer.body.len < sizeof(out->body));
		(void)memcpy(out->body, out->answer.body.at, out->answer.body.len);
	}
	free(held);
}

static bool as_expected(const struct row *row, const struct outcome *out)
{
	if (row->problem != NULL)
		return out->verdict == UPSTREAM_HTTP_REFUSED &&
		       strstr(out->http.problem, row->problem) != NULL;
	if (row->more)
		return out->verdict == UPSTREAM_HTTP_MORE && out->http.problem == NULL;
	return out->verdict == UPSTREAM_HTTP_DONE && out->http.problem == NULL &&
	       out->answer.status == row->status && strcmp(out->body, row->body) == 0 &&
	       out->answer.body.len == strlen(row->body) &&
	       out->http.at == row->input.len - row->extra && out->http.keep == row->keep;
}

static void check(const struct row *row, const struct outcome *out)
{
	if (!as_expected(row, out))
		fail_msg("%s: verdict %d, problem \"%s\", status %u, body \"%s\", at %zu, keep %d",
			 row->name, (int)out->verdict,
			 out->http.problem == NULL ? "none" : out->http.problem,
			 (unsigned)out->answer.status, out->body, out->http.at, out->http.keep);
}

/* One piece; one byte at a time; and every cut in two. */
static void check_every_cut(const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct outcome out;
		read_cut(&small, rows[i].input, rows[i].closed, 0, 1, &out);
		check(&rows[i], &out);
		for (size_t cut = 0; cut <= rows[i].input.len; cut++) {
			read_cut(&small, rows[i].input, rows[i].closed, cut, SIZE_MAX / 2, &out);
			check(&rows[i], &out);
		}
	}
}

static void a_good_answer_is_read_however_it_arrives(void **state)
{
	(void)state;
	check_every_cut(good, COUNT_OF(good));
}

static void an_unfinished_answer_is_never_taken_for_a_whole_one(void **state)
{
	(void)state;
	check_every_cut(unfinished, COUNT_OF(unfinished));
}

static void a_hostile_answer_is_refused_with_its_reason(void **state)
{
	(void)state;
	check_every_cut(hostile, COUNT_OF(hostile));
}

/* ---- what is too long to be spelled out in a table ---- */

static struct slice repeat(char *into, size_t room, const char *before, const char *part,
			   size_t times, const char *after)
{
	size_t len = 0;

	assert_true(strlen(before) + times * strlen(part) + strlen(after) < room);
	len += (size_t)sprintf(into, "%s", before);
	for (size_t i = 0; i < times; i++)
		len += (size_t)sprintf(into + len, "%s", part);
	len += (size_t)sprintf(into + len, "%s", after);
	return slice_of(into, len);
}

static void lengths_are_bounded_to_the_byte_and_the_line(void **state)
{
	(void)state;
	static const struct {
		const char *name, *before, *part;
		size_t fits; /* times `part` may come */
		const char *after, *problem;
	} rows[] = {
		/* 512 bytes: 17 + 3 + fits + 2 + 17 + 4 */
		{ "a long header", HEAD "X: ", "y", 469, "\r\nContent-Length: 0\r\n\r\n", "head" },
		{ "a long reason", "HTTP/1.1 200 ", "y", 476, "\r\nContent-Length: 0\r\n\r\n",
		  "head" },
		{ "many 1xx answers", "", "HTTP/1.1 100 C\r\n\r\n", 26,
		  HEAD "Content-Length: 0\r\n\r\n", "head" },
		{ "long trailers", CHUNKED "0\r\nX: ", "y", 505, "\r\n\r\n", "trailers" },
		{ "a long extension", CHUNKED "0;", "y", 252, "\r\n\r\n", "size line" },
		{ "many zeros before a chunk size", CHUNKED, "0", 15, "\r\n\r\n",
		  "too many digits" },
	};
	char buffer[4096];
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		for (size_t over = 0; over < 2; over++) {
			struct slice input =
				repeat(buffer, sizeof(buffer), rows[i].before, rows[i].part,
				       rows[i].fits + over, rows[i].after);
			struct row row = { rows[i].name, input, ANSWER(200, "", true) };
			row.problem = over == 0 ? NULL : rows[i].problem;
			check_every_cut(&row, 1);
		}
	}
}

/* What is wrong, where the head's bound is near: the same however it arrives. */
static void near_the_bound_the_same_is_wrong_however_it_arrives(void **state)
{
	static const char *const ends[] = { "\r\n", "\r", "\ry", "\n", "\1", "\t", "" };
	char buffer[1024];

	(void)state;
	for (size_t e = 0; e < COUNT_OF(ends); e++)
		for (size_t fill = small.head_max - 25; fill < small.head_max; fill++) {
			const struct slice input = repeat(buffer, sizeof(buffer), HEAD "X: ", "y",
							  fill - strlen(HEAD "X: "), ends[e]);
			struct outcome whole, cut;
			read_cut(&small, input, true, SIZE_MAX / 2, 1, &whole);
			read_cut(&small, input, true, 0, 1, &cut);
			assert_int_equal(whole.verdict, cut.verdict);
			assert_ptr_equal(whole.http.problem, cut.http.problem);
			for (size_t at = fill - 2; at <= input.len; at++) {
				read_cut(&small, input, true, at, SIZE_MAX / 2, &cut);
				assert_int_equal(whole.verdict, cut.verdict);
				assert_ptr_equal(whole.http.problem, cut.http.problem);
			}
		}
}

static void header_lines_are_counted_across_1xx_answers_and_trailers(void **state)
{
	(void)state;
	static const struct upstream_http_limits wide = { .head_max = 1 << 16, .body_max = 64 };
	static const struct {
		const char *name, *before;
		size_t fits;
		const char *after;
	} rows[] = {
		/* the status line counts as one */
		{ "headers", HEAD, 98, "Content-Length: 0\r\n\r\n" },
		{ "headers of a 1xx answer", "HTTP/1.1 103 E\r\n", 97,
		  "\r\n" HEAD "Content-Length: 0\r\n\r\n" },
		{ "trailers", CHUNKED "0\r\n", 98, "\r\n" },
	};
	char buffer[4096];
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		for (size_t over = 0; over < 2; over++) {
			struct outcome out;
			struct slice input =
				repeat(buffer, sizeof(buffer), rows[i].before, "x1: y\r\n",
				       rows[i].fits + over, rows[i].after);
			struct row row = { rows[i].name, input, ANSWER(200, "", true) };
			row.problem = over == 0 ? NULL : "too many header lines";
			read_cut(&wide, input, false, input.len, 1, &out);
			check(&row, &out);
			read_cut(&wide, input, false, 0, 1, &out);
			check(&row, &out);
		}
	}
}

static void framing_without_end_is_refused_though_the_body_stays_small(void **state)
{
	(void)state;
	static const struct upstream_http_limits wide = { .head_max = 512, .body_max = 4096 };
	char buffer[16384];
	struct outcome out;
	/* 1 byte of body costs 255 of framing: 4,608 allow 18 */
	char chunk[300];
	struct slice one = repeat(chunk, sizeof(chunk), "1;", "e", 248, "\r\nx\r\n");
	assert_int_equal(one.len, 255);
	struct slice input = repeat(buffer, sizeof(buffer), CHUNKED, chunk, 18, "0\r\n\r\n");
	read_cut(&wide, input, false, input.len, 1, &out);
	assert_int_equal(out.verdict, UPSTREAM_HTTP_DONE);
	assert_int_equal(out.answer.body.len, 18);
	input = repeat(buffer, sizeof(buffer), CHUNKED, chunk, 19, "0\r\n\r\n");
	read_cut(&wide, input, false, input.len, 1, &out);
	assert_int_equal(out.verdict, UPSTREAM_HTTP_REFUSED);
	assert_string_equal(out.http.problem, "too much chunk framing");
}

/* Reads `input` in reads of `step` bytes, the body in pieces; what was done with is gone at once. */
static enum upstream_http_verdict read_taking(struct upstream_http *http, struct slice input,
					      size_t step, char body[512], size_t *taken)
{
	enum upstream_http_verdict verdict = UPSTREAM_HTTP_MORE;
	char held[1024];
	size_t len = 0;
	struct slice piece;

	*taken = 0;
	upstream_http_init(http, &small);
	upstream_http_ask(http);
	for (size_t fed = 0; fed < input.len && verdict == UPSTREAM_HTTP_MORE;) {
		size_t more = step < input.len - fed ? step : input.len - fed;
		(void)memcpy(held + len, input.at + fed, more);
		len += more;
		fed += more;
		verdict = upstream_http_read(http, held, len);
		if (http->waits) {
			upstream_http_go_on(http, true);
			verdict = upstream_http_read(http, held, len);
		}
		if (!http->head)
			continue;
		size_t used = upstream_http_take(http, held, &piece);
		(void)memcpy(body + *taken, piece.at, piece.len);
		*taken += piece.len;
		len -= used;
		for (size_t i = 0; i < len; i++) /* valgrind takes a checked memmove for memcpy */
			held[i] = held[used + i];
	}
	return verdict;
}

static void a_body_may_be_taken_in_pieces_beyond_the_limit_of_a_whole_one(void **state)
{
	(void)state;
	static const char hundred[] =
		"0123456789012345678901234567890123456789012345678901234567890123"
		"456789012345678901234567890123456789";
	const struct slice rows[] = {
		SLICE(HEAD "Transfer-Encoding: chunked\r\n\r\n"
			   "32\r\n01234567890123456789012345678901234567890123456789\r\n"
			   "32;x=y\r\n01234567890123456789012345678901234567890123456789\r\n"
			   "0\r\nX-Trailer: 1\r\nY: 2\r\n\r\n"),
		SLICE(HEAD "Content-Length: 100\r\n\r\n"
			   "01234567890123456789012345678901234567890123456789"
			   "01234567890123456789012345678901234567890123456789"),
	};
	struct upstream_http http;
	char body[512];
	size_t taken;

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		for (size_t step = 1; step <= rows[i].len; step++) {
			assert_int_equal(read_taking(&http, rows[i], step, body, &taken),
					 UPSTREAM_HTTP_DONE);
			assert_int_equal(taken, 100);
			assert_memory_equal(body, hundred, 100);
			assert_true(http.keep);
		}
	}
}

static void a_reader_that_was_asked_to_waits_behind_the_head_and_knows_it(void **state)
{
	(void)state;
	struct upstream_http http;
	struct provider_answer answer = { .wall_s = 0 };
	char bytes[] = "HTTP/1.1 103 Early\r\n\r\n" HEAD
		       "Content-Type: text/event-stream\r\nContent-Length: 65\r\n\r\nabc";
	const size_t len = sizeof(bytes) - 1;

	upstream_http_init(&http, &small);
	upstream_http_ask(&http);
	for (int again = 0; again < 2; again++) {
		assert_int_equal(upstream_http_read(&http, bytes, len), UPSTREAM_HTTP_MORE);
		assert_true(http.waits && http.head && http.size == 0);
	}
	upstream_http_answer(&http, bytes, &answer);
	assert_int_equal(answer.status, 200);
	assert_true(slice_eq(answer.headers.content_type, SLICE("text/event-stream")));
	upstream_http_go_on(&http, false); /* whole it is one byte too long */
	assert_int_equal(upstream_http_read(&http, bytes, len), UPSTREAM_HTTP_REFUSED);
	assert_non_null(strstr(http.problem, "too large"));
}

static void an_error_stands_without_a_body_that_is_too_large(void **state)
{
	static const struct {
		const char *name, *text;
		bool stands;
		size_t body;
	} rows[] = {
		{ "a length", "HTTP/1.1 503 X\r\nRetry-After: 7\r\nContent-Length: 65\r\n\r\nabc",
		  true, 0 },
		{ "a chunk",
		  "HTTP/1.1 429 X\r\nRetry-After: 7\r\nTransfer-Encoding: chunked\r\n\r\n"
		  "2\r\nab\r\n41\r\n",
		  true, 2 },
		{ "until close",
		  "HTTP/1.1 400 X\r\nRetry-After: 7\r\n\r\n0123456789abcdef0123456789abcdef"
		  "0123456789abcdef0123456789abcdefg",
		  true, 65 },
		{ "no error", HEAD "Retry-After: 7\r\nContent-Length: 65\r\n\r\n", false, 0 },
		{ "an error that is ambiguous",
		  "HTTP/1.1 503 X\r\nContent-Length: 6\r\nContent-Length: 65\r\n\r\n", false, 0 },
		{ "an error whose chunks are none",
		  "HTTP/1.1 503 X\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", false, 0 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct provider_answer answer = { .wall_s = 0 };
		struct upstream_http http;
		char bytes[256];
		const size_t len = strlen(rows[i].text);

		(void)memcpy(bytes, rows[i].text, len);
		upstream_http_init(&http, &small);
		assert_int_equal(upstream_http_read(&http, bytes, len), UPSTREAM_HTTP_REFUSED);
		if (http.error_stands != rows[i].stands || http.keep)
			fail_msg("%s", rows[i].name);
		if (!rows[i].stands)
			continue;
		upstream_http_answer(&http, bytes, &answer);
		assert_int_equal(answer.status, http.status);
		assert_true(slice_eq(answer.headers.retry_after, SLICE("7")));
		assert_int_equal(answer.body.len, rows[i].body);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_good_answer_is_read_however_it_arrives),
		cmocka_unit_test(an_unfinished_answer_is_never_taken_for_a_whole_one),
		cmocka_unit_test(a_hostile_answer_is_refused_with_its_reason),
		cmocka_unit_test(lengths_are_bounded_to_the_byte_and_the_line),
		cmocka_unit_test(near_the_bound_the_same_is_wrong_however_it_arrives),
		cmocka_unit_test(header_lines_are_counted_across_1xx_answers_and_trailers),
		cmocka_unit_test(framing_without_end_is_refused_though_the_body_stays_small),
		cmocka_unit_test(a_body_may_be_taken_in_pieces_beyond_the_limit_of_a_whole_one),
		cmocka_unit_test(a_reader_that_was_asked_to_waits_behind_the_head_and_knows_it),
		cmocka_unit_test(an_error_stands_without_a_body_that_is_too_large),
	};
	return cmocka_run_group_tests_name("upstream_http", tests, NULL, NULL);
}
