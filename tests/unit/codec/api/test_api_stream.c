/* A provider's stream and its JSON answers are passed on as they came, but for what the gateway changes. */
#include "codec/api/api_answer.h"
#include "codec/api/api_stream.h"

#include "tests/support/golden_set.h"
#include "tests/unit/codec/api/api_rig.h"

#define ASKED "\"asked/m\""

/* A stream that was fed in reads of one size. */
struct relay {
	struct arena_pool pool;
	struct arena arena;
	struct api_stream stream;
	char *out;
	size_t len, size;
	enum api_stream_got end; /* NOTHING: the stream is not over */
};

static void relay_take(struct relay *relay)
{
	struct slice piece = { NULL, 0 };
	enum api_stream_got got;

	while ((got = api_stream_next(&relay->stream, &piece)) == API_STREAM_PIECE ||
	       got == API_STREAM_END) {
		assert_int_not_equal(piece.len, 0);
		assert_true(relay->len + piece.len < relay->size);
		(void)memcpy(relay->out + relay->len, piece.at, piece.len);
		relay->len += piece.len;
		if (got == API_STREAM_END)
			break;
	}
	if (got != API_STREAM_NOTHING)
		relay->end = got;
}

/* Each read has memory of its own, of exactly its size, which is gone afterwards. */
static void relay_feed(struct relay *relay, struct slice in, size_t step)
{
	for (size_t at = 0; at < in.len; at += step) {
		const size_t len = in.len - at < step ? in.len - at : step;
		char *bytes = malloc(len);
		assert_non_null(bytes);
		(void)memcpy(bytes, in.at + at, len);
		api_stream_feed(&relay->stream, slice_of(bytes, len));
		relay_take(relay);
		free(bytes);
	}
}

static void relay_begin(struct relay *relay, enum api api, struct slice model, bool usage_asked,
			size_t event_bytes_max, size_t size)
{
	*relay = (struct relay){ .pool = { .keep_max = 4 },
				 .out = malloc(size),
				 .size = size,
				 .end = API_STREAM_NOTHING };
	assert_non_null(relay->out);
	arena_init(&relay->arena, &relay->pool, 1 << 24);
	api_stream_init(&relay->stream, api, model, usage_asked, event_bytes_max, &relay->arena);
}

static void relay_end(struct relay *relay)
{
	free(relay->out);
	arena_give(&relay->arena);
	arena_pool_fini(&relay->pool);
}

#define START(model)                                                                 \
	"event: message_start\ndata: "                                               \
	"{\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"model\":" model \
	",\"content\":[]}}\n\n"
#define DELTA                                                                               \
	"event: content_block_delta\ndata: "                                                \
	"{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\"," \
	"\"text\":\"\xe2\x80\xa8 model\"}}\n\n"
#define STOPPED                                                                            \
	"event: message_delta\ndata: "                                                     \
	"{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{" \
	"\"output_tokens\":12345678901234567890}}\n\n"
#define STOP "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
#define CHUNK(model, rest)                     \
	"data: {\"id\":\"c\",\"model\":" model \
	",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"}" rest "}]}\n\n"
#define FINISH ",\"finish_reason\":\"stop\""
#define END_OF(index) \
	"data: {\"choices\":[{\"index\":" index ",\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
#define USAGE "data: {\"id\":\"c\",\"choices\":[],\"usage\":{\"total_tokens\":3}}\n\n"
#define DONE "data: [DONE]\n\n"

static const struct stream_row {
	const char *name;
	enum api api;
	bool usage_asked;
	const char *in, *out;
	enum api_stream_got end;
} stream_rows[] = {
	{ "a stream of Messages", API_MESSAGES, false, START("\"p\"") DELTA STOPPED STOP,
	  START(ASKED) DELTA STOPPED STOP, API_STREAM_END },
	{ "unknown events, comments, ids and pings", API_MESSAGES, false,
	  ": hi\n\nid: 7\nretry: 1\n\n" START(
		  "\"p\"") "event: new_thing\nid: 8\ndata: {\"model\":\"p\"}\n\n"
			   "event: ping\ndata: {}\n\n" STOPPED STOP,
	  ": hi\n\nid: 7\nretry: 1\n\n" START(
		  ASKED) "event: new_thing\nid: 8\ndata: {\"model\":\"p\"}\n\n"
			 "event: ping\ndata: {}\n\n" STOPPED STOP,
	  API_STREAM_END },
	{ "events without a name", API_MESSAGES, false,
	  "data: {\"type\":\"message_start\",\"message\":{\"model\":\"p\"}}\n\ndata: "
	  "{\"type\":\"message_delta\"}\n\n"
	  "data: {\"type\":\"message_stop\"}\n\n",
	  "data: {\"type\":\"message_start\",\"message\":{\"model\":" ASKED
	  "}}\n\ndata: {\"type\":\"message_delta\"}\n\n"
	  "data: {\"type\":\"message_stop\"}\n\n",
	  API_STREAM_END },
	{ "every kind of line end", API_MESSAGES, false,
	  "event: message_start\r\ndata: {\"message\":{\"model\":\"p\"}}\r\n\r\nevent: "
	  "message_delta\rdata: {}\r\r" STOP,
	  "event: message_start\r\ndata: {\"message\":{\"model\":" ASKED
	  "}}\r\n\r\nevent: message_delta\rdata: {}\r\r" STOP,
	  API_STREAM_END },
	{ "data in several lines", API_MESSAGES, false,
	  "data: {\"message\":\nevent: message_start\ndata:{\"x\":1,\r\n: c\ndata\ndata: "
	  "\"model\": \"p\"}\ndata:}\n\n" STOPPED STOP,
	  "data: {\"message\":\nevent: message_start\ndata:{\"x\":1,\r\n: c\ndata\ndata: "
	  "\"model\": " ASKED "}\ndata:}\n\n" STOPPED STOP,
	  API_STREAM_END },
	{ "no model, or none that is a string", API_MESSAGES, false,
	  "event: message_start\ndata: {\"message\":{\"model\":null}}\n\nevent: "
	  "message_start\ndata: {\"message\":7}\n\n"
	  "event: message_start\ndata: {\"message\":{\"model\":\"p\n\n",
	  "event: message_start\ndata: {\"message\":{\"model\":null}}\n\nevent: "
	  "message_start\ndata: {\"message\":7}\n\n"
	  "event: message_start\ndata: {\"message\":{\"model\":\"p\n\n",
	  API_STREAM_NOTHING },
	{ "an error in the middle", API_MESSAGES, false,
	  START("\"p\"") DELTA
	  "event: error\ndata: {\"type\":\"error\",\"error\":{\"message\":\"org-1\"}}\n\n" STOPPED
		  STOP,
	  START(ASKED) DELTA, API_STREAM_ERROR },
	{ "an end without a reason", API_MESSAGES, false, START("\"p\"") DELTA STOP,
	  START(ASKED) DELTA, API_STREAM_BROKEN },
	{ "nothing behind the end", API_MESSAGES, false, START("\"p\"") STOPPED STOP DELTA,
	  START(ASKED) STOPPED STOP, API_STREAM_END },
	{ "a stream that is cut", API_MESSAGES, false,
	  START("\"p\"") DELTA "event: ping\ndata: {}\n", START(ASKED) DELTA, API_STREAM_NOTHING },
	{ "a byte order mark", API_MESSAGES, false, "\xef\xbb\xbf" START("\"p\"") STOPPED STOP,
	  "\xef\xbb\xbf" START(ASKED) STOPPED STOP, API_STREAM_END },

	{ "a stream of Chat", API_CHAT, false,
	  CHUNK("\"p\"", "") ": ping\n\n" CHUNK("\"p\"", FINISH) USAGE DONE,
	  CHUNK(ASKED, "") ": ping\n\n" CHUNK(ASKED, FINISH) DONE, API_STREAM_END },
	{ "its usage, asked for", API_CHAT, true, CHUNK("\"p\"", FINISH) USAGE DONE,
	  CHUNK(ASKED, FINISH) USAGE DONE, API_STREAM_END },
	{ "usage beside choices stays", API_CHAT, false,
	  "data: "
	  "{\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":{\"a\":1.50},"
	  "\"model\":\"p\"}\n\n" DONE,
	  "data: "
	  "{\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":{\"a\":1.50},"
	  "\"model\":" ASKED "}\n\n" DONE,
	  API_STREAM_END },
	{ "usage without choices", API_CHAT, false,
	  "data: {\"usage\":{}}\r\n\r\n" CHUNK("\"p\"", FINISH) DONE, CHUNK(ASKED, FINISH) DONE,
	  API_STREAM_END },
	{ "unknown events", API_CHAT, false,
	  "event: x\ndata: {\"y\":1}\n\ndata: 7\n\ndata: {\"choices\":3}\n\ndata: "
	  "{\"choices\":[\n\n",
	  "event: x\ndata: {\"y\":1}\n\ndata: 7\n\ndata: {\"choices\":3}\n\ndata: "
	  "{\"choices\":[\n\n",
	  API_STREAM_NOTHING },
	{ "what Azure sends", API_CHAT, true,
	  "data: {\"choices\":[],\"model\":\"\",\"prompt_filter_results\":[{}]}\n\n" CHUNK(
		  "\"p\"", FINISH) "data: "
				   "{\"choices\":[{\"index\":0,\"finish_reason\":null},{},{"
				   "\"delta\":null}]}\n\n" USAGE DONE,
	  CHUNK(ASKED,
		FINISH) "data: {\"choices\":[{\"delta\":{},\"index\":0,\"finish_reason\":null},"
			"{\"delta\":{}},{\"delta\":null}]}\n\n" USAGE DONE,
	  API_STREAM_END },
	{ "an error in the middle of Chat", API_CHAT, false,
	  CHUNK("\"p\"", "") "data: {\"error\":{\"message\":\"x\"},\"choices\":[]}\n\n" DONE,
	  CHUNK(ASKED, ""), API_STREAM_ERROR },
	{ "no error", API_CHAT, false, "data: {\"error\":null,\"choices\":[{\"delta\":{}}]}\n\n",
	  "data: {\"error\":null,\"choices\":[{\"delta\":{}}]}\n\n", API_STREAM_NOTHING },
	{ "[DONE] without a reason", API_CHAT, false, CHUNK("\"p\"", "") DONE, CHUNK(ASKED, ""),
	  API_STREAM_BROKEN },
	{ "the asked name", API_CHAT, false, CHUNK(ASKED, FINISH) DONE, CHUNK(ASKED, FINISH) DONE,
	  API_STREAM_END },
	{ "a model in several lines", API_CHAT, false,
	  "data: {\"choices\":[{\"index\":1}],\ndata: \"mod\\u0065l\":\"p\"}\n\n",
	  "data: {\"choices\":[{\"delta\":{},\"index\":1}],\ndata: \"mod\\u0065l\":" ASKED "}\n\n",
	  API_STREAM_NOTHING },
};

static void a_stream_passes_however_it_is_cut(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(stream_rows); i++) {
		const struct stream_row *row = &stream_rows[i];
		const struct slice in = slice_str(row->in);
		for (size_t step = 1; step <= in.len; step++) {
			struct relay relay;
			relay_begin(&relay, row->api, SLICE(ASKED), row->usage_asked, 1 << 16,
				    2 * in.len + 64);
			relay_feed(&relay, in, step);
			const struct slice out = slice_of(relay.out, relay.len);
			if (!slice_eq(out, slice_str(row->out)))
				fail_msg("%s, reads of %zu: %.*s", row->name, step, (int)out.len,
					 out.at);
			if (relay.end != row->end)
				fail_msg("%s, reads of %zu: ends with %d", row->name, step,
					 (int)relay.end);
			assert_int_equal(api_stream_is_over(&relay.stream),
					 row->end != API_STREAM_NOTHING);
			relay_end(&relay);
		}
	}
}

static void several_answers_end_when_all_of_them_have(void **state)
{
	static const struct {
		const char *in;
		enum api_stream_got end;
	} rows[] = {
		{ END_OF("0") END_OF("1") DONE, API_STREAM_END },
		{ END_OF("1") END_OF("0") DONE, API_STREAM_END },
		{ "data: {\"choices\":[{\"index\":0,\"finish_reason\":\"stop\"}, "
		  "{\"finish_reason\":\"length\",\"index\":1}]}\n\n" DONE,
		  API_STREAM_END },
		{ END_OF("0") DONE, API_STREAM_BROKEN },
		{ END_OF("0") END_OF("0") DONE, API_STREAM_BROKEN },
		{ END_OF("0") END_OF("-1") DONE, API_STREAM_BROKEN },
		{ END_OF("0") END_OF("99") DONE, API_STREAM_BROKEN },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct relay relay;
		relay_begin(&relay, API_CHAT, SLICE(ASKED), false, 1 << 16, 4096);
		relay.stream.choices = 2;
		relay_feed(&relay, slice_str(rows[i].in), 5);
		if (relay.end != rows[i].end)
			fail_msg("%s: ends with %d", rows[i].in, (int)relay.end);
		assert_int_equal(api_stream_has_reason(&relay.stream),
				 rows[i].end == API_STREAM_END);
		relay_end(&relay);
	}
}

static void events_are_bounded(void **state)
{
	enum { MOST = 5000 };
	char *event = malloc(2 * MOST);
	struct relay relay;

	(void)state;
	assert_non_null(event);
	(void)memset(event, 'x', 2 * MOST);
	(void)memcpy(event, "data: ", 6);
	relay_begin(&relay, API_CHAT, SLICE(ASKED), false, MOST, 4 * MOST);
	relay_feed(&relay, slice_of(event, MOST - 2), 100);
	relay_feed(&relay, SLICE("\n\n"), 1);
	assert_int_equal(relay.end, API_STREAM_NOTHING);
	assert_int_equal(relay.len, MOST);
	relay_feed(&relay, slice_of(event, MOST + 1), 100);
	assert_int_equal(relay.end, API_STREAM_FULL);
	relay_feed(&relay, SLICE("\n\n" DONE), 4);
	assert_int_equal(relay.len, MOST);
	relay_end(&relay);
	/* as many lines of data as there may be */
	relay_begin(&relay, API_CHAT, SLICE(ASKED), false, MOST, 4 * MOST);
	for (size_t i = 0; i < 2 * MOST; i += 8)
		(void)memcpy(event + i, "data: 1\n", 8);
	relay_feed(&relay, slice_of(event, MOST - 8), 100);
	relay_feed(&relay, SLICE("\n"), 1);
	assert_int_equal(relay.end, API_STREAM_NOTHING);
	assert_int_equal(relay.len, MOST - 7);
	relay_end(&relay);
	free(event);
}

static void memory_that_is_exhausted_ends_it(void **state)
{
	struct relay relay;

	(void)state;
	relay_begin(&relay, API_CHAT, SLICE(ASKED), false, 1 << 16, 4096);
	relay.pool.fail_next = 1;
	relay_feed(&relay, SLICE(CHUNK("\"p\"", "")), 7);
	assert_int_equal(relay.end, API_STREAM_FULL);
	assert_int_equal(relay.len, 0);
	relay_end(&relay);
}

/* Without the line feed that belongs to a carriage return at the very end: a read may have cut it off. */
static struct slice out_of(const struct relay *relay)
{
	const struct slice out = slice_of(relay->out, relay->len);

	return out.len > 1 && memcmp(out.at + out.len - 2, "\r\n", 2) == 0
		       ? slice_of(out.at, out.len - 1)
		       : out;
}

/* What is known of streams of both formats: nothing is lost, and what the caller's own reader sees is the same. */
static void golden_streams_pass(void **state)
{
	struct golden_set set = { 0 };
	size_t streams = 0;

	(void)state;
	golden_load(&set);
	for (size_t i = 0; i < set.count; i++) {
		const struct vector *vector = &set.vectors[i];
		if (!vector->streamed || vector->dialect == DIALECT_RESPONSES)
			continue;
		const struct slice in = json_tree_string(vector->tree, "in");
		if (slice_absent(in))
			continue;
		struct relay whole, cut;
		const enum api api = vector->dialect == DIALECT_OPENAI ? API_CHAT : API_MESSAGES;
		relay_begin(&whole, api, SLICE(ASKED), true, 1 << 20, 2 * in.len + 64);
		relay_feed(&whole, in, in.len == 0 ? 1 : in.len);
		for (size_t step = 1; step <= 64; step += step < 8 ? 1 : 7) {
			relay_begin(&cut, api, SLICE(ASKED), true, 1 << 20, 2 * in.len + 64);
			relay_feed(&cut, in, step);
			if (cut.end != whole.end || !slice_eq(out_of(&cut), out_of(&whole)))
				fail_msg("%s: reads of %zu differ", vector->name, step);
			relay_end(&cut);
		}
		relay_end(&whole);
		free((void *)(uintptr_t)in.at);
		streams++;
	}
	golden_free(&set);
	assert_true(streams > 30);
}

/* ---- JSON ---- */

static void an_answer_has_the_callers_name_of_the_model(void **state)
{
	static const char message[] = " {\"id\":\"msg_1\",\"content\":[{\"model\":\"x\"}],"
				      "\"mod\\u0065l\" : \"p\",\"stop_reason\":\"end_turn\","
				      "\"usage\":{\"output_tokens\":12345678901234567890}}\n";
	struct arena_pool pool = { .keep_max = 4 };
	struct api_answer answer;
	struct mcp_edits edits;
	struct arena arena;

	(void)state;
	arena_init(&arena, &pool, 1 << 16);
	assert_true(api_answer_read(API_MESSAGES, slice_str(message), &answer));
	assert_slice(answer.id, "\"msg_1\"");
	assert_slice(answer.stop, "\"end_turn\"");
	assert_slice(answer.usage, "{\"output_tokens\":12345678901234567890}");
	mcp_edits_init(&edits, slice_str(message), &arena);
	api_answer_edit(answer.model, SLICE(ASKED), &edits);
	assert_slice(mcp_edits_flat(&edits, &arena),
		     " {\"id\":\"msg_1\",\"content\":[{\"model\":\"x\"}],\"mod\\u0065l\" : " ASKED
		     ",\"stop_reason\":\"end_turn\",\"usage\":{\"output_tokens\":"
		     "12345678901234567890}}\n");

	/* where its reader has found it, or where it is looked for */
	const struct slice told = slice_of(answer.model.at + 1, answer.model.len - 2);
	assert_ptr_equal(api_answer_model(API_MESSAGES, slice_str(message), told).at,
			 answer.model.at);
	assert_slice(api_answer_model(API_MESSAGES, slice_str(message), SLICE("p")), "\"p\"");
	assert_slice(api_answer_model(API_MESSAGES, slice_str(message), slice_of(NULL, 0)),
		     "\"p\"");
	assert_true(slice_absent(api_answer_model(API_CHAT, SLICE("{\"id\":1}"), SLICE("p"))));

	assert_true(api_answer_read(API_CHAT,
				    SLICE("{\"choices\":[{\"finish_reason\":null},{\"finish_"
					  "reason\":\"length\"}],\"stop_reason\":1}"),
				    &answer));
	assert_int_equal(answer.choices, 2);
	assert_slice(answer.stop, "\"length\"");
	assert_true(slice_absent(answer.model));
	mcp_edits_init(&edits, answer.object, &arena);
	api_answer_edit(answer.model, SLICE(ASKED), &edits);
	assert_int_equal(edits.count, 0);

	assert_true(api_answer_read(API_COUNT, SLICE("{\"input_tokens\":12}"), &answer));
	assert_slice(answer.input_tokens, "12");
	assert_true(api_answer_read(API_CHAT, SLICE("{\"error\":{\"message\":\"x\"}}"), &answer));
	assert_slice(answer.error, "{\"message\":\"x\"}");
	assert_false(api_answer_read(API_CHAT, SLICE("[]"), &answer));
	assert_false(api_answer_read(API_CHAT, SLICE("{\"model\":\"p\"} x"), &answer));
	assert_false(api_answer_read(API_CHAT, SLICE("{\"model\" \"p\"}"), &answer));
	assert_true(slice_absent(answer.model));
	arena_give(&arena);
	arena_pool_fini(&pool);
}

static void a_count_is_never_0(void **state)
{
	struct arena_pool pool = { .keep_max = 4 };
	struct arena arena;
	struct gather g;

	(void)state;
	arena_init(&arena, &pool, 1 << 16);
	gather_init(&g, &arena);
	api_count_write(&g, 0);
	api_count_write(&g, 77);
	assert_int_equal(gather_done(&g), ERR_OK);
	assert_slice(gather_flat(&g, &arena), "{\"input_tokens\":1}{\"input_tokens\":77}");
	arena_give(&arena);
	arena_pool_fini(&pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stream_passes_however_it_is_cut),
		cmocka_unit_test(several_answers_end_when_all_of_them_have),
		cmocka_unit_test(events_are_bounded),
		cmocka_unit_test(memory_that_is_exhausted_ends_it),
		cmocka_unit_test(golden_streams_pass),
		cmocka_unit_test(an_answer_has_the_callers_name_of_the_model),
		cmocka_unit_test(a_count_is_never_0),
	};

	return cmocka_run_group_tests_name("api_stream", tests, NULL, NULL);
}
