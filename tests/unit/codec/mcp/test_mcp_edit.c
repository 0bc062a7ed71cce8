/* Edits change the bytes that they are about, and no others. */
#include "codec/mcp/mcp_edit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct editing {
	struct arena_pool pool;
	struct arena arena;
	struct mcp_edits edits;
	struct mcp_message message;
};

static void begin(struct editing *e, struct slice text)
{
	struct slice object = { NULL, 0 };

	*e = (struct editing){ .pool = { .keep_max = 4 } };
	arena_init(&e->arena, &e->pool, 1 << 20);
	mcp_edits_init(&e->edits, text, &e->arena);
	if (json_loose_whole(text, &object))
		mcp_message_read(object, &e->message);
}

static void end(struct editing *e)
{
	arena_give(&e->arena);
	arena_pool_fini(&e->pool);
}

/* In every way that it can be taken. */
static void assert_edited(struct editing *e, const char *expected)
{
	struct gather g;
	const struct slice flat = mcp_edits_flat(&e->edits, &e->arena);

	if (!slice_eq(flat, slice_str(expected)))
		fail_msg("%.*s instead of %s", (int)flat.len, flat.at, expected);
	assert_int_equal(mcp_edits_len(&e->edits), flat.len);
	gather_init(&g, &e->arena);
	assert_int_equal(mcp_edits_write(&e->edits, &g), ERR_OK);
	assert_int_equal(gather_done(&g), ERR_OK);
	assert_true(slice_eq(gather_flat(&g, &e->arena), flat));
}

static const struct declare_row {
	const char *text, *declared, *undeclared; /* NULL: it is not edited */
} declare_rows[] = {
#define IN(capabilities) "{\"id\":1,\"params\":{\"capabilities\":" capabilities ",\"x\":1}}\n"
	{ IN("{}"), IN("{\"sampling\":V}"), IN("{}") },
	{ IN("{ }"), IN("{\"sampling\":V }"), IN("{ }") },
	{ IN("{ \"roots\":{}}"), IN("{\"sampling\":V, \"roots\":{}}"), IN("{ \"roots\":{}}") },
	{ IN("{\"sampling\":null}"), IN("{\"sampling\":V}"), IN("{}") },
	{ IN("{\"sampling\" : { } }"), IN("{\"sampling\" : V }"), IN("{}") },
	{ IN("{\"s\\u0061mpling\":{}}"), IN("{\"s\\u0061mpling\":V}"), IN("{}") },
	{ IN("{\"a\":1, \"sampling\":{} }"), IN("{\"a\":1, \"sampling\":V }"), IN("{\"a\":1}") },
	{ IN("{ \"sampling\":{} , \"a\":1 }"), IN("{ \"sampling\":V , \"a\":1 }"),
	  IN("{ \"a\":1 }") },
	{ IN("{\"a\":1,\"sampling\":{},\"b\":[\"sampling\"]}"),
	  IN("{\"a\":1,\"sampling\":V,\"b\":[\"sampling\"]}"),
	  IN("{\"a\":1,\"b\":[\"sampling\"]}") },
	{ IN("{\"sampling\":1,\"a\":1,\"sampling\":2,\"sampling\":3,\"b\":2,\"sampling\":4}"),
	  IN("{\"sampling\":1,\"a\":1,\"sampling\":2,\"sampling\":3,\"b\":2,\"sampling\":V}"),
	  IN("{\"a\":1,\"b\":2}") },
	{ IN("{\"sampling\":1,\"sampling\":2}"), IN("{\"sampling\":1,\"sampling\":V}"), IN("{}") },
	{ IN("[]"), NULL, NULL },
	{ IN("null"), NULL, NULL },
	{ "{\"id\":1,\"params\":{}}", NULL, NULL },
#undef IN
};

static void a_declaration_is_put_replaced_or_cut(void **state)
{
	struct editing e;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(declare_rows); i++) {
		const struct declare_row *row = &declare_rows[i];
		begin(&e, slice_str(row->text));
		const struct mcp_declaration *client = &e.message.in_params.client;
		assert_int_equal(mcp_edits_declare(&e.edits, client, SLICE("V")),
				 row->declared != NULL);
		assert_edited(&e, row->declared == NULL ? row->text : row->declared);
		end(&e);
		begin(&e, slice_str(row->text));
		mcp_edits_undeclare(&e.edits, client);
		assert_edited(&e, row->undeclared == NULL ? row->text : row->undeclared);
		end(&e);
	}
}

static const struct round_row {
	const char *params, *with_state, *without;
} round_rows[] = {
	{ "{}", "{\"inputResponses\":{\"a\":1,\"b\":2},\"requestState\":\"s\"}",
	  "{\"inputResponses\":{\"a\":1,\"b\":2}}" },
	{ "{\"name\":\"t\" }",
	  "{\"name\":\"t\" ,\"inputResponses\":{\"a\":1,\"b\":2},\"requestState\":\"s\"}",
	  "{\"name\":\"t\" ,\"inputResponses\":{\"a\":1,\"b\":2}}" },
	{ "{\"requestState\":\"old\",\"name\":\"t\",\"inputResponses\":{}}",
	  "{\"name\":\"t\",\"inputResponses\":{\"a\":1,\"b\":2},\"requestState\":\"s\"}",
	  "{\"name\":\"t\",\"inputResponses\":{\"a\":1,\"b\":2}}" },
	{ "{\"inputResponses\":{},\"requestState\":1}",
	  "{\"inputResponses\":{\"a\":1,\"b\":2},\"requestState\":\"s\"}",
	  "{\"inputResponses\":{\"a\":1,\"b\":2}}" },
};

static void a_round_has_new_responses_state_and_id(void **state)
{
	static const struct slice answers[] = { SLICE_INIT("\"a\":1"), SLICE_INIT(",\"b\":2") };
	char text[256], expected[256];
	struct editing e;

	(void)state;
	for (size_t i = 0; i < 2 * COUNT_OF(round_rows); i++) {
		const struct round_row *row = &round_rows[i / 2];
		const bool has_state = i % 2 == 0;
		(void)snprintf(text, sizeof(text), "{\"params\":%s,\"id\":1}", row->params);
		(void)snprintf(expected, sizeof(expected), "{\"params\":%s,\"id\":\"n\"}",
			       has_state ? row->with_state : row->without);
		begin(&e, slice_str(text));
		mcp_edits_put(&e.edits, e.message.id, SLICE("\"n\""));
		mcp_edits_round(&e.edits, e.message.params, answers, COUNT_OF(answers),
				has_state ? SLICE("\"s\"") : slice_of(NULL, 0));
		assert_edited(&e, expected);
		end(&e);
	}
}

/* What a client is asked of a round that was answered in part. */
static void samplings_leave_a_round(void **state)
{
	struct editing e;

	(void)state;
	begin(&e,
	      SLICE("{\"id\":7,\"result\":{\"resultType\":\"input_required\",\"inputRequests\":"
		    "{\"a\":{\"method\":\"sampling/createMessage\"}, \"b\":{\"method\":\"x\"}}}}"));
	mcp_edits_put(&e.edits, e.message.id, SLICE("\"c\""));
	assert_int_equal(mcp_edits_unsample(&e.edits, e.message.in_result.input_requests), 1);
	mcp_edits_member(&e.edits, e.message.result, "requestState",
			 e.message.in_result.request_state, SLICE("\"s\""));
	assert_edited(&e, "{\"id\":\"c\",\"result\":{\"requestState\":\"s\",\"resultType\":\"input_"
			  "required\","
			  "\"inputRequests\":{ \"b\":{\"method\":\"x\"}}}}");
	end(&e);
}

static void cut_numbers(struct editing *e, bool odd)
{
	struct mcp_cut cut;

	mcp_cut_begin(&cut, &e->edits, e->edits.text);
	while (mcp_cut_next(&cut))
		if (cut.walk.value.at[cut.walk.value.len - 1] % 2 == odd)
			mcp_cut_drop(&cut);
}

static void messages_leave_a_batch(void **state)
{
	static const struct {
		const char *text, *odd_left, *even_left;
	} rows[] = {
		{ "[1]", "[1]", "[]" },
		{ "[1, 2]", "[1]", "[ 2]" },
		{ "[ 2 ,1 ,4 , 6,3 ]", "[1 ,3 ]", "[ 2 ,4 , 6]" },
		{ "[2,2,2]", "[]", "[2,2,2]" },
		{ "[]", "[]", "[]" },
	};
	struct editing e;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		begin(&e, slice_str(rows[i].text));
		cut_numbers(&e, false);
		assert_edited(&e, rows[i].odd_left);
		end(&e);
		begin(&e, slice_str(rows[i].text));
		cut_numbers(&e, true);
		assert_edited(&e, rows[i].even_left);
		end(&e);
	}
}

static void behind_a_fault_everything_stays(void **state)
{
	struct editing e;

	(void)state;
	begin(&e, SLICE("[1,2,3 4,1]"));
	cut_numbers(&e, true);
	assert_edited(&e, "[2,3 4,1]");
	end(&e);
}

enum { MANY = 1000 };

static void many_edits_take_memory(void **state)
{
	char text[2 * MANY + 2] = "[", expected[MANY + 2] = "[";
	struct editing e;

	(void)state;
	for (size_t i = 0; i < MANY; i++) {
		(void)memcpy(text + strlen(text), i % 2 == 0 ? "1," : "2,", 3);
		if (i % 2 != 0)
			(void)memcpy(expected + strlen(expected), "2,", 3);
	}
	text[strlen(text) - 1] = expected[strlen(expected) - 1] = ']';
	begin(&e, slice_str(text));
	cut_numbers(&e, true);
	assert_edited(&e, expected);
	end(&e);
	begin(&e, slice_str(text));
	e.pool.fail_next = 2;
	cut_numbers(&e, true);
	struct gather g;
	gather_init(&g, &e.arena);
	assert_int_equal(mcp_edits_write(&e.edits, &g), ERR_BUSY);
	assert_true(slice_absent(mcp_edits_flat(&e.edits, &e.arena)));
	end(&e);
}

static void edits_may_come_in_any_order(void **state)
{
	struct editing e;
	const struct slice text = SLICE("0123456789");

	(void)state;
	begin(&e, text);
	mcp_edits_put(&e.edits, slice_of(text.at + 8, 2), SLICE("H"));
	mcp_edits_put(&e.edits, slice_of(text.at + 4, 1), SLICE("four"));
	mcp_edits_put(&e.edits, slice_of(text.at + 4, 0), SLICE("a"));
	mcp_edits_put(&e.edits, slice_of(text.at + 4, 0), SLICE("b"));
	mcp_edits_put(&e.edits, slice_of(text.at, 0), SLICE("<"));
	mcp_edits_put(&e.edits, slice_of(text.at, 2), SLICE(""));
	mcp_edits_put(&e.edits, slice_of(text.at + 10, 0), SLICE(">"));
	assert_edited(&e, "<23abfour567H>");
	end(&e);
	begin(&e, text);
	assert_edited(&e, "0123456789");
	end(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_declaration_is_put_replaced_or_cut),
		cmocka_unit_test(a_round_has_new_responses_state_and_id),
		cmocka_unit_test(samplings_leave_a_round),
		cmocka_unit_test(messages_leave_a_batch),
		cmocka_unit_test(behind_a_fault_everything_stays),
		cmocka_unit_test(many_edits_take_memory),
		cmocka_unit_test(edits_may_come_in_any_order),
	};
	return cmocka_run_group_tests_name("mcp_edit", tests, NULL, NULL);
}
