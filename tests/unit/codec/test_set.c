/* Every instruction set gives the same answer to every text: those of the other tests, and texts made
 * here, in which each place of a 64-byte block is hit by everything that ends plain text. */
#include "codec/dialects.h"
#include "codec/set.h"

#include "tests/unit/codec/json/json_rig.h"

/* Whether the text is valid, about which all sets agree. */
static bool agree(struct slice text)
{
	return judge(text, NULL) == ERR_OK;
}

static uint32_t chance(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

/* What stands between plain bytes in the strings made here; not all of it is allowed there. */
static const struct slice pieces[] = {
	SLICE_INIT("\\n"),
	SLICE_INIT("\\\\"),
	SLICE_INIT("\\\""),
	SLICE_INIT("\\u00e9"),
	SLICE_INIT("\\ud83d\\ude00"),
	SLICE_INIT("\\ud83d"),
	SLICE_INIT("\\ude00"),
	SLICE_INIT("\\x"),
	SLICE_INIT("\\u12g4"),
	SLICE_INIT("\\"),
	SLICE_INIT("\""),
	SLICE_INIT("\x01"),
	SLICE_INIT("\x1f"),
	SLICE_INIT("\x7f"),
	SLICE_INIT("\xc3\xa9"),
	SLICE_INIT("\xe6\xa8\xa1"),
	SLICE_INIT("\xf0\x9f\x9a\x80"),
	SLICE_INIT("\xc3"),
	SLICE_INIT("\xa9"),
	SLICE_INIT("\xe6\xa8"),
	SLICE_INIT("\xf0\x9f\x9a"),
	SLICE_INIT("\xc0\x80"),
	SLICE_INIT("\xe0\x80\x80"),
	SLICE_INIT("\xed\xa0\x80"),
	SLICE_INIT("\xf0\x80\x80\x80"),
	SLICE_INIT("\xf4\x90\x80\x80"),
	SLICE_INIT("\xf5\x80\x80\x80"),
	SLICE_INIT("\xff"),
	SLICE_INIT("\\\\\\\""),
	SLICE_INIT("\\\\\\\\"),
};
enum { TEXT_MAX = 1024 };

static size_t put(char *text, size_t len, struct slice piece)
{
	(void)memcpy(text + len, piece.at, piece.len);
	return len + piece.len;
}

static size_t put_plain(char *text, size_t len, size_t count)
{
	(void)memset(text + len, 'x', count);
	return len + count;
}

static void every_piece_at_every_place_of_a_block_is_judged_alike(void **state)
{
	char text[TEXT_MAX];

	(void)state;
	for (size_t p = 0; p < COUNT_OF(pieces); p++)
		for (size_t before = 0; before < 140; before++)
			for (size_t after = 0; after < 150; after += after < 3 ? 1 : 73) {
				size_t len = put(text, 0, SLICE("[\""));
				len = put_plain(text, len, before);
				len = put(text, len, pieces[p]);
				len = put_plain(text, len, after);
				len = put(text, len, SLICE("\"]"));
				(void)agree(slice_of(text, len));
			}
}

/* Blocks are judged in two ways, by how simple the text is (json_string.c): behind either. */
static void every_piece_behind_a_long_dense_text_is_judged_alike(void **state)
{
	enum { RUN = 256, ROUND = 140 };
	static const struct slice dense[] = {
		SLICE_INIT("\\txxxxx\xc3\xa9xxxx"),
		SLICE_INIT("\\txxx\\\"xxxx"),
		SLICE_INIT("\\\\xxxx\\nxxxx"),
	};
	char text[TEXT_MAX];

	(void)state;
	for (size_t d = 0; d < COUNT_OF(dense); d++)
		for (size_t p = 0; p < COUNT_OF(pieces); p++)
			for (size_t before = RUN; before < RUN + ROUND; before++) {
				size_t len = put(text, 0, SLICE("[\""));
				while (len < before)
					len = put(text, len, dense[d]);
				len = put(text, before,
					  pieces[p]); /* perhaps inside the last one */
				len = put_plain(text, len, ROUND);
				len = put(text, len, SLICE("\"]"));
				(void)agree(slice_of(text, len));
			}
}

/* Whether the last of them escapes hangs on how many there are, in this block and in the one before; and a
 * string may be the whole text, with nothing in front of its quote. */
static void runs_of_backslashes_at_every_place_are_judged_alike(void **state)
{
	static const struct slice fronts[] = { SLICE_INIT("\""), SLICE_INIT("\"\\n"),
					       SLICE_INIT("\"\xc3\xa9"), SLICE_INIT("[\"\\n\\\\") };
	static const struct slice behind[] = { SLICE_INIT("\""),       SLICE_INIT("n"),
					       SLICE_INIT("x"),        SLICE_INIT("\"x\\\""),
					       SLICE_INIT("\xc3\xa9"), SLICE_INIT("b"),
					       SLICE_INIT("u00e9") };
	char text[TEXT_MAX];
	bool accepted = false, refused = false;

	(void)state;
	for (size_t f = 0; f < COUNT_OF(fronts); f++)
		for (size_t before = 0; before < 140; before++)
			for (size_t count = 1; count < 80; count += count == 5 ? 56 : 1)
				for (size_t b = 0; b < COUNT_OF(behind); b++) {
					size_t len = put(text, 0, fronts[f]);
					len = put_plain(text, len, before);
					(void)memset(text + len, '\\', count);
					len = put(text, len + count, behind[b]);
					len = put_plain(text, len, count % 2 == 0 ? 0 : 150);
					len = put(text, len,
						  fronts[f].at[0] == '[' ? SLICE("\"]")
									 : SLICE("\""));
					*(agree(slice_of(text, len)) ? &accepted : &refused) = true;
				}
	assert_true(accepted && refused);
}

/* A string of up to 40 pieces, dense or not; bad ones one time in `bad`, never if 0. */
static size_t put_string(char *text, size_t len, uint32_t *seed, uint32_t bad)
{
	static const uint32_t good[] = { 0, 1, 2, 3, 4, 13, 14, 15, 16, 28, 29 };
	uint32_t count = chance(seed) % 40, plain = chance(seed) % 3 == 0 ? 1 : 12;

	len = put(text, len, SLICE("\""));
	for (uint32_t i = 0; i < count; i++) {
		bool wrong = bad != 0 && chance(seed) % bad == 0;
		size_t piece = wrong ? chance(seed) % COUNT_OF(pieces)
				     : good[chance(seed) % COUNT_OF(good)];
		len = put_plain(text, len, chance(seed) % plain);
		if (piece != 28) /* its quote is open */
			len = put(text, len, pieces[piece]);
	}
	return put(text, len, SLICE("\""));
}

static void strings_of_many_pieces_are_judged_alike(void **state)
{
	enum { ROUNDS = 20000 };
	char text[TEXT_MAX];
	uint32_t seed = 7, valid = 0;

	(void)state;
	for (uint32_t i = 0; i < ROUNDS; i++) {
		size_t len = put(text, 0, SLICE("{\"k\":"));
		len = put_string(text, len, &seed, i % 2 == 0 ? 0 : 60);
		len = put(text, len, SLICE("}"));
		bool fine = agree(slice_of(text, len));
		assert_true(fine || i % 2 != 0);
		valid += fine;
	}
	assert_in_range(valid, ROUNDS / 2, ROUNDS - 1);
}

static const struct slice texts[] = {
	SLICE_INIT(
		"{\"type\":\"object\",\"properties\":{\"query\":{\"type\":\"string\","
		"\"description\":"
		"\"what to look for\",\"minLength\":1,\"maxLength\":512},\"limit\":{\"type\":"
		"\"integer\",\"minimum\":-1.5e+3,\"default\":20},\"labels\":{\"type\":\"array\","
		"\"items\":{\"type\":\"string\"},\"uniqueItems\":true}},\"required\":[\"query\"],"
		"\"additionalProperties\":false,\"a longer key than sixteen bytes\":null}"),
	SLICE_INIT(
		"{\n  \"a\" : [ 1 , 2.25,\t-0.5e-7, true , false,null ],\r\n\n        \"b\"  :  {  "
		"}, \"c\\u0041\" : \"\\\"\", \"cB\": [[[[[]]]]], \"\xc3\xa9\":\"\xe6\xa8\xa1\" } "
		" "),
	SLICE_INIT("[{\"a\":1,\"b\":2,\"c\":3,\"d\":4,\"e\":5,\"f\":6,\"g\":7,\"h\":8,\"i\":9,"
		   "\"j\":10,"
		   "\"k\":11,\"l\":12,\"m\":13,\"n\":14,\"o\":15,\"p\":16,\"q\":17,\"r\":18},"
		   "{\"\":0,\"a\":0,\"aa\":0,\"aaaaaaa\":0,\"aaaaaaaa\":0,\"aaaaaaaaa\":0}]"),
};

static void a_text_with_one_byte_changed_is_judged_alike(void **state)
{
	static const char bytes[] = "\"\\{}[],:0-.eEtfn a\n\x01\x80\xc3\xff";
	char text[TEXT_MAX];

	(void)state;
	for (size_t t = 0; t < COUNT_OF(texts); t++)
		for (size_t at = 0; at < texts[t].len; at++)
			for (size_t b = 0; b < sizeof(bytes) - 1; b++) {
				(void)put(text, 0, texts[t]);
				text[at] = bytes[b];
				(void)agree(slice_of(text, texts[t].len));
			}
}

static void every_front_and_rear_of_a_text_is_judged_alike(void **state)
{
	(void)state;
	for (size_t t = 0; t < COUNT_OF(texts); t++)
		for (size_t cut = 0; cut <= texts[t].len; cut++) {
			bool front = agree(slice_of(texts[t].at, cut));
			assert_true(front == (cut == texts[t].len) || texts[t].at[cut] == ' ');
			(void)agree(slice_of(texts[t].at + cut, texts[t].len - cut));
		}
}

/* An object with white space between its tokens, members of many pieces, and none of them twice. */
static size_t put_object(char *text, size_t len, uint32_t *seed)
{
	static const struct slice gaps[] = { SLICE_INIT(""), SLICE_INIT(" "), SLICE_INIT("\n\t"),
					     SLICE_INIT("\r\n    ") };
	const uint32_t members = 1 + chance(seed) % 30;

	len = put(text, len, SLICE("{"));
	for (uint32_t i = 0; i < members; i++) {
		len = put(text, len, gaps[chance(seed) % COUNT_OF(gaps)]);
		len += (size_t)sprintf(text + len, "%s\"/%u\":", i == 0 ? "" : ",", i);
		len = put(text, len, gaps[chance(seed) % COUNT_OF(gaps)]);
		len = put_string(text, len, seed, 0);
	}
	return put(text, len, SLICE("}"));
}

/* An array of short strings, of which nearly every byte is a quote, with white space between some. */
static size_t put_dense(char *text, size_t len, uint32_t *seed)
{
	const uint32_t count = chance(seed) % 60, gaps = 1 + chance(seed) % 9;

	len = put(text, len, SLICE("["));
	for (uint32_t i = 0; i < count; i++) {
		len = put(text, len, i == 0 ? SLICE("") : SLICE(","));
		len = put(text, len, chance(seed) % gaps == 1 ? SLICE("\n \t") : SLICE(""));
		len = put(text, len,
			  chance(seed) % 4 == 0 ? SLICE("\"\\\\ a\\\"\"") : SLICE("\"\""));
	}
	return put(text, len, SLICE("]"));
}

/* The rocket of `pieces` and its like, of four bytes; else one byte. Writes it as one may in a string, every
 * `codes`th that need not be an escape as one; what it means is *at, which goes behind it. */
static size_t put_in_string(char *text, size_t len, const char **at, uint32_t *seed, uint32_t codes)
{
	static const char escapes[] = "\n\r\t\"\\/", letters[] = "nrt\"\\/";
	static const struct slice rocket = SLICE_INIT("\xf0\x9f\x9a\x80");
	const char c = **at;
	const char *escape = strchr(escapes, c);
	const bool code = chance(seed) % codes == 0;

	if (code && memcmp(*at, rocket.at, rocket.len) == 0) {
		*at += rocket.len;
		return put(text, len, SLICE("\\ud83d\\ude80"));
	}
	++*at;
	if (code && (unsigned char)c < 0x80)
		return len + (size_t)sprintf(text + len, "\\u%04X", (unsigned)c);
	if (escape != NULL && (c != '/' || code || chance(seed) % 2 == 0))
		return len + (size_t)sprintf(text + len, "\\%c", letters[escape - escapes]);
	text[len] = c;
	return len + 1;
}

/* What became of the answer `body`, which lies on the heap at exactly its size: of its only call, the arguments. */
struct taken {
	enum err err;
	struct slice detail, arguments;
};

static struct taken arguments_of(struct slice body, struct arena *arena)
{
	static struct slice names[] = { SLICE_INIT("f") };
	const struct decode_context context = { .revision = REVISION_2025_11_25,
						.tools_present = true,
						.requested_model = SLICE("m"),
						.tool_names = names,
						.tool_count = 1 };
	const struct provider_answer answer = { .status = 200, .body = body };
	struct sampling_result result = { 0 };
	struct provider_failure failure = { 0 };
	const enum err err = dialect_decode(dialect_get(DIALECT_OPENAI), &context, &answer, work,
					    arena, &result, &failure);

	if (err != ERR_OK)
		return (struct taken){ .err = err, .detail = slice_str(failure.detail) };
	assert_int_equal(result.block_count, 1);
	return (struct taken){ .err = err, .arguments = result.blocks[0].input };
}

/* Around the arguments of a call, which goes on in two ways: as it mostly does, and not. */
static const struct slice call_begin = SLICE_INIT(
	"{\"id\":\"a\",\"model\":\"m\",\"choices\":[{\"index\":0,\"finish_reason\":\"tool_calls\","
	"\"message\":{\"role\":\"assistant\",\"content\":null,\"tool_calls\":"
	"[{\"id\":\"c\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":");
static const struct slice call_ends[] = { SLICE_INIT("}}"),
					  SLICE_INIT(",\"strict\":true},\"index\":0}") };
static const struct slice answer_end =
	SLICE_INIT("]}}],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1}}");

/* The answer whose `len` bytes at `text` end in arguments, at exactly its size: *body, whose memory is returned. */
static char *finish_answer(char *text, size_t len, uint32_t *seed, struct slice *body)
{
	len = put(text, len, call_ends[chance(seed) % COUNT_OF(call_ends)]);
	len = put(text, len, answer_end);
	char *bytes = malloc(len);
	assert_non_null(bytes);
	(void)memcpy(bytes, text, len);
	*body = slice_of(bytes, len);
	return bytes;
}

/* However an object was written into the string, each set takes out that object. */
static void arguments_mean_what_was_written_into_their_string(void **state)
{
	enum { ROUNDS = 2000, PLAIN_MAX = 32 * TEXT_MAX };
	static const uint32_t dense[] = { 1000000, 1000, 40, 6, 1 };
	static char plain[PLAIN_MAX], text[7 * PLAIN_MAX];
	const struct codec_set *set;
	uint32_t seed = 11;

	(void)state;
	for (uint32_t i = 0; i < ROUNDS; i++) {
		struct arena_pool pool = { .keep_max = 64 };
		struct arena arena;
		struct slice body;
		size_t want = put_object(plain, 0, &seed);
		memset(plain + want, 0, 4);
		size_t len = put(text, put(text, 0, call_begin), SLICE("\""));
		for (const char *at = plain; at < plain + want;)
			len = put_in_string(text, len, &at, &seed, dense[i % COUNT_OF(dense)]);
		len = put(text, len, SLICE("\""));
		char *bytes = finish_answer(text, len, &seed, &body);
		arena_init(&arena, &pool, 1 << 20);
		for (size_t n = 0; (set = codec_set_at(n)) != NULL; n++) {
			json_work_use(work, set);
			struct taken have = arguments_of(body, &arena);
			if (!slice_eq(have.arguments, slice_of(plain, want)))
				fail_msg("%s, round %u: %.*s\n has become %.*s", set->name, i,
					 (int)body.len, body.at, (int)have.arguments.len,
					 have.arguments.at);
		}
		json_work_use(work, codec_set_best());
		arena_give(&arena);
		arena_pool_fini(&pool);
		free(bytes);
	}
}

/* The body that OpenAI is sent for the request `body`; absent when it is refused. */
static struct slice sent_to_openai(const struct codec_set *set, struct slice body,
				   struct arena *arena)
{
	struct sampling_request request = { 0 };
	struct jsonrpc rpc = { 0 };
	struct fault fault = { .err = ERR_OK };
	struct encode_out out = { 0 };
	struct profile profile;

	json_work_use(work, set);
	profile_defaults(&profile, DIALECT_OPENAI, SLICE(""));
	const struct encode_in in = {
		.request = &request, .profile = &profile, .model = SLICE("m"), .max_tokens = 9
	};
	if (sampling_read(body, REVISION_2025_11_25, NULL, work, arena, &rpc, &request, &fault) !=
		    ERR_OK ||
	    dialect_encode(dialect_get(DIALECT_OPENAI), &in, work, arena, &out, &fault) != ERR_OK)
		return (struct slice){ NULL, 0 };
	return gather_flat(&out.body, arena);
}

/* A call's input is JSON in a string then. That plain C writes the right one is for test_json_escape.c to say. */
static void an_input_is_written_into_a_string_alike(void **state)
{
	enum { ROUNDS = 1500 };
	static char text[64 * TEXT_MAX];
	const struct codec_set *set;
	uint32_t seed = 3;

	(void)state;
	for (uint32_t i = 0; i < ROUNDS; i++) {
		struct arena_pool pool = { .keep_max = 64 };
		struct arena arena;
		size_t len = put(text, 0,
				 SLICE("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":"
				       "\"sampling/createMessage\",\"params\":{\"maxTokens\":9,"
				       "\"messages\":[{\"role\":\"user\",\"content\":{\"type\":"
				       "\"text\",\"text\":\"x\"}},{\"role\":\"assistant\","
				       "\"content\":{\"type\":\"tool_use\",\"id\":\"a\",\"name\":"
				       "\"t\",\"input\":{\"v\":"));
		len = put_plain(text, put(text, len, SLICE("\"")), i % 64);
		len = put(text, len, SLICE("\",\"w\":"));
		len = i % 3 == 0 ? put_object(text, len, &seed) : put_dense(text, len, &seed);
		len = put(text, len,
			  SLICE("}}},{\"role\":\"user\",\"content\":{\"type\":"
				"\"tool_result\",\"toolUseId\":\"a\",\"content\":[]}}],"
				"\"tools\":[{\"name\":\"t\",\"inputSchema\":"
				"{\"type\":\"object\"}}]}}"));
		arena_init(&arena, &pool, 1 << 20);
		struct slice first = sent_to_openai(codec_set_at(0), slice_of(text, len), &arena);
		assert_false(slice_absent(first));
		for (size_t n = 1; (set = codec_set_at(n)) != NULL; n++) {
			struct slice have = sent_to_openai(set, slice_of(text, len), &arena);
			if (!slice_eq(have, first))
				fail_msg("%s, round %u: %.*s\n not %.*s", set->name, i,
					 (int)have.len, have.at, (int)first.len, first.at);
		}
		json_work_use(work, codec_set_best());
		arena_give(&arena);
		arena_pool_fini(&pool);
	}
}

/* Whatever is wrong in the string, or in what it says: by each set it is the same. */
static void arguments_that_are_none_are_judged_alike(void **state)
{
	enum { ROUNDS = 6000 };
	static char text[8 * TEXT_MAX];
	uint32_t seed = 5, good = 0;

	(void)state;
	for (uint32_t i = 0; i < ROUNDS; i++) {
		struct arena_pool pool = { .keep_max = 64 };
		struct arena arena;
		struct slice body;
		struct taken first = { .err = ERR_OK }, have;
		const struct codec_set *set;
		size_t len = put_string(text, put(text, 0, call_begin), &seed, i % 2 == 0 ? 0 : 30);
		char *bytes = finish_answer(text, len, &seed, &body);
		arena_init(&arena, &pool, 1 << 20);
		for (size_t n = 0; (set = codec_set_at(n)) != NULL; n++) {
			json_work_use(work, set);
			have = arguments_of(body, &arena);
			if (n == 0)
				first = have;
			if (have.err != first.err || !slice_eq(have.detail, first.detail))
				fail_msg("%s, round %u: %s, not %s: %.*s", set->name, i,
					 have.detail.at, first.detail.at, (int)body.len, body.at);
		}
		good += first.err == ERR_OK;
		json_work_use(work, codec_set_best());
		arena_give(&arena);
		arena_pool_fini(&pool);
		free(bytes);
	}
	assert_true(good > 0 && good < ROUNDS / 2);
}

/* Requests with members as every SDK writes them, as nobody does, and with all kinds of blocks. */
static const struct slice requests[] = {
	SLICE_INIT(
		"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"sampling/createMessage\",\"params\":{"
		"\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"a\\n\"}"
		"},"
		"{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"b\",\"_meta\":{"
		"}},"
		"{\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"f\",\"input\":{\"x\":[1]}}]},{"
		"\"role\":"
		"\"user\",\"content\":[{\"type\":\"tool_result\",\"toolUseId\":\"t1\",\"content\":["
		"{"
		"\"type\":\"text\",\"text\":\"c\"}],\"isError\":false}]}],\"modelPreferences\":{"
		"\"hints\":["
		"{\"name\":\"m\"}],\"costPriority\":0.3},\"maxTokens\":100,\"tools\":[{\"name\":"
		"\"f\","
		"\"inputSchema\":{\"type\":\"object\",\"properties\":{\"x\":{}}}}],\"toolChoice\":{"
		"\"mode\":"
		"\"auto\"},\"_meta\":{\"progressToken\":1}}}"),
	SLICE_INIT("{ \"method\" : \"sampling/createMessage\", \"params\" : { \"maxTokens\" : 1e2 "
		   ",\n  \"messages\""
		   ": [ { \"content\" : [ { \"data\" : "
		   "\"aGVsbG8gd29ybGQhaGVsbG8gd29ybGQhaGVsbG8gd29ybGQhaGVsbG8gd29"
		   "ybGQhaGVsbG8gd29ybGQh\", \"type\" : \"image\", \"mimeType\" : \"image/png\" } "
		   ", { \"text\" : "
		   "\"\\u00e9\", \"t\\u0079pe\" : \"text\" } ] , \"role\" : \"user\" } ] , "
		   "\"temperature\" : 0.5 } ,"
		   " \"id\" : \"r\" , \"jsonrpc\" : \"2.0\" }"),
};

static bool same_slice(struct slice a, struct slice b)
{
	return slice_absent(a) == slice_absent(b) && slice_eq(a, b);
}

/* What all sets have to agree about after reading a request. */
struct outcome {
	enum err err;
	struct fault fault;
	struct jsonrpc rpc;
	struct sampling_request request;
};

static void read_request(const struct codec_set *set, struct slice body, struct arena *arena,
			 struct outcome *out)
{
	*out = (struct outcome){ .err = ERR_OK };
	out->err = set->sampling_read(body, REVISION_2025_11_25, NULL, work, arena, &out->rpc,
				      &out->request, &out->fault);
}

static bool same_outcome(const struct outcome *a, const struct outcome *b)
{
	if (a->err != b->err || !same_slice(a->rpc.id, b->rpc.id))
		return false;
	if (a->err != ERR_OK)
		return a->fault.offset == b->fault.offset &&
		       same_slice(a->fault.path, b->fault.path) &&
		       slice_eq(slice_str(a->fault.detail), slice_str(b->fault.detail));
	return a->rpc.method == b->rpc.method &&
	       a->request.message_count == b->request.message_count &&
	       a->request.block_count == b->request.block_count &&
	       a->request.inner_count == b->request.inner_count &&
	       a->request.tool_count == b->request.tool_count &&
	       a->request.max_tokens == b->request.max_tokens;
}

static enum err requests_agree(struct slice body)
{
	const struct codec_set *set;
	struct arena_pool pool = { .keep_max = 64 };
	struct outcome first, now;
	struct arena arena;
	char *bytes = malloc(body.len);

	assert_non_null(bytes);
	(void)memcpy(bytes, body.at, body.len);
	arena_init(&arena, &pool, 1 << 20);
	read_request(codec_set_at(0), slice_of(bytes, body.len), &arena, &first);
	for (size_t i = 1; (set = codec_set_at(i)) != NULL; i++) {
		read_request(set, slice_of(bytes, body.len), &arena, &now);
		if (!same_outcome(&first, &now))
			fail_msg("%s says %u at %u, plain C %u at %u: %.*s", set->name, now.err,
				 now.fault.offset, first.err, first.fault.offset, (int)body.len,
				 body.at);
	}
	arena_give(&arena);
	arena_pool_fini(&pool);
	free(bytes);
	return first.err;
}

static void a_request_with_one_byte_changed_is_read_alike(void **state)
{
	static const char bytes[] = "\"\\{}[],:1n a\n\x01\xc3";
	char text[2 * TEXT_MAX];

	(void)state;
	for (size_t t = 0; t < COUNT_OF(requests); t++) {
		assert_int_equal(requests_agree(requests[t]), ERR_OK);
		for (size_t at = 0; at < requests[t].len; at++)
			for (size_t b = 0; b < sizeof(bytes) - 1; b++) {
				(void)put(text, 0, requests[t]);
				text[at] = bytes[b];
				(void)requests_agree(slice_of(text, requests[t].len));
			}
	}
}

/* Members that are known come twice, too, and where they stand makes no difference. */
static void a_known_member_that_comes_twice_is_refused(void **state)
{
	static const struct {
		const char *once;
	} rows[] = {
		{ "\"role\":\"user\"," }, { "\"maxTokens\":100," }, { "\"type\":\"tool_use\"," },
		{ "\"name\":\"f\"," },    { "\"id\":7," },          { "\"jsonrpc\":\"2.0\"," },
	};
	char text[2 * TEXT_MAX];

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct slice body = requests[0], once = slice_str(rows[i].once);
		const char *found = memmem(body.at, body.len, once.at, once.len);
		assert_non_null(found);
		size_t len = put(text, 0, slice_of(body.at, (size_t)(found - body.at)));
		len = put(text, len, once);
		len = put(text, len, slice_of(found, (size_t)(body.at + body.len - found)));
		if (requests_agree(slice_of(text, len)) != ERR_DUPLICATE_KEY)
			fail_msg("%s twice was not refused as such", rows[i].once);
	}
}

static void a_duplicate_key_is_found_wherever_it_stands(void **state)
{
	enum { KEYS = 40 };
	char text[TEXT_MAX];

	(void)state;
	for (int first = 0; first < KEYS; first++)
		for (int second = first + 1; second < KEYS; second++) {
			size_t len = put(text, 0, SLICE("{\"deep\":{"));
			for (int i = 0; i < KEYS; i++)
				len += (size_t)sprintf(text + len, "%s\"k%d\":%d",
						       i == 0 ? "" : ",", i == second ? first : i,
						       i);
			len = put(text, len, SLICE("}}"));
			assert_false(agree(slice_of(text, len)));
		}
}

static void the_best_set_is_taken_unless_another_one_is_wished(void **state)
{
	const struct codec_set *best = codec_set_best();

	(void)state;
	assert_ptr_equal(json_work_set(work), best);
	assert_string_equal(codec_set_at(0)->name, "portable");
	assert_ptr_equal(codec_set_find(slice_str(best->name)), best);
	assert_null(codec_set_find(SLICE("sse9")));
	json_work_use(work, codec_set_at(0));
	assert_ptr_equal(json_work_set(work), codec_set_at(0));
	json_work_use(work, best);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_piece_at_every_place_of_a_block_is_judged_alike),
		cmocka_unit_test(every_piece_behind_a_long_dense_text_is_judged_alike),
		cmocka_unit_test(runs_of_backslashes_at_every_place_are_judged_alike),
		cmocka_unit_test(strings_of_many_pieces_are_judged_alike),
		cmocka_unit_test(a_text_with_one_byte_changed_is_judged_alike),
		cmocka_unit_test(every_front_and_rear_of_a_text_is_judged_alike),
		cmocka_unit_test(arguments_mean_what_was_written_into_their_string),
		cmocka_unit_test(an_input_is_written_into_a_string_alike),
		cmocka_unit_test(arguments_that_are_none_are_judged_alike),
		cmocka_unit_test(a_request_with_one_byte_changed_is_read_alike),
		cmocka_unit_test(a_known_member_that_comes_twice_is_refused),
		cmocka_unit_test(a_duplicate_key_is_found_wherever_it_stands),
		cmocka_unit_test(the_best_set_is_taken_unless_another_one_is_wished),
	};
	return cmocka_run_group_tests_name("set", tests, open_work, close_work);
}
