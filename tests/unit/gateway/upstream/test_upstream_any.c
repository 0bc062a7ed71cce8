/* Calls that are not a provider's: answers of any status with all their header lines, requests of any method, and none that
 * is sent twice. */
#include "tests/unit/gateway/upstream/upstream_rig.h"

#include "codec/base/attr.h"

#define LENGTH_2 "content-length: 2\r\n\r\nok"

/* ---- answers ---------------------------------------------------------------------------------- */

static const struct {
	const char *name, *answer;
	uint16_t status;
	const char *fields, *body;
	int64_t content_length;
	bool closes; /* the body ends with the connection */
	bool asks;   /* `head` */
	bool coded;
} answers[] = {
	{ "all lines as they came, and again",
	  "HTTP/1.1 200 OK\r\nX-One:  a b \r\nset-cookie: a=1\r\nSet-Cookie: "
	  "b=2\r\nempty:\r\n" LENGTH_2,
	  200, "X-One=a b|set-cookie=a=1|Set-Cookie=b=2|empty=|content-length=2|", "ok", 2, false,
	  true, false },
	{ "only those of the final answer",
	  "HTTP/1.1 103 Early\r\nlink: </a>\r\n\r\nHTTP/1.1 200 OK\r\n" LENGTH_2, 200,
	  "content-length=2|", "ok", 2, false, true, false },
	{ "not a trailer's",
	  "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nx-late: y\r\n\r\n",
	  200, "transfer-encoding=chunked|", "ok", -1, false, true, false },
	{ "none", "HTTP/1.1 200 OK\r\n\r\nok", 200, "", "ok", -1, true, true, false },
	{ "accepted", "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n", 202,
	  "content-length=0|", "", 0, false, true, false },
	{ "accepted, chunked",
	  "HTTP/1.1 202 Accepted\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", 202,
	  "transfer-encoding=chunked|", "", -1, false, true, false },
	{ "no content", "HTTP/1.1 204 No Content\r\nmcp-session-id: s\r\n\r\n", 204,
	  "mcp-session-id=s|", "", -1, false, false, false },
	{ "a redirect", "HTTP/1.1 307 X\r\nlocation: http://other/\r\n" LENGTH_2, 307,
	  "location=http://other/|content-length=2|", "ok", 2, false, true, false },
	{ "not modified", "HTTP/1.1 304 X\r\netag: \"x\"\r\n\r\n", 304, "etag=\"x\"|", "", -1,
	  false, false, false },
	{ "not authorised",
	  "HTTP/1.1 401 X\r\nwww-authenticate: Bearer a=\"b\"\r\nwww-authenticate: "
	  "Basic\r\n" LENGTH_2,
	  401, "www-authenticate=Bearer a=\"b\"|www-authenticate=Basic|content-length=2|", "ok", 2,
	  false, true, false },
	{ "not found", "HTTP/1.1 404 X\r\n" LENGTH_2, 404, "content-length=2|", "ok", 2, false,
	  true, false },
	{ "too many", "HTTP/1.1 429 X\r\nretry-after: 3\r\n" LENGTH_2, 429,
	  "retry-after=3|content-length=2|", "ok", 2, false, true, false },
	{ "a fault", "HTTP/1.1 503 X\r\n" LENGTH_2, 503, "content-length=2|", "ok", 2, false, true,
	  false },
	{ "a compressed error stands without its body",
	  "HTTP/1.1 404 X\r\ncontent-encoding: gzip\r\n" LENGTH_2, 404,
	  "content-encoding=gzip|content-length=2|", "", 2, false, true, true },
	{ "HTTP/1.0", "HTTP/1.0 400 X\r\n\r\nok", 400, "", "ok", -1, true, true, false },
};

/* Long or short: the latter are copied out of the buffer. */
static void any_answer_is_one(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(answers) * 2; i++) {
		const size_t row = i / 2;
		struct tried tried;
		struct rig rig;
		rig_init(&rig, up, UINT32_MAX);
		tried_init(&tried);
		if (i % 2 != 0)
			tried.call.into = NULL;
		tried_start(&rig, &tried);
		UNTIL(&rig, server_reads(&rig, 0));
		server_sends(&rig, 0, answers[row].answer);
		if (answers[row].closes)
			server_closes(&rig, 0);
		UNTIL(&rig, tried.done);
		if (tried.err != ERR_OK || strcmp(tried.fields, answers[row].fields) != 0)
			fail_msg("%s: %s, %s", answers[row].name, tried.detail, tried.fields);
		assert_int_equal(tried.status, answers[row].status);
		assert_body(&tried, answers[row].body);
		assert_int_equal(tried.content_length, answers[row].content_length);
		assert_int_equal(tried.coded, answers[row].coded);
		assert_int_equal(tried.heads, answers[row].asks);
		assert_memory_equal(&tried.peer.address, &rig.addresses[0].address,
				    sizeof(struct sockaddr_in));
		assert_int_equal(rig_count(&rig).idle, !answers[row].closes);
		tried_fini(&tried);
		rig_fini(&rig);
	}
}

static void head_sees_the_same_of_an_answer_in_pieces(void **state)
{
	static const char head[] = "HTTP/1.1 404 X\r\nMcp-Session-Id: s\r\nx: y\r\n"
				   "content-length: 5\r\n\r\n";
	struct tried tried;
	struct rig rig;

	(void)state;
	rig_init(&rig, up, UINT32_MAX);
	tried_init(&tried);
	tried.pieces = true;
	tried_start(&rig, &tried);
	UNTIL(&rig, server_reads(&rig, 0));
	server_sends(&rig, 0, head);
	UNTIL(&rig, tried.heads == 1);
	assert_string_equal(tried.fields, "Mcp-Session-Id=s|x=y|content-length=5|");
	assert_int_equal(tried.status, 404);
	assert_int_equal(tried.content_length, 5);
	assert_true(slice_absent(tried.extra.fields)); /* they are gone with the head */
	server_sends(&rig, 0, "he");
	UNTIL(&rig, tried.body_len == 2);
	server_sends(&rig, 0, "llo");
	UNTIL(&rig, tried.done);
	assert_int_equal(tried.err, ERR_OK);
	assert_body(&tried, "hello");
	assert_int_equal(rig_count(&rig).idle, 1);
	exchange_ok(&rig, 0);
	tried_fini(&tried);
	rig_fini(&rig);
}

static const struct {
	const char *name, *answer, *problem;
} hostile[] = {
	{ "a name with a blank", "HTTP/1.1 200 OK\r\nbad name: x\r\n" LENGTH_2, "proper name" },
	{ "no colon", "HTTP/1.1 200 OK\r\nbad\r\n" LENGTH_2, "proper name" },
	{ "a folded line", "HTTP/1.1 200 OK\r\nx: y\r\n z\r\n" LENGTH_2, "folded" },
	{ "a bare LF", "HTTP/1.1 200 OK\r\nx: y\nset-cookie: z\r\n" LENGTH_2, "CR LF" },
	{ "a control character", "HTTP/1.1 200 OK\r\nx: \x01\r\n" LENGTH_2, "control character" },
	{ "two lengths", "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n" LENGTH_2, "twice" },
	{ "a length and chunks", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n" LENGTH_2,
	  "both" },
	{ "a compressed success", "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n" LENGTH_2,
	  "compressed" },
	{ "another protocol", "HTTP/1.1 101 X\r\nupgrade: y\r\n\r\n", "unasked" },
	{ "no HTTP", "SSH-2.0-x\r\n", "not HTTP" },
};

static void hostile_answers_are_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(hostile); i++) {
		struct tried tried;
		struct rig rig;
		rig_init(&rig, up, UINT32_MAX);
		tried_init(&tried);
		tried.pieces = i % 2 != 0;
		exchange(&rig, &tried, 0, hostile[i].answer);
		if (tried.err != ERR_PROVIDER_ANSWER ||
		    strstr(tried.detail, hostile[i].problem) == NULL)
			fail_msg("%s: %s", hostile[i].name, tried.detail);
		assert_int_equal(tried.heads, 0);
		assert_int_equal(rig_count(&rig).idle + rig_count(&rig).busy, 0);
		tried_fini(&tried);
		rig_fini(&rig);
	}
}

static void the_answer_to_a_head_has_no_body_whatever_it_says(void **state)
{
	static const char *const lines[] = { "content-length: 9\r\n\r\n",
					     "transfer-encoding: chunked\r\n\r\n" };
	struct rig rig;
	char answer[128];

	(void)state;
	rig_init(&rig, up, UINT32_MAX);
	for (size_t i = 0; i < COUNT_OF(lines); i++) {
		struct tried tried;
		tried_init(&tried);
		tried.request = "HEAD /mcp HTTP/1.1\r\nhost: x\r\n\r\n";
		tried.extra.no_body = true;
		(void)snprintf(answer, sizeof(answer), "HTTP/1.1 200 OK\r\n%s", lines[i]);
		exchange(&rig, &tried, 0, answer);
		assert_int_equal(tried.err, ERR_OK);
		assert_int_equal(tried.status, 200);
		assert_int_equal(tried.content_length, i == 0 ? 9 : -1);
		assert_body(&tried, "");
		assert_int_equal(tried.heads, 0);
		tried_fini(&tried);
	}
	exchange_ok(&rig, 0); /* over the same connection */
	rig_fini(&rig);
}

static void an_answer_that_is_cut_short_is_no_clean_end(void **state)
{
	static const struct {
		const char *answer, *body;
		enum err err;
	} rows[] = {
		{ "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhell", "hell", ERR_PROVIDER_DOWN },
		{ "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhell\r\n", "hell",
		  ERR_PROVIDER_DOWN },
		{ "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhell\r\n0\r\n\r\n",
		  "hell", ERR_OK },
		{ "HTTP/1.1 200 OK\r\n\r\nhell", "hell", ERR_OK },
		{ "HTTP/1.1 200 OK\r\ncontent-le", "", ERR_PROVIDER_DOWN },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct tried tried;
		struct rig rig;
		rig_init(&rig, up, UINT32_MAX);
		tried_init(&tried);
		tried.pieces = tried.extra.stream = true;
		tried_start(&rig, &tried);
		UNTIL(&rig, server_reads(&rig, 0));
		server_sends(&rig, 0, rows[i].answer);
		server_closes(&rig, 0);
		UNTIL(&rig, tried.done);
		assert_int_equal(tried.err, rows[i].err);
		assert_body(&tried, rows[i].body);
		tried_fini(&tried);
		rig_fini(&rig);
	}
}

/* The server reads no more than the kernels hold, answers and closes: what it has not read makes that a reset. */
static void an_answer_that_comes_before_the_request_is_read_counts(void **state)
{
	enum { BODY = 8 << 20 };
	static char request[BODY];

	(void)state;
	(void)memset(request, 'x', sizeof(request) - 1);
	for (int whole = 0; whole < 2; whole++) {
		struct tried tried;
		struct rig rig;
		char bytes[100];
		rig_init(&rig, up, UINT32_MAX);
		tried_init(&tried);
		tried.request = request;
		tried.pieces = whole == 0;
		tried_start(&rig, &tried);
		UNTIL(&rig, rig.peer_count == 1 && read(rig.peers[0], bytes, sizeof(bytes)) > 0);
		server_sends(&rig, 0, "HTTP/1.1 413 Too Large\r\n" LENGTH_2);
		server_closes(&rig, 0);
		UNTIL(&rig, tried.done);
		assert_int_equal(tried.err, ERR_OK);
		assert_int_equal(tried.status, 413);
		assert_body(&tried, "ok");
		assert_int_equal(rig_count(&rig).idle + rig_count(&rig).busy, 0);
		tried_fini(&tried);
		rig_fini(&rig);
	}
}

/* ---- once ------------------------------------------------------------------------------------- */

static void a_request_is_not_sent_twice(void **state)
{
	struct tried tried;
	struct rig rig;

	(void)state;
	rig_init(&rig, up, UINT32_MAX);
	exchange_ok(&rig, 0);
	tried_init(&tried);
	tried_start(&rig, &tried);
	UNTIL(&rig, server_reads(&rig, 0));
	server_closes(&rig, 0); /* it may have done what it was asked */
	UNTIL(&rig, tried.done);
	assert_int_equal(tried.err, ERR_PROVIDER_DOWN);
	assert_true(tried.bytes_sent);
	assert_string_equal(tried.detail, "the connection was closed before any answer byte");
	assert_int_equal(tried.peer.len, 0);
	assert_int_equal(rig.peer_count, 1);
	assert_int_equal(rig.requests[0], 2);
	exchange_ok(&rig, 1);
	tried_fini(&tried);
	rig_fini(&rig);
}

static void a_providers_request_is(void **state)
{
	struct tried tried;
	struct rig rig;

	(void)state;
	rig_init(&rig, up, UINT32_MAX);
	exchange_ok(&rig, 0);
	tried_init(&tried);
	tried.bytes = (struct iovec){ (void *)(uintptr_t)tried.request, strlen(tried.request) };
	tried.call.request = &tried.bytes;
	tried.call.head = NULL;
	tried.call.piece = NULL;
	upstream_start(rig.pool, &tried.call);
	UNTIL(&rig, server_reads(&rig, 0));
	server_closes(&rig, 0);
	UNTIL(&rig, server_reads(&rig, 1));
	tried_fini(&tried);
	rig_fini(&rig);
}

/* Nothing has told the loop. */
static void a_kept_connection_that_was_closed_in_this_turn_is_not_used(void **state)
{
	struct tried tried;
	struct rig rig;

	(void)state;
	rig_init(&rig, up, 1); /* its place is the new one's */
	exchange_ok(&rig, 0);
	server_closes(&rig, 0);
	tried_init(&tried);
	tried_start(&rig, &tried);
	assert_int_equal(rig_count(&rig).connecting, 1);
	UNTIL(&rig, server_reads(&rig, 1));
	server_sends(&rig, 1, "HTTP/1.1 200 OK\r\n" LENGTH_2);
	UNTIL(&rig, tried.done);
	assert_int_equal(tried.err, ERR_OK);
	tried_fini(&tried);
	rig_fini(&rig);
}

static void a_kept_connection_that_was_idle_for_long_is_not_used(void **state)
{
	struct rig rig;

	(void)state;
	rig_init(&rig, up_stale, 1);
	exchange_ok(&rig, 0);
	exchange_ok(&rig, 1); /* in the first one's place */
	assert_int_equal(rig_count(&rig).idle, 1);
	rig_fini(&rig);
	rig_init(&rig, up_stale, 2);
	exchange_ok(&rig, 0);
	exchange_ok(&rig, 1);
	assert_int_equal(rig_count(&rig).idle, 2);
	rig_fini(&rig);
}

static void a_call_that_is_given_up_closes_its_connection(void **state)
{
	struct tried tried;
	struct rig rig;
	char byte;

	(void)state;
	for (int answered = 0; answered < 2; answered++) {
		rig_init(&rig, up, UINT32_MAX);
		tried_init(&tried);
		tried.pieces = tried.extra.stream = true;
		tried_start(&rig, &tried);
		UNTIL(&rig, server_reads(&rig, 0));
		if (answered != 0) {
			server_sends(&rig, 0, "HTTP/1.1 200 OK\r\n\r\n");
			UNTIL(&rig, tried.heads == 1);
		}
		upstream_cancel(&tried.call);
		assert_int_equal(rig_count(&rig).busy + rig_count(&rig).streams, 0);
		UNTIL(&rig, read(rig.peers[0], &byte, 1) == -1 && errno == ECONNRESET);
		assert_false(tried.done);
		tried_fini(&tried);
		rig_fini(&rig);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_answer_is_one),
		cmocka_unit_test(head_sees_the_same_of_an_answer_in_pieces),
		cmocka_unit_test(hostile_answers_are_refused),
		cmocka_unit_test(the_answer_to_a_head_has_no_body_whatever_it_says),
		cmocka_unit_test(an_answer_that_is_cut_short_is_no_clean_end),
		cmocka_unit_test(an_answer_that_comes_before_the_request_is_read_counts),
		cmocka_unit_test(a_request_is_not_sent_twice),
		cmocka_unit_test(a_providers_request_is),
		cmocka_unit_test(a_kept_connection_that_was_closed_in_this_turn_is_not_used),
		cmocka_unit_test(a_kept_connection_that_was_idle_for_long_is_not_used),
		cmocka_unit_test(a_call_that_is_given_up_closes_its_connection),
	};

	return rig_begin() ? cmocka_run_group_tests_name("upstream_any", tests, NULL, NULL) : 1;
}
