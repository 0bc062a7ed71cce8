/* What one host refuses inside a tool's schema, and the way back of the names that were changed. */
#include "codec/dialect/dialect.h"
#include "codec/dialect/replay.h"
#include "codec/set.h"
#include "tests/support/dialect_case.h"
#include "tests/support/stream_cut.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static int begin(void **state)
{
	static struct dialect_case c;

	case_init(&c, DIALECT_ANTHROPIC);
	*state = &c;
	return 0;
}

static int end(void **state)
{
	case_fini(*state);
	return 0;
}

static void start(struct dialect_case *c, enum dialect_id dialect)
{
	case_fini(c);
	case_init(c, dialect);
}

#define HI "\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"q\"}}]"
#define TOOL(schema) ",\"tools\":[{\"name\":\"t\",\"inputSchema\":" schema "}]"
#define OBJECT(members) "{\"type\":\"object\"," members "}"

/* Aliases: what is left of the name, and the first digits of its SHA-256. */
#define FILTER "filter_name__259d8078"
#define TOP "_top_81bf98e4"
#define SKIP "_skip_cefc4aff"

enum { TEXT_MAX = 8192 };

/* The schema of the first tool as it is sent. */
static const char *sent_schema(struct dialect_case *c, const char *schema)
{
	static char params[TEXT_MAX], text[TEXT_MAX];

	(void)snprintf(params, sizeof(params), HI TOOL("%s"), schema);
	if (case_encode(c, params) != ERR_OK)
		fail_msg("%s: %s", schema, case_fault_text(c));
	const char *body = case_body(c);
	const char *at = strstr(body, "_schema\":"), *parameters = strstr(body, "parameters\":");
	at = at != NULL ? at + strlen("_schema\":") : parameters + strlen("parameters\":");
	size_t len = 0;
	for (int depth = 0, inside = 0; len == 0 || depth != 0; len++) {
		inside ^= at[len] == '"' && (len == 0 || at[len - 1] != '\\');
		depth += inside ? 0 : (at[len] == '{') - (at[len] == '}');
	}
	(void)snprintf(text, sizeof(text), "%.*s", (int)len, at);
	return text;
}

static const struct row {
	const char *name;
	enum dialect_id dialect;
	const char *schema, *sent; /* NULL: as it is */
	const char *adjustments;
} rows[] = {
	/* ---- names of properties ---- */
	{ "names, and what is required", DIALECT_ANTHROPIC,
	  "{\"type\": \"object\", \"properties\": {\"filter[name]\": {\"type\": \"string\"}, "
	  "\"$top\": {\"type\": \"integer\"}, \"ok_key\": {\"type\": \"string\"}}, \"required\": "
	  "[\"filter[name]\"]}",
	  OBJECT("\"properties\":{\"" FILTER "\":{\"type\":\"string\"},\"" TOP
		 "\":{\"type\":\"integer\"},\"ok_key\":{\"type\":\"string\"}},\"required\":["
		 "\"" FILTER "\"]"),
	  "schema_property_renamed" },
	{ "other hosts take them", DIALECT_OPENAI, OBJECT("\"properties\":{\"$top\":{}}"), NULL,
	  "" },
	{ "and so does the third", DIALECT_RESPONSES, OBJECT("\"properties\":{\"$top\":{}}"), NULL,
	  "" },
	{ "dots and dashes are taken", DIALECT_ANTHROPIC,
	  OBJECT("\"properties\":{\"a.b-c_D9\":{\"enum\":[\"$top\"]}},\"$defs\":{\"a b\":{}}"),
	  NULL, "" },
	{ "64 bytes are taken", DIALECT_ANTHROPIC,
	  OBJECT("\"properties\":{"
		 "\"0123456789012345678901234567890123456789012345678901234567890123"
		 "\":{}}"),
	  NULL, "" },
	{ "65 are too many", DIALECT_ANTHROPIC,
	  OBJECT("\"properties\":{"
		 "\"01234567890123456789012345678901234567890123456789012345678901234"
		 "\":{}}"),
	  OBJECT("\"properties\":{\"0123456789012345678901234567890123456789012345678901234_"
		 "52774b57"
		 "\":{}}"),
	  "schema_property_renamed" },
	{ "none, words, not ASCII, an escape", DIALECT_ANTHROPIC,
	  OBJECT("\"properties\":{\"\":{},\"First Name\":{},\"na\xc3\xafve\":{},\"a\\u002fb\":{}}"),
	  OBJECT("\"properties\":{\"_e3b0c442\":{},\"First_Name_96ce6e61\":{},\"na_ve_f86fd89d\":{}"
		 ","
		 "\"a_b_c14cddc0\":{}}"),
	  "schema_property_renamed" },
	{ "everywhere that schemas are, and nowhere else", DIALECT_ANTHROPIC,
	  OBJECT("\"properties\":{\"a\":{\"type\":\"array\",\"items\":{\"properties\":{\"$top\":{}}"
		 ","
		 "\"required\":[\"$top\",\"b\"]}},\"c\":{\"anyOf\":[{\"properties\":{\"$skip\":{"
		 "\"const\":{\"properties\":{\"$top\":1}}}},\"default\":{\"$top\":{}}}]}},\"$"
		 "defs\":{"
		 "\"d\":{\"not\":{\"required\":[\"$top\"]},\"dependentRequired\":{\"$top\":[\"$"
		 "skip\","
		 "\"b\"]},\"dependentSchemas\":{\"$skip\":{\"required\":[\"$top\"]}},"
		 "\"dependencies\":{\"$top\":[\"$skip\"]},\"then\":{\"properties\":{\"$top\":true}}"
		 "}}"),
	  OBJECT("\"properties\":{\"a\":{\"type\":\"array\",\"items\":{\"properties\":{\"" TOP
		 "\":{}},\"required\":[\"" TOP
		 "\",\"b\"]}},\"c\":{\"anyOf\":[{\"properties\":{\"" SKIP
		 "\":{\"const\":{\"properties\":{\"$top\":1}}}},\"default\":{\"$top\":{}}}]}},\"$"
		 "defs\":{"
		 "\"d\":{\"not\":{\"required\":[\"" TOP "\"]},\"dependentRequired\":{\"" TOP
		 "\":[\"" SKIP "\",\"b\"]},\"dependentSchemas\":{\"" SKIP "\":{\"required\":[\"" TOP
		 "\"]}},\"dependencies\":{\"" TOP "\":[\"" SKIP
		 "\"]},\"then\":{\"properties\":{\"" TOP "\":true}}}}"),
	  "schema_property_renamed" },
	{ "references", DIALECT_ANTHROPIC,
	  OBJECT("\"properties\":{\"$top\":{\"properties\":{\"a/b\":{}}},\"r\":{\"$ref\":"
		 "\"#/properties/%24top/properties/a~1b\"},\"s\":{\"$ref\":\"#/$defs/"
		 "$top\"},\"u\":{"
		 "\"$ref\":\"#/$defs/x/anyOf/1/properties/$top\"},\"v\":{\"$ref\":"
		 "\"https://x/#/properties/$top\"}}"),
	  OBJECT("\"properties\":{\"" TOP
		 "\":{\"properties\":{\"a_b_c14cddc0\":{}}},\"r\":{\"$ref\":"
		 "\"#/properties/" TOP
		 "/properties/a_b_c14cddc0\"},\"s\":{\"$ref\":\"#/$defs/$top\"},"
		 "\"u\":{\"$ref\":\"#/$defs/x/anyOf/1/properties/" TOP
		 "\"},\"v\":{\"$ref\":\"https://x/#/properties/$top\"}}"),
	  "schema_property_renamed" },
	{ "an alias that is a name already gets a number", DIALECT_ANTHROPIC,
	  OBJECT("\"properties\":{\"" TOP "\":{},\"$top\":{}}"),
	  OBJECT("\"properties\":{\"" TOP "\":{},\"" TOP "_2\":{}}"), "schema_property_renamed" },
	/* ---- arrays ---- */
	{ "arrays without items", DIALECT_OPENAI,
	  "{\"type\": \"object\", \"properties\": {\"tags\": {\"type\": \"array\", "
	  "\"description\": "
	  "\"names\"}, \"deep\": {\"type\": \"object\", \"properties\": {\"x\": {\"type\": "
	  "[\"array\", \"null\"]}}}}}",
	  OBJECT("\"properties\":{\"tags\":{\"type\":\"array\",\"description\":\"names\",\"items\":"
		 "{}},"
		 "\"deep\":{\"type\":\"object\",\"properties\":{\"x\":{\"type\":[\"array\", "
		 "\"null\"],"
		 "\"items\":{}}}}}"),
	  "schema_completed" },
	{ "the same", DIALECT_RESPONSES, OBJECT("\"properties\":{\"a\":{\"type\":\"array\"}}"),
	  OBJECT("\"properties\":{\"a\":{\"type\":\"array\",\"items\":{}}}"), "schema_completed" },
	{ "which Anthropic takes", DIALECT_ANTHROPIC,
	  OBJECT("\"properties\":{\"a\":{\"type\":\"array\"}}"), NULL, "" },
	{ "items before, behind, far behind", DIALECT_OPENAI,
	  OBJECT("\"properties\":{\"a\":{\"items\":{},\"type\":\"array\"},\"b\":{\"type\":"
		 "\"array\","
		 "\"items\":{}},\"c\":{\"type\":\"array\",\"title\":\"T\",\"items\":{\"type\":"
		 "\"string\"}}}"),
	  NULL, "" },
	{ "an array is not what only looks like one", DIALECT_OPENAI,
	  OBJECT("\"properties\":{\"a\":{\"enum\":[\"array\"],\"const\":{\"type\":\"array\"},"
		 "\"default\":{\"type\":\"array\"}},\"type\":{\"type\":\"string\",\"title\":"
		 "\"array\"}}"),
	  NULL, "" },
	{ "in definitions, lists and lists in them", DIALECT_OPENAI,
	  OBJECT("\"properties\":{\"a\":{\"anyOf\":[{\"type\":\"array\"},{\"items\":{\"type\":"
		 "\"array\"},\"type\":\"array\"}]}},\"$defs\":{\"d\":{\"additionalProperties\":{"
		 "\"type\":\"array\",\"items\":null}}}"),
	  OBJECT("\"properties\":{\"a\":{\"anyOf\":[{\"type\":\"array\",\"items\":{}},{\"items\":{"
		 "\"type\":\"array\",\"items\":{}},\"type\":\"array\"}]}},\"$defs\":{\"d\":{"
		 "\"additionalProperties\":{\"type\":\"array\",\"items\":{}}}}"),
	  "schema_completed" },
	/* ---- null ---- */
	{ "properties and required are null", DIALECT_ANTHROPIC,
	  OBJECT("\"properties\":null,\"required\":null"), "{\"type\":\"object\"}",
	  "schema_completed" },
	{ "the same, and properties are wanted", DIALECT_OPENAI,
	  "{\"type\": \"object\", \"required\": null, \"properties\": null}",
	  OBJECT("\"properties\":{}"), "schema_completed" },
	{ "required alone", DIALECT_OPENAI, OBJECT("\"properties\":{\"a\":{}},\"required\":null"),
	  OBJECT("\"properties\":{\"a\":{}}"), "schema_completed" },
	{ "deeper", DIALECT_RESPONSES,
	  OBJECT("\"properties\":{\"a\":{\"type\":\"object\",\"properties\":null,\"required\":null,"
		 "\"default\":null,\"const\":null}}"),
	  OBJECT("\"properties\":{\"a\":{\"type\":\"object\",\"default\":null,\"const\":null}}"),
	  "schema_completed" },
	{ "a default of null is a value", DIALECT_ANTHROPIC,
	  OBJECT("\"properties\":{\"a\":{\"default\":null,\"x-own\":null}}"), NULL, "" },
	/* ---- the root ---- */
	{ "not", DIALECT_OPENAI, OBJECT("\"properties\":{\"a\":{}},\"not\":{\"required\":[\"a\"]}"),
	  OBJECT("\"properties\":{\"a\":{}}"), "schema_root_folded" },
	{ "enum", DIALECT_RESPONSES, OBJECT("\"enum\":[{}],\"properties\":{\"a\":{\"enum\":[1]}}"),
	  OBJECT("\"properties\":{\"a\":{\"enum\":[1]}}"), "schema_root_folded" },
	{ "allOf in branches of oneOf", DIALECT_OPENAI,
	  OBJECT("\"oneOf\":[{\"allOf\":[{\"properties\":{\"a\":{}},\"required\":[\"a\"]},{"
		 "\"properties\":{\"b\":{}}}]},{\"properties\":{\"a\":{},\"c\":{}},\"required\":["
		 "\"a\","
		 "\"c\"],\"anyOf\":[{\"properties\":{\"d\":{}},\"required\":[\"a\",\"d\"]}]}]"),
	  OBJECT("\"properties\":{\"a\":{},\"b\":{},\"c\":{},\"d\":{}},\"required\":[\"a\"]"),
	  "schema_root_folded" },
	{ "an array and a name in a branch", DIALECT_ANTHROPIC,
	  OBJECT("\"anyOf\":[{\"properties\":{\"$top\":{}},\"required\":[\"$top\"]}]"),
	  OBJECT("\"properties\":{\"" TOP "\":{}},\"required\":[\"" TOP "\"]"),
	  "schema_root_folded schema_property_renamed" },
};

static void what_a_host_refuses_is_not_sent(void **state)
{
	struct dialect_case *c = *state;

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const struct row *row = &rows[i];
		start(c, row->dialect);
		const char *sent = sent_schema(c, row->schema);
		if (strcmp(sent, row->sent == NULL ? row->schema : row->sent) != 0)
			fail_msg("%s:\n have %s\n want %s", row->name, sent,
				 row->sent == NULL ? row->schema : row->sent);
		const char *adjustments = case_adjustments(c, c->out.adjustments);
		if (strcmp(adjustments, row->adjustments) != 0)
			fail_msg("%s: %s", row->name, adjustments);
	}
}

/* Whatever stands around the schema: where white space is, where the body ends, how deep it is. */
static void what_is_refused_is_seen_however_the_schema_is_written(void **state)
{
	static const char *const keys[] = {
		OBJECT("\"properties\":{\"a\":{\"type\":\"object\",\"properties\":{\"%s\":{"
		       "\"type\":"
		       "\"string\"}}}}"),
		"{\"properties\":{\"%s\":{\"type\":\"string\"}},\"type\":\"object\"}",
		"{ \"type\" : \"object\" , \"properties\" : { \"%s\" : true } }",
		"{\n  \"type\": \"object\",\n  \"$defs\": {\n    \"a\": {\n      \"properties\": "
		"{\n   "
		"     \"b\": {},\n        \"%s\": {}\n      }\n    }\n  }\n}",
		OBJECT("\"allOf\":[{\"items\":[{\"properties\":{\"a\":1,\"%s\":2}}]}]"),
	};
	static const char *const names[] = {
		"$top",         "a b",        "a/b",
		"filter[name]", "\\u0024top", "this_name_is_longer_than_a_block_and_has_a:"
	};
	struct dialect_case *c = *state;
	char schema[TEXT_MAX];

	for (size_t i = 0; i < COUNT_OF(keys); i++)
		for (size_t n = 0; n < COUNT_OF(names); n++) {
			(void)snprintf(schema, sizeof(schema), keys[i], names[n]);
			const char *sent = sent_schema(c, schema);
			char quoted[128];
			(void)snprintf(quoted, sizeof(quoted), "\"%s\"", names[n]);
			if (strstr(sent, quoted) != NULL)
				fail_msg("%s is sent: %s", names[n], sent);
			case_reset(c);
		}
}

/* Reading a schema guesses how it goes on: what is wrong with it is found all the same. */
static void a_schema_that_is_no_json_or_has_a_name_twice_is_refused(void **state)
{
	static const struct {
		const char *schema;
		enum err err;
	} bad[] = {
		{ OBJECT("\"properties\":{\"a\":{\"type\":\"string\",\"type\":\"array\"}}"),
		  ERR_DUPLICATE_KEY },
		{ OBJECT("\"properties\":{\"a\":{\"type\":\"string\",\"\\u0074ype\":1}}"),
		  ERR_DUPLICATE_KEY },
		{ OBJECT("\"$defs\":[{\"type\":\"string\",\"a\":1,\"b\":2,\"type\":1}]"),
		  ERR_DUPLICATE_KEY },
		{ OBJECT("\"properties\":{\"a\":[\"type\":\"string\"]}"), ERR_JSON },
		{ OBJECT("\"properties\":{\"a\":{\"type\":\"string\"\"b\":1}}"), ERR_JSON },
		{ OBJECT("\"properties\":{\"a\":{\"type\":\"str\ning\"}}"), ERR_JSON },
		{ OBJECT("\"properties\":{\"a\":{\"type\":\"string\"]}"), ERR_JSON },
		{ OBJECT("\"properties\":nul"), ERR_JSON },
		{ OBJECT("\"additionalProperties\":falsex"), ERR_JSON },
	};
	struct dialect_case *c = *state;
	char body[TEXT_MAX];
	struct jsonrpc rpc;

	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		(void)snprintf(
			body, sizeof(body),
			"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"sampling/createMessage\","
			"\"params\":{\"maxTokens\":1," HI TOOL("%s") "}}",
			bad[i].schema);
		assert_int_equal(sampling_read(slice_str(body), REVISION_2025_11_25,
					       &sampling_limits_default, c->work, &c->arena, &rpc,
					       &c->request, &c->fault),
				 bad[i].err);
	}
}

#define LOOP                                                                                       \
	"\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"q\"}},{"       \
	"\"role\":"                                                                                \
	"\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"t\",\"input\":" \
	"{"                                                                                        \
	"\"$top\": 1, \"list\":[{\"filter[name]\":\"$top\",\"free form\":[]}]}},{\"type\":"        \
	"\"tool_use\",\"id\":\"b\",\"name\":\"u\",\"input\":{\"$top\":1}}]},{\"role\":\"user\","   \
	"\"content\":[{\"type\":\"tool_result\",\"toolUseId\":\"a\",\"content\":[]},{\"type\":"    \
	"\"tool_result\",\"toolUseId\":\"b\",\"content\":[]}]}],\"tools\":[{\"name\":\"t\","       \
	"\"inputSchema\":{\"type\":\"object\",\"properties\":{\"$top\":{},\"list\":{\"type\":"     \
	"\"array\",\"items\":{\"properties\":{\"filter[name]\":{}}}}}}},{\"name\":\"u\","          \
	"\"inputSchema\":{\"type\":\"object\"}}]"
#define INPUT "\"input\":{\"$top\": 1, \"list\":[{\"filter[name]\":\"$top\",\"free form\":[]}]}"
#define SENT_INPUT "{\"" TOP "\": 1, \"list\":[{\"" FILTER "\":\"$top\",\"free form\":[]}]}"

static void calls_go_there_and_back_with_the_names_of_their_tool(void **state)
{
	static const char answer[] =
		"{\"id\":\"r\",\"model\":\"m\",\"stop_reason\":\"tool_use\",\"content\":[{\"type\":"
		"\"tool_use\",\"id\":\"x\",\"name\":\"t\",\"input\":" SENT_INPUT
		"},{\"type\":\"tool_use\",\"id\":\"y\",\"name\":\"u\",\"input\":{\"" TOP "\":2}}]}";
	struct dialect_case *c = *state;

	assert_int_equal(case_encode(c, LOOP), ERR_OK);
	const char *body = case_body(c);
	if (strstr(body, "\"name\":\"t\",\"input\":" SENT_INPUT) == NULL)
		fail_msg("%s", body);
	assert_non_null(strstr(body, "\"name\":\"u\",\"input\":{\"$top\":1}"));
	assert_int_equal(c->context.keys->count, 2);
	assert_int_equal(case_decode(c, answer), ERR_OK);
	const char *result = case_result(c);
	if (strstr(result, "\"name\":\"t\"," INPUT) == NULL)
		fail_msg("%s", result);
	/* another tool's names are its own */
	assert_non_null(strstr(result, "\"name\":\"u\",\"input\":{\"" TOP "\":2}"));
	/* of a name and its alias in one object the last one stays */
	assert_int_equal(
		case_decode(c, "{\"id\":\"r\",\"model\":\"m\",\"stop_reason\":\"tool_use\","
			       "\"content\":[{\"type\":\"tool_use\",\"id\":\"x\",\"name\":\"t\","
			       "\"input\":{\"" TOP "\":1,\"$top\":2}}]}"),
		ERR_OK);
	assert_non_null(strstr(case_result(c), "\"input\":{\"$top\":2}"));
	assert_string_equal(case_adjustments(c, c->result.adjustments), "duplicate_key_removed");
	/* hosts that take the names get them */
	start(c, DIALECT_OPENAI);
	assert_int_equal(case_encode(c, LOOP), ERR_OK);
	assert_non_null(strstr(case_body(c), "{\\\"$top\\\":1,\\\"list\\\""));
	assert_null(c->context.keys);
}

static void a_longer_history_begins_with_the_shorter_one(void **state)
{
	static const char more[] =
		"\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\","
		"\"text\":\"q\"}}]";
	struct dialect_case *c = *state;
	static char first[TEXT_MAX], params[TEXT_MAX];

	assert_int_equal(case_encode(c, LOOP), ERR_OK);
	(void)snprintf(first, sizeof(first), "%s", case_body(c));
	(void)snprintf(params, sizeof(params), "%s%s", more, strstr(LOOP, ",\"tools\""));
	assert_int_equal(case_encode(c, params), ERR_OK);
	const char *shorter = case_body(c);
	assert_memory_equal(first, shorter, strlen(shorter) - c->dialect->closing);
}

/* What was answered goes back byte for byte, with the names that the provider knows. */
static void thinking_goes_back_with_calls_whose_names_were_changed(void **state)
{
	static const char tools[] = TOOL(OBJECT("\"properties\":{\"$top\":{}}"));
	static const char thought[] =
		"{\"type\":\"thinking\",\"thinking\":\"hm\",\"signature\":\"s\"},"
		"{\"type\":\"tool_use\",\"id\":\"x\",\"name\":\"t\",\"input\":{\"" TOP "\":1}}";
	struct dialect_case *c = *state;
	char text[TEXT_MAX];

	(void)snprintf(text, sizeof(text), "%s%s", HI, tools);
	assert_int_equal(case_encode(c, text), ERR_OK);
	(void)snprintf(
		text, sizeof(text),
		"{\"id\":\"r\",\"model\":\"m\",\"stop_reason\":\"tool_use\",\"content\":[%s]}",
		thought);
	assert_int_equal(case_decode(c, text), ERR_OK);
	const struct slice record =
		replay_write(c->dialect, SLICE("p"), &c->out, &c->result, &c->arena);
	assert_false(slice_absent(record));
	(void)snprintf(
		text, sizeof(text),
		"\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"q\"}},"
		"{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"x\",\"name\":"
		"\"t\",\"input\":{\"$top\":1}}]},{\"role\":\"user\",\"content\":[{\"type\":"
		"\"tool_result\",\"toolUseId\":\"x\",\"content\":[]}]}]%s",
		tools);
	c->replay = &record;
	c->replay_count = 1;
	assert_int_equal(case_encode(c, text), ERR_OK);
	assert_true(c->out.replayed);
	assert_non_null(strstr(case_body(c), thought));
}

static void a_stream_of_a_call_has_its_names_back(void **state)
{
	static const char events[] =
		"data: {\"type\":\"message_start\",\"message\":{\"id\":\"r\",\"model\":\"m\"}}\n\n"
		"data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":"
		"\"tool_use\",\"id\":\"x\",\"name\":\"t\",\"input\":{}}}\n\n"
		"data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":"
		"\"input_json_delta\",\"partial_json\":\"{\\\"_top_81\"}}\n\n"
		"data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":"
		"\"input_json_delta\",\"partial_json\":\"bf98e4\\\":1}\"}}\n\n"
		"data: {\"type\":\"content_block_stop\",\"index\":0}\n\n"
		"data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"}}\n\n"
		"data: {\"type\":\"message_stop\"}\n\n";
	static const struct stream_limits limits = { .answer_bytes_max = 1 << 20 };
	struct dialect_case *c = *state;
	struct stream_slab streams;

	assert_int_equal(case_encode(c, HI TOOL(OBJECT("\"properties\":{\"$top\":{}}"))), ERR_OK);
	assert_true(stream_slab_init(&streams, 1));
	struct stream *s = stream_take(&streams);
	stream_open(s, c->dialect, &c->context, &c->answer, &limits, c->work, &c->arena);
	(void)stream_feed_cut(s, slice_str(events), (struct stream_cut){ .step = 1 });
	assert_int_equal(stream_end(s, STREAM_ENDED, &c->result, &c->failure), ERR_OK);
	assert_non_null(strstr(case_result(c), "\"input\":{\"$top\":1}"));
	stream_give(&streams, s);
	stream_slab_fini(&streams);
}

static void structured_output_with_such_names_is_a_forced_call(void **state)
{
	static const char params[] =
		HI ",\"tools\":[{\"name\":\"__schema__\",\"inputSchema\":{\"type\":\"object\","
		   "\"properties\":{\"%s\":{\"type\":\"string\"}},\"required\":[\"%s\"],"
		   "\"additionalProperties\":false}}],\"toolChoice\":{\"mode\":\"required\"}";
	struct dialect_case *c = *state;
	char text[TEXT_MAX];

	c->profile.structured_output = true;
	(void)snprintf(text, sizeof(text), params, "top", "top");
	assert_int_equal(case_encode(c, text), ERR_OK);
	assert_true(c->context.native_schema);
	(void)snprintf(text, sizeof(text), params, "$top", "$top");
	assert_int_equal(case_encode(c, text), ERR_OK);
	assert_false(c->context.native_schema);
	assert_non_null(strstr(case_body(c), "\"required\":[\"" TOP "\"]"));
	assert_int_equal(case_decode(c,
				     "{\"id\":\"r\",\"model\":\"m\",\"stop_reason\":\"tool_use\","
				     "\"content\":[{\"type\":\"tool_use\",\"id\":\"x\",\"name\":"
				     "\"__schema__\",\"input\":{\"" TOP "\":\"a\"}}]}"),
			 ERR_OK);
	assert_non_null(strstr(case_result(c), "\"input\":{\"$top\":\"a\"}"));
}

static enum err encode_starved(struct dialect_case *c)
{
	return case_encode_again(c);
}

static enum err decode_starved(struct dialect_case *c)
{
	return case_decode(
		c,
		"{\"id\":\"r\",\"model\":\"m\",\"stop_reason\":\"tool_use\",\"content\":["
		"{\"type\":\"tool_use\",\"id\":\"x\",\"name\":\"t\",\"input\":" SENT_INPUT "}]}");
}

static void every_refused_memory_is_a_named_error(void **state)
{
	struct dialect_case *c = *state;

	assert_int_equal(case_encode(c, LOOP), ERR_OK);
	assert_true(case_starve(c, encode_starved) > 20);
	assert_int_equal(case_encode(c, LOOP), ERR_OK);
	assert_true(case_starve(c, decode_starved) > 5);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_a_host_refuses_is_not_sent),
		TEST(what_is_refused_is_seen_however_the_schema_is_written),
		TEST(a_schema_that_is_no_json_or_has_a_name_twice_is_refused),
		TEST(calls_go_there_and_back_with_the_names_of_their_tool),
		TEST(a_longer_history_begins_with_the_shorter_one),
		TEST(thinking_goes_back_with_calls_whose_names_were_changed),
		TEST(a_stream_of_a_call_has_its_names_back),
		TEST(structured_output_with_such_names_is_a_forced_call),
		TEST(every_refused_memory_is_a_named_error),
	};
	return cmocka_run_group_tests_name("dialect_mend", tests, NULL, NULL);
}
