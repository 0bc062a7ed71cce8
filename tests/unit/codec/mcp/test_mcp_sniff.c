/* The front of a message decides that it passes, however it arrives. */
#include "codec/mcp/mcp_sniff.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "codec/mcp/mcp_message.h"

#define U MCP_SNIFF_UNDECIDED
#define P MCP_SNIFF_PASS
#define H MCP_SNIFF_HOLD

static const struct sniff_row {
	const char *text;
	enum mcp_sniffed got, with_rounds;
} sniff_rows[] = {
	{ "", U, U },
	{ " \t", U, U },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":", U, U },
	{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{", P, U },
	{ "{\"result\":\"x", P, U },
	{ "{\"r\\u0065sult\":[", P, U },
	{ "{\"error\" : {", P, P },
	{ "{\"error\":null", U, U },
	{ "{\"error\":null,\"result\":n", U, U },
	{ "{\"error\":null,\"result\":null,\"error\":1", P, P },
	{ "{\"results\":{},\"Result\":{},\"x\":{\"result\":{}}", U, U },
	{ "{\"x\":\"{\\\"result\\\":{}\",\"y\":\"\\\\\",\"z\":[{\"]}\":\"\\\"}\"}]", U, U },
	{ "{\"x\":\"{\\\"result\\\":{}\",\"y\":\"\\\\\",\"z\":[{\"]}\":\"\\\"}\"}],\"result\":1", P,
	  U },
	{ "{\"method\":\"notifications/message\",\"params\":{\"result\":1}", U, U },
	{ "{\"method\":\"sampling/createMessage\",\"id\":1,\"result\":{", P, U },
	{ "{\"method\":\"x\"}", H, H },
	{ "{}", H, H },
	{ "[", H, H },
	{ "\"result\"", P, P },
	{ "x", P, P },
	{ "{\"a\" \"b\"", H, H },
	{ "{\"a\":1 2", H, H },
	{ "{\"a\":1,}", H, H },
	{ "{\"a\":,", H, H },
	{ "{1", H, H },
	/* rounds */
	{ "{\"result\":{\"content\":[{\"resultType\":\"a\"}],\"resultType\":", P, U },
	{ "{\"result\":{\"content\":[{\"resultType\":\"a\"}],\"resultType\":\"complete\" ,", P, P },
	{ "{\"result\":{\"resultType\":\"task\"}", P, P },
	{ "{\"result\":{\"result\\u0054ype\":\"input_required\",", P, H },
	{ "{\"result\":{\"resultType\":\"input\\u005frequired\"}", P, H },
	{ "{\"result\":{\"resultType\":null,\"resultType\":\"\"}", P, P },
	{ "{\"result\":{},\"resultType\":\"complete\"}", P, H },
	{ "{\"result\":{\"resultType\":\"complete\"", P, U },
	{ "{\"result\":{\"resultType\":\"complete\" \"x\"", P, H },
	{ "{\"result\":{\"x\":0},\"error\":1", P, P },
	{ "{\"result\":{\"x\":0}", P, U },
	{ "{\"result\":{\"x\" 0}", P, H },
	{ "{\"result\":{\"resultType\":"
	  "\"0123456789012345678901234567890123456789012345678901234567890123"
	  "4567890123456789012345678901234567890123456789\"}",
	  P, P },
	{ "{\"result\":[{\"resultType\":\"complete\"}],\"id\":1", P, U },
};

static enum mcp_sniffed sniff(const char *text, size_t step, bool rounds)
{
	enum mcp_sniffed got = MCP_SNIFF_UNDECIDED;
	struct mcp_sniff sniff;
	const size_t len = strlen(text);

	mcp_sniff_init(&sniff, rounds);
	for (size_t at = 0; at < len; at += step)
		got = mcp_sniff_feed(&sniff,
				     slice_of(text + at, len - at < step ? len - at : step));
	return got;
}

static void the_front_decides_however_it_arrives(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(sniff_rows); i++) {
		const struct sniff_row *row = &sniff_rows[i];
		for (size_t step = 1; step <= strlen(row->text) + 1; step++)
			if (sniff(row->text, step, false) != row->got ||
			    sniff(row->text, step, true) != row->with_rounds)
				fail_msg("%s by %zu", row->text, step);
	}
}

static const struct pass_row {
	const char *text;
	bool rounds;
} pass_rows[] = {
	{ "{\"result\":{},\"id\":1,\"method\":\"sampling/createMessage\"}", false },
	{ "{\"result\":{},\"result\":null,\"id\":1,\"method\":\"sampling/createMessage\"}", false },
	{ "{\"id\":1,\"error\":{},\"error\":null,\"result\":{\"resultType\":\"input_required\"}}",
	  true },
};

static void what_passes_is_no_request_when_it_is_whole(void **state)
{
	struct mcp_message message;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(pass_rows); i++) {
		const struct pass_row *row = &pass_rows[i];
		mcp_message_read(slice_str(row->text), &message);
		if (sniff(row->text, 1, row->rounds) != MCP_SNIFF_PASS ||
		    mcp_message_samples(&message) || (row->rounds && mcp_message_asks(&message)))
			fail_msg("%s", row->text);
	}
}

/* Of two the first decides what passes in parts. */
static void a_result_type_that_is_there_twice_passes_by_the_first(void **state)
{
	static const char *const rows[] = {
		"{\"id\":1,\"result\":{\"resultType\":\"x\",\"resultType\":\"input_required\"}}",
		"{\"id\":1,\"result\":{\"resultType\":\"x\"},\"result\":{\"resultType\":"
		"\"input_required\"}}",
	};
	struct mcp_message message;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		mcp_message_read(slice_str(rows[i]), &message);
		assert_true(message.twice && mcp_message_asks(&message));
		assert_int_equal(sniff(rows[i], 1, true), MCP_SNIFF_PASS);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_result_type_that_is_there_twice_passes_by_the_first),
		cmocka_unit_test(the_front_decides_however_it_arrives),
		cmocka_unit_test(what_passes_is_no_request_when_it_is_whole),
	};
	return cmocka_run_group_tests_name("mcp_sniff", tests, NULL, NULL);
}
