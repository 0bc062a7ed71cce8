/* What sampling_read makes of requests it accepts. Refusals: test_sampling_rules.c. */
#include "tests/unit/codec/mcp/sampling_rig.h"

#include <math.h>

#define USER_HI "{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"hi\"}}"
#define CALL(id) \
	"{\"type\":\"tool_use\",\"id\":\"" id "\",\"name\":\"f\",\"input\":{\"a\":\"" id "\"}}"
#define RESULT(id) "{\"type\":\"tool_result\",\"toolUseId\":\"" id "\",\"content\":[]}"
#define ASSISTANT(blocks) "{\"role\":\"assistant\",\"content\":[" blocks "]}"
#define USER(blocks) "{\"role\":\"user\",\"content\":[" blocks "]}"

static void a_plain_request_is_read(void **state)
{
	struct rig *rig = *state;

	assert_ok(rig_params(rig,
			     "{\"messages\":[" USER_HI "],\"maxTokens\":100,"
			     "\"systemPrompt\":\"be \\\"nice\\\"\",\"temperature\":0.70,"
			     "\"stopSequences\":[\"a\",\"\",\"\\n\"],\"unknown\":{\"x\":[1]}}"));
	const struct sampling_request *q = &rig->request;
	assert_int_equal(rig->rpc.method, RPC_CREATE_MESSAGE);
	assert_slice(rig->rpc.id, "1");
	assert_int_equal(q->revision, REVISION_2025_11_25);
	assert_int_equal(q->max_tokens, 100);
	assert_slice(q->system, "be \\\"nice\\\"");
	assert_slice(q->temperature, "0.70"); /* the number's own text */
	assert_int_equal(q->stop_count, 3);
	assert_slice(q->stop[2], "\\n");
	assert_int_equal(q->message_count, 1);
	assert_int_equal(q->block_count, 1);
	assert_int_equal(q->blocks[0].type, BLOCK_TEXT);
	assert_slice(q->blocks[0].text.text, "hi");
	assert_false(q->tools_present || q->no_parallel || q->exchange_wanted);
	assert_int_equal(q->tool_mode, TOOL_MODE_DEFAULT);
	assert_true(isnan(q->prefer.cost) && isnan(q->prefer.speed));
	assert_true(q->adjustments == 0);
}

static void members_may_come_in_any_order_at_every_level(void **state)
{
	struct rig *rig = *state;
	static const char body[] =
		"{\"params\":{\"maxTokens\":5,\"messages\":["
		"{\"content\":[{\"text\":\"a\",\"type\":\"text\"}],\"role\":\"user\"},"
		"{\"content\":{\"input\":{},\"name\":\"f\",\"id\":\"c\",\"type\":\"tool_use\"},"
		"\"role\":\"assistant\"},"
		"{\"content\":{\"content\":[{\"mimeType\":\"image/"
		"png\",\"data\":\"AAAA\",\"type\":\"image\"},"
		"{\"text\":\"b\",\"type\":\"text\"}],\"toolUseId\":\"c\",\"isError\":true,\"type\":"
		"\"tool_result\"},"
		"\"role\":\"user\"}]},\"method\":\"sampling/"
		"createMessage\",\"id\":\"x\",\"jsonrpc\":\"2.0\"}";

	assert_ok(rig_read(rig, slice_str(body), REVISION_2025_11_25));
	const struct sampling_request *q = &rig->request;
	assert_slice(rig->rpc.id, "\"x\"");
	assert_int_equal(q->message_count, 3);
	assert_true(q->messages[1].assistant && !q->messages[2].assistant);
	const struct block *result = &q->blocks[q->messages[2].first];
	assert_int_equal(result->type, BLOCK_TOOL_RESULT);
	assert_true(result->is_error);
	assert_int_equal(result->result.count, 2);
	assert_int_equal(q->inner[result->result.first].type, BLOCK_IMAGE);
	assert_slice(q->inner[result->result.first + 1].text.text, "b");
	assert_int_equal(q->images, 0); /* inside a result it is none of the messages' */
}

static void keys_and_names_may_be_escaped(void **state)
{
	struct rig *rig = *state;

	assert_ok(rig_params(
		rig, "{\"m\\u0065ssages\":[{\"r\\u006fle\":\"us\\u0065r\",\"content\":"
		     "{\"typ\\u0065\":\"t\\u0065xt\",\"t\\u0065xt\":\"x\"}}],\"maxTokens\":1}"));
	assert_slice(rig->request.blocks[0].text.text, "x");
}

static void null_counts_as_missing_where_a_member_is_optional(void **state)
{
	struct rig *rig = *state;

	assert_ok(rig_params(
		rig,
		"{\"messages\":[" USER_HI "],\"maxTokens\":1,\"systemPrompt\":null,"
		"\"temperature\":null,\"stopSequences\":null,\"tools\":null,\"toolChoice\":null,"
		"\"tool_choice\":null,\"metadata\":null,\"_meta\":null,\"includeContext\":null,"
		"\"modelPreferences\":null,\"task\":null}"));
	const struct sampling_request *q = &rig->request;
	assert_true(slice_absent(q->system) && slice_absent(q->temperature));
	assert_false(q->tools_present);
	assert_int_equal(q->tool_mode, TOOL_MODE_DEFAULT);
	assert_ok(rig_messages(
		rig,
		ASSISTANT(CALL(
			"c")) ",{\"role\":\"user\",\"content\":["
			      "{\"type\":\"tool_result\",\"toolUseId\":null,\"tool_use_id\":\"c\","
			      "\"content\":null,\"isError\":null,\"structuredContent\":null}]}",
		",\"modelPreferences\":{\"hints\":null,\"costPriority\":null}"));
	assert_false(rig->request.blocks[1].is_error);
	assert_true(slice_absent(rig->request.blocks[1].result.structured));
}

static void an_empty_system_prompt_is_none(void **state)
{
	struct rig *rig = *state;

	assert_ok(rig_messages(rig, USER_HI, ",\"systemPrompt\":\"\""));
	assert_true(slice_absent(rig->request.system));
}

static void max_tokens_is_an_integer_however_it_is_written(void **state)
{
	static const struct {
		const char *params;
		int64_t value;
	} rows[] = {
		{ "{\"messages\":[" USER_HI "],\"maxTokens\":100.0}", 100 },
		{ "{\"messages\":[" USER_HI "],\"maxTokens\":1e2}", 100 },
		{ "{\"messages\":[" USER_HI "],\"maxTokens\":9007199254740991}", 9007199254740991 },
		/* what no integer holds is clamped like what is only too much */
		{ "{\"messages\":[" USER_HI "],\"maxTokens\":9223372036854775808}", INT64_MAX },
		{ "{\"messages\":[" USER_HI "],\"maxTokens\":1e400}", INT64_MAX },
	};
	struct rig *rig = *state;

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		assert_ok(rig_params(rig, rows[i].params));
		assert_true(rig->request.max_tokens == rows[i].value);
	}
}

static void media_is_made_clean(void **state)
{
	static const struct {
		const char *name, *data, *mime, *clean, *type;
	} rows[] = {
		{ "as it is", "AAAA", "image/png", "AAAA", "image/png" },
		{ "padding", "+/+/QQ==", "image/png", "+/+/QQ==", "image/png" },
		{ "long", "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWZnaGk=", "image/webp",
		  "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWZnaGk=", "image/webp" },
		{ "jpg", "AAAA", "image/jpg", "AAAA", "image/jpeg" },
		{ "upper case and parameters", "AAAA", "Image/JPG; q=1", "AAAA", "image/jpeg" },
		{ "escaped slash", "AA\\/A", "image\\/png", "AA/A", "image/png" },
		{ "line breaks", "AAAA\\r\\nBBBB\\n", "image/png", "AAAABBBB", "image/png" },
		{ "data URI", "data:image/png;base64,AAAA", "image/png", "AAAA", "image/png" },
		{ "data URI, upper case", "DATA:image/png;BASE64,AAAA", "image/png", "AAAA",
		  "image/png" },
		{ "data URI with breaks", "data:image\\/png;base64,AA\\nAA", "image/png", "AAAA",
		  "image/png" },
	};
	struct rig *rig = *state;

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		char message[512];
		(void)snprintf(message, sizeof(message),
			       USER("{\"type\":\"image\",\"data\":\"%s\",\"mimeType\":\"%s\"}"),
			       rows[i].data, rows[i].mime);
		assert_ok(rig_messages(rig, message, ""));
		const struct block *block = rig->request.blocks;
		if (!slice_eq(block->media.data, slice_str(rows[i].clean)) ||
		    !slice_eq(block->media.mime, slice_str(rows[i].type)))
			fail_msg("%s: %.*s", rows[i].name, (int)block->media.data.len,
				 block->media.data.at);
		assert_int_equal(rig->request.images, 1);
	}
	assert_ok(rig_messages(
		rig, USER("{\"type\":\"audio\",\"data\":\"AAAA\",\"mimeType\":\"audio/wav\"}"),
		""));
	assert_int_equal(rig->request.audios, 1);
}

static void an_image_has_the_type_of_its_bytes(void **state)
{
	static const struct {
		const char *name, *data, *mime, *type;
	} rows[] = {
		{ "jpeg", "/9j/4AAQSkZJRgABAQAAAQABAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==", "image/png",
		  "image/jpeg" },
		{ "jpeg with exif", "\\/9j\\/4RiWRXhpZgAATU0AKgAAAAg=", "image/webp",
		  "image/jpeg" },
		{ "png", "iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB", "image/jpeg", "image/png" },
		{ "png and nothing behind", "iVBORw0KGgo=", "image/jpeg", "image/png" },
		{ "gif 89", "R0lGODlhAQABAIAAAAUEBAAAACwAAAAAAQABAAACAkQBADs=", "image/png",
		  "image/gif" },
		{ "gif 87", "R0lGODdhAQABAIAAAP///wAAACwAAAAA", "image/png", "image/gif" },
		{ "webp", "UklGRiQAAABXRUJQVlA4IBgAAAAwAQCdASoBAAEA", "image/jpeg", "image/webp" },
		{ "a type that no model takes", "iVBORw0KGgo=", "application/octet-stream",
		  "image/png" },
		{ "image/jpg", "iVBORw0KGgo=", "image/jpg", "image/png" },
		{ "a prefix that says the same", "data:image/png;base64,/9j/4AAQSkZJRgAB",
		  "image/png", "image/jpeg" },
		{ "right", "/9j/4AAQ", "image/jpeg", NULL },
		{ "right, as image/jpg", "/9j/4AAQ", "image/jpg", NULL },
		{ "unknown: a bitmap", "Qk0eAAAAAAAAABoAAAAMAAAA", "image/png", NULL },
		{ "a RIFF file that is none", "UklGRiQAAABXQVZFZm10IBAAAAABAAEA", "image/png",
		  NULL },
		{ "another RIFF", "UklGQiQAAABXRUJQVlA4IBgAAAAw", "image/png", NULL },
		{ "cut short", "UklGRiQAAABX", "image/png", NULL },
		{ "four bytes", "iVBORw==", "image/jpeg", NULL },
	};
	const adjust_set corrected = ADJUST_BIT(ADJUST_IMAGE_TYPE_CORRECTED);
	struct rig *rig = *state;

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const bool wrong = rows[i].type != NULL;
		char message[512];
		(void)snprintf(message, sizeof(message),
			       USER("{\"type\":\"image\",\"data\":\"%s\",\"mimeType\":\"%s\"}"),
			       rows[i].data, rows[i].mime);
		assert_ok(rig_messages(rig, message, ""));
		const struct slice mime = rig->request.blocks[0].media.mime;
		if (wrong && !slice_eq(mime, slice_str(rows[i].type)))
			fail_msg("%s: %.*s", rows[i].name, (int)mime.len, mime.at);
		if (rig->request.adjustments != (wrong ? corrected : 0))
			fail_msg("%s: it is %s corrected", rows[i].name, wrong ? "not" : "");
	}
	assert_ok(rig_messages(
		rig, USER("{\"type\":\"audio\",\"data\":\"/9j/4AAQ\",\"mimeType\":\"audio/wav\"}"),
		""));
	assert_true(rig->request.adjustments == 0);
}

static void a_tool_result_has_every_spelling(void **state)
{
	static const struct {
		const char *name, *block;
		uint32_t count;
		const char *text, *structured;
	} rows[] = {
		{ "array", "\"toolUseId\":\"c\",\"content\":[{\"type\":\"text\",\"text\":\"x\"}]",
		  1, "x", NULL },
		{ "string", "\"tool_use_id\":\"c\",\"content\":\"18\\u00b0\"", 1, "18\\u00b0",
		  NULL },
		{ "missing", "\"tool_call_id\":\"c\"", 0, NULL, NULL },
		{ "object", "\"toolUseId\":\"c\",\"content\":{ \"t\" : 72, \"s\":\"\\n\" }", 1,
		  "{\\\"t\\\":72,\\\"s\\\":\\\"\\\\n\\\"}", "{ \"t\" : 72, \"s\":\"\\n\" }" },
		{ "object beside structuredContent",
		  "\"toolUseId\":\"c\",\"structuredContent\":[1],\"content\":{\"t\":1}", 1,
		  "{\\\"t\\\":1}", "[1]" },
		{ "structured string", "\"toolUseId\":\"c\",\"structuredContent\":\"a\"", 0, NULL,
		  "\"a\"" },
		{ "structured false", "\"toolUseId\":\"c\",\"structuredContent\":false", 0, NULL,
		  "false" },
		{ "the final key wins", "\"tool_use_id\":\"no\",\"toolUseId\":\"c\"", 0, NULL,
		  NULL },
		{ "unknown members", "\"toolUseId\":\"c\",\"_meta\":{},\"text\":5,\"data\":[]", 0,
		  NULL, NULL },
	};
	static const char *const orders[] = { "{\"type\":\"tool_result\",%s}",
					      "{%s,\"type\":\"tool_result\"}" };
	struct rig *rig = *state;

	for (size_t i = 0; i < COUNT_OF(rows) * COUNT_OF(orders); i++) {
		const size_t row = i / COUNT_OF(orders);
		char block[256], messages[512];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		(void)snprintf(block, sizeof(block), orders[i % COUNT_OF(orders)], rows[row].block);
#pragma GCC diagnostic pop
		(void)snprintf(messages, sizeof(messages), ASSISTANT(CALL("c")) "," USER("%s"),
			       block);
		assert_ok(rig_messages(rig, messages, ""));
		const struct block *result = &rig->request.blocks[1];
		bool fine = result->type == BLOCK_TOOL_RESULT &&
			    slice_eq(result->result.id, SLICE("c")) &&
			    result->result.count == rows[row].count;
		if (fine && rows[row].text != NULL)
			fine = slice_eq(rig->request.inner[result->result.first].text.text,
					slice_str(rows[row].text));
		if (!fine || !slice_eq(result->result.structured, slice_str(rows[row].structured)))
			fail_msg("%s", rows[row].name);
	}
}

static void resources_are_read_inside_results(void **state)
{
	struct rig *rig = *state;

	assert_ok(rig_messages(
		rig,
		ASSISTANT(CALL("c")) "," USER(
			"{\"type\":\"tool_result\",\"toolUseId\":\"c\",\"content\":["
			"{\"type\":\"resource_link\",\"uri\":\"file:///a\",\"name\":\"a\"},"
			"{\"type\":\"resource\",\"resource\":{\"uri\":\"file:///"
			"b\",\"mimeType\":\"text/plain\","
			"\"text\":\"body\"}},"
			"{\"type\":\"resource\",\"resource\":{\"uri\":\"file:///"
			"c\",\"blob\":\"AA\\nAA\"}}]}"),
		""));
	const struct block *inner = rig->request.inner;
	assert_int_equal(rig->request.inner_count, 3);
	assert_slice(inner[0].link.uri, "file:///a");
	assert_slice(inner[0].link.name, "a");
	assert_true(slice_absent(inner[0].link.mime));
	assert_slice(inner[1].resource.mime, "text/plain");
	assert_slice(inner[1].resource.text, "body");
	assert_true(slice_absent(inner[1].resource.blob) && slice_absent(inner[2].resource.text));
	assert_slice(inner[2].resource.blob, "AAAA");
}

/* Both are optional, and servers write what they have: the whole loop would end with it. */
static void a_resource_may_have_any_type_and_be_empty(void **state)
{
	static const struct {
		const char *member, *mime; /* NULL: as if there was none */
	} rows[] = {
		{ "\"\"", NULL },
		{ "\"text\"", NULL },
		{ "\"*/*\"", NULL },
		{ "\"text/plain\\\"\"", NULL },
		{ "\"text/\\u0000\"", NULL },
		{ "null", NULL },
		{ "\"Text/CSV; header=present\"", "text/csv" },
	};
	static const char form[] = ASSISTANT(CALL("c")) "," USER(
		"{\"type\":\"tool_result\",\"toolUseId\":\"c\",\"content\":["
		"{\"type\":\"resource_link\",\"uri\":\"u\",\"name\":\"n\",\"mimeType\":%s},"
		"{\"type\":\"resource\",\"resource\":{\"uri\":\"u\",\"mimeType\":%s,"
		"\"blob\":\"%s\"}}]}");
	static const char *const blobs[] = { "", "\\n", "data:x/y;base64,", "AAAA" };
	struct rig *rig = *state;

	for (size_t i = 0; i < COUNT_OF(rows) * COUNT_OF(blobs); i++) {
		const char *member = rows[i / COUNT_OF(blobs)].member;
		const char *mime = rows[i / COUNT_OF(blobs)].mime;
		const char *blob = blobs[i % COUNT_OF(blobs)];
		char messages[1024];
		(void)snprintf(messages, sizeof(messages), form, member, member, blob);
		assert_ok(rig_messages(rig, messages, ""));
		const struct block *inner = rig->request.inner;
		const struct slice want = mime == NULL ? slice_of(NULL, 0) : slice_str(mime);
		if (!slice_eq(inner[0].link.mime, want) ||
		    !slice_eq(inner[1].resource.mime, want) ||
		    slice_absent(inner[0].link.mime) != (mime == NULL))
			fail_msg("%s", messages);
		assert_false(slice_absent(inner[1].resource.blob));
		assert_int_equal(inner[1].resource.blob.len, blob[0] == 'A' ? 4 : 0);
	}
}

/* Each is looked at by itself: what one is clean up to says nothing of the other. */
static void data_and_blob_may_stand_in_one_block(void **state)
{
	struct rig *rig = *state;

	assert_ok(rig_messages(
		rig,
		ASSISTANT(CALL("c")) "," USER(
			"{\"type\":\"tool_result\",\"toolUseId\":\"c\",\"content\":["
			"{\"type\":\"image\",\"data\":\"AA\\nAA\",\"blob\":\"AAAABBBB\","
			"\"mimeType\":\"image/png\"},"
			"{\"type\":\"image\",\"blob\":\"AA?\",\"data\":\"BBBB\","
			"\"mimeType\":\"image/png\"},"
			"{\"type\":\"resource\",\"resource\":{\"uri\":\"u\",\"blob\":\"CCCC\","
			"\"data\":\"DDDDDDDD\"}}]}"),
		""));
	const struct block *inner = rig->request.inner;
	assert_slice(inner[0].media.data, "AAAA");
	assert_slice(inner[1].media.data, "BBBB");
	assert_slice(inner[2].resource.blob, "CCCC");
}

static void the_input_of_a_call_may_be_a_string_that_holds_an_object(void **state)
{
	struct rig *rig = *state;

	assert_ok(rig_messages(
		rig,
		ASSISTANT("{\"type\":\"tool_use\",\"id\":\"c\",\"name\":\"f\",\"input\":"
			  "\" {\\\"a\\\": \\\"\\\\n\\\"} \"}") "," USER(RESULT("c")),
		""));
	assert_slice(rig->request.blocks[0].use.input, "{\"a\": \"\\n\"}");
}

static void tools_are_read_and_their_schema_stays_as_it_was(void **state)
{
	struct rig *rig = *state;

	assert_ok(rig_messages(
		rig, USER_HI,
		",\"tools\":[{\"name\":\"f\",\"title\":\"F\",\"description\":\"d\",\"inputSchema\":"
		"{ \"type\" : \"object\" ,\"properties\":{\"type\":{\"type\":\"string\"}}}},"
		"{\"inputSchema\":{\"type\":\"obj\\u0065ct\"},\"description\":null,\"name\":\"g\"}"
		"]"));
	const struct sampling_request *q = &rig->request;
	assert_true(q->tools_present);
	assert_int_equal(q->tool_count, 2);
	assert_slice(q->tools[0].description, "d");
	assert_slice(q->tools[0].schema,
		     "{ \"type\" : \"object\" ,\"properties\":{\"type\":{\"type\":\"string\"}}}");
	assert_true(slice_absent(q->tools[1].description));
	assert_ok(rig_messages(rig, USER_HI, ",\"tools\":[]"));
	assert_true(rig->request.tools_present);
	assert_int_equal(rig->request.tool_count, 0);
}

#define TOOLS ",\"tools\":[{\"name\":\"f\",\"inputSchema\":{\"type\":\"object\"}}]"

static void the_choice_has_every_spelling(void **state)
{
	static const struct {
		const char *more;
		enum tool_mode mode;
		bool no_parallel;
	} rows[] = {
		{ TOOLS, TOOL_MODE_DEFAULT, false },
		{ TOOLS ",\"toolChoice\":{}", TOOL_MODE_AUTO, false },
		{ TOOLS ",\"toolChoice\":{\"mode\":null}", TOOL_MODE_AUTO, false },
		{ TOOLS ",\"toolChoice\":{\"mode\":\"auto\"}", TOOL_MODE_AUTO, false },
		{ TOOLS ",\"toolChoice\":{\"mode\":\"required\"}", TOOL_MODE_REQUIRED, false },
		{ TOOLS ",\"toolChoice\":{\"mode\":\"any\"}", TOOL_MODE_REQUIRED, false },
		{ TOOLS ",\"toolChoice\":{\"mode\":\"none\"}", TOOL_MODE_NONE, false },
		{ TOOLS ",\"toolChoice\":\"required\"", TOOL_MODE_REQUIRED, false },
		{ TOOLS ",\"tool_choice\":\"none\"", TOOL_MODE_NONE, false },
		{ TOOLS
		  ",\"tool_choice\":{\"mode\":\"required\",\"disable_parallel_tool_use\":true}",
		  TOOL_MODE_REQUIRED, true },
		{ TOOLS
		  ",\"tool_choice\":{\"mode\":\"required\",\"disable_parallel_tool_use\":true},"
		  "\"toolChoice\":{\"mode\":\"none\"}",
		  TOOL_MODE_NONE, true },
		{ TOOLS ",\"tool_choice\":\"nonsense\",\"toolChoice\":\"auto\"", TOOL_MODE_AUTO,
		  false },
		{ TOOLS ",\"toolChoice\":{\"disable_parallel_tool_use\":false}", TOOL_MODE_AUTO,
		  false },
		{ ",\"toolChoice\":{\"mode\":\"none\"}", TOOL_MODE_NONE, false },
		{ ",\"toolChoice\":{\"mode\":\"auto\"}", TOOL_MODE_AUTO, false },
	};
	struct rig *rig = *state;

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		assert_ok(rig_messages(rig, USER_HI, rows[i].more));
		if (rig->request.tool_mode != rows[i].mode ||
		    rig->request.no_parallel != rows[i].no_parallel)
			fail_msg("%s: %d", rows[i].more, (int)rig->request.tool_mode);
	}
}

static void the_draft_never_asks_for_calls_in_parallel(void **state)
{
	struct rig *rig = *state;
	static const char body[] =
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"sampling/createMessage\",\"params\":{"
		"\"messages\":[" USER_HI "],\"maxTokens\":1" TOOLS "}}";

	assert_ok(rig_read(rig, slice_str(body), REVISION_SEP_1577_DRAFT));
	assert_true(rig->request.no_parallel);
	assert_ok(rig_read(rig, slice_str(body), REVISION_2025_11_25));
	assert_false(rig->request.no_parallel);
}

static void preferences_keep_order_skip_empty_hints_and_clamp(void **state)
{
	struct rig *rig = *state;

	assert_ok(rig_messages(
		rig, USER_HI,
		",\"modelPreferences\":{\"hints\":[{\"name\":\"sonnet\"},{},{\"name\":\"\"},"
		"{\"name\":null,\"x\":1},{\"name\":\"gpt\"}],\"costPriority\":0.3,"
		"\"speedPriority\":1,\"x\":1}"));
	const struct model_preferences *prefer = &rig->request.prefer;
	assert_int_equal(prefer->hint_count, 2);
	assert_slice(prefer->hints[0], "sonnet");
	assert_slice(prefer->hints[1], "gpt");
	assert_true(prefer->cost == 0.3 && prefer->speed == 1 && isnan(prefer->intelligence));
	assert_true(rig->request.adjustments == 0);
	assert_ok(rig_messages(rig, USER_HI,
			       ",\"modelPreferences\":{\"costPriority\":-0.1,\"speedPriority\":1e9,"
			       "\"intelligencePriority\":0}"));
	assert_true(prefer->cost == 0 && prefer->speed == 1 && prefer->intelligence == 0);
	assert_true(rig->request.adjustments == ADJUST_BIT(ADJUST_PRIORITY_CLAMPED));
}

static void metadata_gives_user_id_and_nothing_else(void **state)
{
	struct rig *rig = *state;

	assert_ok(rig_messages(rig, USER_HI, ",\"metadata\":{\"user_id\":\"u\\u0031\"}"));
	assert_slice(rig->request.user_id, "u\\u0031");
	assert_true(rig->request.adjustments == 0);
	assert_ok(rig_messages(rig, USER_HI, ",\"metadata\":{\"model\":\"x\",\"user_id\":5}"));
	assert_true(slice_absent(rig->request.user_id));
	assert_true(rig->request.adjustments == ADJUST_BIT(ADJUST_METADATA_DROPPED));
}

static void meta_gives_progress_token_and_exchange(void **state)
{
	static const struct {
		const char *more;
		const char *token;
		bool exchange;
	} rows[] = {
		{ ",\"_meta\":{}", NULL, false },
		{ ",\"_meta\":{\"progressToken\":0}", "0", false },
		{ ",\"_meta\":{\"progressToken\":1e2}", "1e2", false },
		{ ",\"_meta\":{\"progressToken\":\"\"}", "\"\"", false },
		{ ",\"_meta\":{\"progressToken\":\"a\\u0062\",\"x\":1}", "\"a\\u0062\"", false },
		{ ",\"_meta\":{\"progressToken\":null,\"sluice/exchange\":true}", NULL, true },
		{ ",\"_meta\":{\"sluice\\/exchange\":true}", NULL, true },
		{ ",\"_meta\":{\"sluice/exchange\":false}", NULL, false },
	};
	struct rig *rig = *state;

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		assert_ok(rig_messages(rig, USER_HI, rows[i].more));
		assert_true(slice_eq(rig->request.progress_token, slice_str(rows[i].token)));
		assert_int_equal(slice_absent(rig->request.progress_token), rows[i].token == NULL);
		assert_int_equal(rig->request.exchange_wanted, rows[i].exchange);
	}
}

static void include_context_is_accepted_and_ignored(void **state)
{
	struct rig *rig = *state;

	assert_ok(rig_messages(rig, USER_HI, ",\"includeContext\":\"none\""));
	assert_true(rig->request.adjustments == 0);
	assert_ok(rig_messages(rig, USER_HI, ",\"includeContext\":\"thisServer\""));
	assert_int_equal(rig->request.include_context, CONTEXT_THIS_SERVER);
	assert_true(rig->request.adjustments == ADJUST_BIT(ADJUST_CONTEXT_IGNORED));
}

static void results_in_neighbouring_messages_become_one(void **state)
{
	struct rig *rig = *state;

	assert_ok(
		rig_messages(rig,
			     USER_HI "," ASSISTANT(CALL("a") "," CALL("b") "," CALL("c")) "," USER(
				     RESULT("b")) "," USER(RESULT("a") "," RESULT("c")) "," USER_HI,
			     ""));
	const struct sampling_request *q = &rig->request;
	assert_int_equal(q->message_count, 4);
	assert_int_equal(q->messages[2].count, 3);
	assert_slice(q->blocks[q->messages[2].first].result.id, "b");
	assert_slice(q->blocks[q->messages[2].first + 2].result.id, "c");
	assert_int_equal(q->messages[3].count, 1);
	assert_true(q->adjustments == ADJUST_BIT(ADJUST_RESULTS_MERGED));
	assert_int_equal(q->tool_rounds, 0);
}

static void rounds_are_the_pairs_that_end_the_history(void **state)
{
#define ROUND(id) ASSISTANT(CALL(id)) "," USER(RESULT(id))
	static const struct {
		const char *messages;
		uint32_t rounds;
	} rows[] = {
		{ USER_HI, 0 },
		{ USER_HI "," ROUND("a"), 1 },
		{ USER_HI "," ROUND("a") "," ROUND("a") "," ROUND("b"), 3 },
		{ ROUND("a") "," USER_HI, 0 },
		{ ROUND("a") "," USER_HI "," ROUND("a") "," ROUND("b"), 2 },
		{ ROUND("a") "," ASSISTANT("{\"type\":\"text\",\"text\":\"so\"}") "," ROUND("b"),
		  1 },
		{ ASSISTANT("{\"type\":\"text\",\"text\":\"so\"}," CALL("a")) "," USER(RESULT("a")),
		  1 },
	};
	struct rig *rig = *state;

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		assert_ok(rig_messages(rig, rows[i].messages, ""));
		assert_int_equal(rig->request.tool_rounds, rows[i].rounds);
	}
}

static void other_methods_leave_the_request_alone(void **state)
{
	struct rig *rig = *state;
	struct sampling_request before;

	(void)memset(&rig->request, 0x5a, sizeof(rig->request));
	(void)memset(&before, 0x5a, sizeof(before));
	assert_ok(
		rig_read(rig,
			 SLICE("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":"
			       "{\"protocolVersion\":\"x\"}}"),
			 REVISION_2025_11_25));
	assert_int_equal(rig->rpc.method, RPC_INITIALIZE);
	assert_slice(rig->rpc.params, "{\"protocolVersion\":\"x\"}");
	assert_memory_equal(&rig->request, &before, sizeof(before));
}

static void revisions_are_found_by_their_names_only(void **state)
{
	enum revision found = REVISION_2025_11_25;

	(void)state;
	for (int i = 0; i < REVISION_COUNT; i++) {
		assert_true(revision_find(slice_str(revision_name((enum revision)i)), &found));
		assert_int_equal(found, i);
	}
	assert_false(revision_find(SLICE("2025-11-2"), &found));
	assert_false(revision_find(SLICE("2027-01-01"), &found));
	assert_false(revision_find(slice_str(NULL), &found));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(a_plain_request_is_read),
		rig_test(members_may_come_in_any_order_at_every_level),
		rig_test(keys_and_names_may_be_escaped),
		rig_test(null_counts_as_missing_where_a_member_is_optional),
		rig_test(an_empty_system_prompt_is_none),
		rig_test(max_tokens_is_an_integer_however_it_is_written),
		rig_test(media_is_made_clean),
		rig_test(an_image_has_the_type_of_its_bytes),
		rig_test(a_tool_result_has_every_spelling),
		rig_test(resources_are_read_inside_results),
		rig_test(a_resource_may_have_any_type_and_be_empty),
		rig_test(data_and_blob_may_stand_in_one_block),
		rig_test(the_input_of_a_call_may_be_a_string_that_holds_an_object),
		rig_test(tools_are_read_and_their_schema_stays_as_it_was),
		rig_test(the_choice_has_every_spelling),
		rig_test(the_draft_never_asks_for_calls_in_parallel),
		rig_test(preferences_keep_order_skip_empty_hints_and_clamp),
		rig_test(metadata_gives_user_id_and_nothing_else),
		rig_test(meta_gives_progress_token_and_exchange),
		rig_test(include_context_is_accepted_and_ignored),
		rig_test(results_in_neighbouring_messages_become_one),
		rig_test(rounds_are_the_pairs_that_end_the_history),
		rig_test(other_methods_leave_the_request_alone),
		rig_test(revisions_are_found_by_their_names_only),
	};
	return cmocka_run_group_tests_name("sampling", tests, NULL, NULL);
}
