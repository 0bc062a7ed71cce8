#include "codec/mcp/jsonrpc.h"
#include "codec/set.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

struct rig {
	struct arena_pool pool;
	struct arena arena;
	struct json_work *work;
};

static int set_up(void **state)
{
	struct rig *rig = calloc(1, sizeof(*rig));

	if (rig == NULL)
		return 1;
	rig->work = json_work_new(codec_set_best());
	arena_init(&rig->arena, &rig->pool, 1024 * 1024);
	*state = rig;
	return rig->work == NULL;
}

static int tear_down(void **state)
{
	struct rig *rig = *state;

	arena_give(&rig->arena);
	arena_pool_fini(&rig->pool);
	json_work_free(rig->work);
	free(rig);
	return 0;
}

static bool same(struct slice got, const char *want)
{
	return want == NULL ? slice_absent(got)
			    : !slice_absent(got) && slice_eq(got, slice_str(want));
}

static void messages_are_told_apart(void **state)
{
	static const struct {
		const char *body;
		enum rpc_method method;
		const char *id, *params;
	} rows[] = {
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"sampling/"
		  "createMessage\",\"params\":{\"a\":1}}",
		  RPC_CREATE_MESSAGE, "1", "{\"a\":1}" },
		{ "{\"method\":\"sampling/"
		  "createMessage\",\"params\":{},\"jsonrpc\":\"2.0\",\"id\":0}",
		  RPC_CREATE_MESSAGE, "0", "{}" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":\"\",\"method\":\"sampling\\/create\\u004dessage\"}",
		  RPC_CREATE_MESSAGE, "\"\"", NULL },
		{ "{\"jsonrpc\":\"2.0\",\"method\":\"sampling/createMessage\"}", RPC_CREATE_MESSAGE,
		  NULL, NULL },
		{ "{\"jsonrpc\":\"2.0\",\"id\":12345678901234567890,\"method\":\"initialize\"}",
		  RPC_INITIALIZE, "12345678901234567890", NULL },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1.0,\"method\":\"ping\"}", RPC_PING, "1.0", NULL },
		{ "{\"jsonrpc\":\"2.0\",\"id\":123e45,\"method\":\"ping\"}", RPC_PING, "123e45",
		  NULL },
		{ "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"notifications\\/initialized\"}",
		  RPC_INITIALIZED, NULL, NULL },
		{ "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":1,\"message\":\"\"}}",
		  RPC_RESPONSE, NULL, NULL },
		{ "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}", RPC_INITIALIZED,
		  NULL, NULL },
		{ "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/"
		  "cancelled\",\"params\":{\"requestId\":0}}",
		  RPC_CANCELLED, NULL, "{\"requestId\":0}" },
		{ "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}",
		  RPC_OTHER_NOTIFICATION, NULL, NULL },
		{ "{\"jsonrpc\":\"2.0\",\"method\":\"ping\"}", RPC_OTHER_NOTIFICATION, NULL, NULL },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}", RPC_UNKNOWN, "1",
		  NULL },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"sampling/createMessages\"}",
		  RPC_UNKNOWN, "1", NULL },
		{ "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}", RPC_RESPONSE, "7", NULL },
		{ "{\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"code\":1,\"message\":\"\"}}",
		  RPC_RESPONSE, "7", NULL },
		{ " {\"jsonrpc\" : \"2\\u002e0\" , \"id\" : \"a\\u0062\" , \"x\":{}, \"method\" : "
		  "\"ping\" } ",
		  RPC_PING, "\"a\\u0062\"", NULL },
	};
	struct rig *rig = *state;

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct jsonrpc rpc;
		struct fault fault;
		enum err err =
			jsonrpc_read(slice_str(rows[i].body), rig->work, &rig->arena, &rpc, &fault);
		if (err != ERR_OK || rpc.method != rows[i].method || !same(rpc.id, rows[i].id) ||
		    !same(rpc.params, rows[i].params))
			fail_msg("%s: err %d method %d", rows[i].body, (int)err, (int)rpc.method);
	}
}

static void what_is_no_request_is_refused_and_the_id_kept_if_it_was_read(void **state)
{
	static const struct {
		const char *body;
		enum err err;
		uint32_t offset;
		const char *id;
	} rows[] = {
		{ "", ERR_JSON, 0, NULL },
		{ "{\"id\":1", ERR_JSON, 7, "1" },
		{ "{\"id\":1,\"jsonrpc\":\"2.0\",\"method\":\"ping\",\"params\":{\"a\":[01]}}",
		  ERR_JSON, 55, "1" },
		{ "{\"id\":1}x", ERR_JSON, 8, "1" },
		{ "{\"id\":1,\"id\":2}", ERR_DUPLICATE_KEY, 8, "1" },
		{ "{\"params\":{\"a\":{\"b\":1,\"b\":2}},\"id\":1}", ERR_DUPLICATE_KEY, 22, NULL },
		{ "[]", ERR_BATCH, 0, NULL },
		{ "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]", ERR_BATCH, 0, NULL },
		{ "[{]", ERR_JSON, 2, NULL },
		{ "\"ping\"", ERR_REQUEST, 0, NULL },
		{ "null", ERR_REQUEST, 0, NULL },
		{ "nul", ERR_JSON, 0, NULL },
		{ "{}", ERR_REQUEST, FAULT_NO_OFFSET, NULL },
		{ "{\"jsonrpc\":\"2.0\",\"id\":3}", ERR_REQUEST, FAULT_NO_OFFSET, "3" },
		{ "{\"id\":3,\"method\":\"ping\"}", ERR_REQUEST, FAULT_NO_OFFSET, "3" },
		{ "{\"jsonrpc\":\"1.0\",\"id\":3,\"method\":\"ping\"}", ERR_REQUEST, 11, "3" },
		{ "{\"jsonrpc\":2.0,\"id\":3,\"method\":\"ping\"}", ERR_REQUEST, 11, "3" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}", ERR_REQUEST, 22, NULL },
		{ "{\"jsonrpc\":\"2.0\",\"id\":true,\"method\":\"ping\"}", ERR_REQUEST, 22, NULL },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}", ERR_REQUEST, 22, NULL },
		{ "{\"jsonrpc\":\"2.0\",\"id\":10e-2,\"method\":\"ping\"}", ERR_REQUEST, 22, NULL },
		{ "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", ERR_REQUEST, 22, NULL },
		{ "{\"jsonrpc\":\"2.0\",\"method\":\"sampling/createMessage\",\"id\": null}",
		  ERR_REQUEST, 57, NULL },
		{ "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":[]}", ERR_REQUEST, 33, "3" },
	};
	struct rig *rig = *state;

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct jsonrpc rpc;
		struct fault fault;
		enum err err =
			jsonrpc_read(slice_str(rows[i].body), rig->work, &rig->arena, &rpc, &fault);
		if (err != rows[i].err || fault.err != err || fault.offset != rows[i].offset ||
		    !same(rpc.id, rows[i].id))
			fail_msg("%s: err %d at %u", rows[i].body, (int)err, fault.offset);
	}
}

static void malformed_json_is_described_with_its_place(void **state)
{
	struct rig *rig = *state;
	struct jsonrpc rpc;
	struct fault fault;

	assert_int_equal(jsonrpc_read(SLICE("{\"a\":tru}"), rig->work, &rig->arena, &rpc, &fault),
			 ERR_JSON);
	assert_string_equal(fault.detail, "Malformed JSON at byte 5: expected a value");
	/* without memory the plain words must do */
	struct arena empty;
	arena_init(&empty, &rig->pool, 0);
	assert_int_equal(jsonrpc_read(SLICE("{\"a\":tru}"), rig->work, &empty, &rpc, &fault),
			 ERR_JSON);
	assert_string_equal(fault.detail, "expected a value");
	arena_give(&empty);
}

static const char *error_text(struct rig *rig, struct slice id, const struct fault *fault,
			      const struct error_data *data)
{
	struct gather g;

	gather_init(&g, &rig->arena);
	jsonrpc_write_error(&g, id, fault, data);
	assert_int_equal(gather_done(&g), ERR_OK);
	struct slice text = gather_flat(&g, &rig->arena);
	assert_true(json_valid(text, NULL, rig->work, NULL));
	return arena_copy(&rig->arena, text).at;
}

static void errors_have_code_words_and_reason(void **state)
{
	struct rig *rig = *state;
	const struct fault plain = { .err = ERR_RATE_LIMITED, .offset = FAULT_NO_OFFSET };
	const struct fault placed = { ERR_FIELD, 17, SLICE_INIT("$.params.temperature"),
				      "temperature must be a \"number\"" };

	assert_string_equal(
		error_text(rig, SLICE("\"a\\u0062\""), &plain, NULL),
		"{\"jsonrpc\":\"2.0\",\"id\":\"a\\u0062\",\"error\":{\"code\":429,\"message\":"
		"\"The tenant's rate limit is reached\",\"data\":{\"reason\":\"rate_limited\"}}}");
	assert_string_equal(
		error_text(rig, slice_str(NULL), &placed, &error_data_none),
		"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32602,\"message\":"
		"\"temperature must be a \\\"number\\\"\",\"data\":{\"reason\":\"field_invalid\","
		"\"offset\":17,\"path\":\"$.params.temperature\"}}}");
}

static void particulars_appear_only_where_there_are_some(void **state)
{
	struct rig *rig = *state;
	const struct fault fault = { .err = ERR_PROVIDER_RATE };
	struct error_data data = error_data_none;

	data.retry_after_ms = 0;
	data.provider_status = 429;
	data.retryable = 1;
	data.provider_request_id = SLICE("req_\"1\"");
	data.limit = "requests_per_minute";
	data.rule = "models";
	data.extra = SLICE("\"candidates\":[]");
	assert_string_equal(
		error_text(rig, SLICE("1"), &fault, &data),
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32010,\"message\":"
		"\"The provider's rate limit is "
		"reached\",\"data\":{\"reason\":\"provider_rate_limited\","
		"\"retryAfterMs\":0,\"status\":429,\"retryable\":true,\"requestId\":\"req_"
		"\\\"1\\\"\","
		"\"limit\":\"requests_per_minute\",\"rule\":\"models\",\"candidates\":[]}}}");
	data = error_data_none;
	data.retryable = 0;
	data.provider_request_id = SLICE("not \xff text");
	assert_string_equal(error_text(rig, SLICE("1"), &fault, &data),
			    "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32010,\"message\":"
			    "\"The provider's rate limit is "
			    "reached\",\"data\":{\"reason\":\"provider_rate_limited\","
			    "\"retryable\":false}}}");
}

static void every_error_has_a_row_that_can_be_written(void **state)
{
	struct rig *rig = *state;

	for (int err = 1; err < ERR_COUNT; err++) {
		const struct err_info *info = err_info((enum err)err);
		const struct fault fault = { .err = (enum err)err, .offset = FAULT_NO_OFFSET };
		assert_true(info->status >= 400 && info->status <= 599);
		assert_true(info->code != 0 && info->reason[0] != '\0' && info->text[0] != '\0');
		(void)error_text(rig, SLICE("1"), &fault, &error_data_none);
		for (int other = 1; other < err; other++)
			assert_true(err_info((enum err)other)->code != info->code ||
				    strcmp(info->reason, err_info((enum err)other)->reason) != 0);
	}
}

static void a_long_id_is_refused_and_not_repeated(void **state)
{
	struct rig *rig = *state;
	char body[RPC_ID_MAX + 64];

	for (int more = 0; more < 2; more++) {
		struct jsonrpc rpc;
		struct fault fault;
		struct gather g;
		(void)snprintf(body, sizeof(body),
			       "{\"jsonrpc\":\"2.0\",\"id\":\"%0*d\",\"method\":\"ping\"}",
			       RPC_ID_MAX - 2 + more, 0);
		enum err err = jsonrpc_read(slice_str(body), rig->work, &rig->arena, &rpc, &fault);
		assert_int_equal(err, more ? ERR_REQUEST : ERR_OK);
		if (!more)
			continue;
		assert_true(same(fault.path, "$.id"));
		gather_init(&g, &rig->arena);
		jsonrpc_write_error(&g, rpc.id, &fault, NULL);
		assert_true(slice_starts(gather_flat(&g, &rig->arena),
					 SLICE("{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":")));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		test(messages_are_told_apart),
		test(what_is_no_request_is_refused_and_the_id_kept_if_it_was_read),
		test(a_long_id_is_refused_and_not_repeated),
		test(malformed_json_is_described_with_its_place),
		test(errors_have_code_words_and_reason),
		test(particulars_appear_only_where_there_are_some),
		test(every_error_has_a_row_that_can_be_written),
	};
	return cmocka_run_group_tests_name("jsonrpc", tests, NULL, NULL);
}
