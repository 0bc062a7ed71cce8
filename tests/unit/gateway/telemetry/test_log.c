/* test_log.c - a line is one JSON object whatever is said in it, and the ring loses whole lines only. */
#include "codec/set.h"
#include "gateway/telemetry/log.h"

#include "codec/base/attr.h"
#include "codec/json/json_read.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static struct json_work *work;

static int work_up(void **state)
{
	(void)state;
	work = json_work_new(codec_set_best());
	return work == NULL ? -1 : 0;
}

static int work_down(void **state)
{
	(void)state;
	json_work_free(work);
	return 0;
}

/* Writes one line into an empty ring and returns it without its newline. */
static struct slice one_line(struct log_ring *ring, const struct log_request *line)
{
	assert_true(log_request(ring, line));
	struct slice text = log_ring_peek(ring);
	assert_true(text.len > 1 && text.len <= LOG_LINE_MAX);
	assert_int_equal(text.at[text.len - 1], '\n');
	text.len--;
	assert_null(memchr(text.at, '\n', text.len));
	return text;
}

static void expect_valid(struct slice text)
{
	struct fault fault;

	if (!json_valid(text, NULL, work, &fault))
		fail_msg("not JSON at byte %u (%s): %.*s", fault.offset,
			 fault.detail == NULL ? "" : fault.detail, (int)text.len, text.at);
}

#define ID "00112233445566778899aabbccddeeff"

static void expect_text(struct slice text, const char *wanted)
{
	if (!slice_eq(text, slice_str(wanted)))
		fail_msg("%.*s\nis not\n%s", (int)text.len, text.at, wanted);
}

static void a_full_line_says_everything_in_one_object(void **state)
{
	(void)state;
	static const char wanted[] =
		"{\"time\":\"2026-03-01T00:00:07.089Z\",\"request_id\":\"" ID "\",\"traceparent\":"
		"\"00-ab-cd-01\""
		",\"tenant\":\"acme\",\"server\":\"billing-mcp\",\"revision\":\"2025-11-25\""
		",\"method\":\"sampling/"
		"createMessage\",\"status\":502,\"error\":\"provider_unavailable\""
		",\"detail\":\"reset\",\"total_ms\":1234.567,\"queue_ms\":0.050,\"provider_ttfb_"
		"ms\":700.000"
		",\"provider_ms\":1200.000,\"model\":\"claude-sonnet\",\"provider\":\"anthropic\""
		",\"endpoint\":\"https://api.example\",\"route\":{\"config\":\"0123456789abcdef\""
		",\"seed\":\"00000000deadbeef\",\"hint\":\"son\\u006eet\",\"alias\":0,\"input\":"
		"1234,"
		"\"output\":100,\"image\":true,\"audio\":true,\"held\":\"model\","
		"\"cost\":0.500000,"
		"\"intelligence\":1.000000,\"candidates\":[{"
		"\"model\":3,\"score\":0.812346}"
		",{\"model\":1,\"score\":0.000000}],\"endpoints\":[{\"endpoint\":7,\"cost\":12."
		"500000}"
		",{\"endpoint\":0,\"cost\":0.250000}]},\"attempts\":2,\"attempt_classes\":["
		"\"provider_rate_limited\",\"provider_unavailable\"],\"input_tokens\":1000,"
		"\"output_"
		"tokens\":0"
		",\"cache_read_tokens\":900,\"usd\":0.003000001,\"stop\":\"endTurn\""
		",\"session\":{\"id\":\"00112233445566ff\",\"requests\":3,\"tokens\":0,"
		"\"usd\":0.000000040}}";
	const struct log_request line = {
		.wall_ns = (UINT64_C(1772323207) * 1000 + 89) * MSEC + 999999,
		.request_id = ID,
		.traceparent = SLICE("00-ab-cd-01"),
		.tenant = SLICE("acme"),
		.server = SLICE("billing-mcp"),
		.session = { "00112233445566ff", true, 3, 0, 40 },
		.revision = "2025-11-25",
		.rpc = "sampling/createMessage",
		.model = SLICE("claude-sonnet"),
		.provider = SLICE("anthropic"),
		.endpoint = SLICE("https://api.example"),
		.route = {
			.config_digest = "0123456789abcdef",
			.seed = 0xdeadbeef,
			.hint = SLICE("son\\u006eet"),
			.alias = 0,
			.input_tokens = 1234,
			.max_tokens = 100,
			.image = true,
			.audio = true,
			.held = LOG_HELD_MODEL,
			.cost = 0.5,
			.speed = NAN,
			.intelligence = 1,
			.candidates = { { 3, 0.8123456 }, { 1, 0 } },
			.candidate_count = 2,
			.drawn = { { 7, 12.5 }, { 0, 0.25 } },
			.drawn_count = 2,
		},
		.attempts = 2,
		.attempt_classes = { ERR_PROVIDER_RATE, ERR_PROVIDER_DOWN },
		.usage = { .known = true, .input = 1000, .cache_read = 900 },
		.usd_nano = 3000001,
		.stop = "endTurn",
		.err = ERR_PROVIDER_DOWN,
		.status = 502,
		.detail = "reset",
		.total = 1234567 * USEC,
		.queue = 50 * USEC,
		.provider_ttfb = 700 * MSEC,
		.provider_total = 1200 * MSEC,
	};
	struct log_ring *ring = log_ring_new();
	struct slice text = one_line(ring, &line);

	expect_text(text, wanted);
	expect_valid(text);
	log_ring_free(ring);
}

static void what_did_not_happen_is_left_out(void **state)
{
	(void)state;
	const struct log_request line = { .request_id = ID,
					  .session = { "0011223344556677", false, 9, 9, 9 },
					  .err = ERR_UNAUTHORIZED,
					  .status = 401,
					  .total = 90 * USEC };
	struct log_ring *ring = log_ring_new();

	expect_text(one_line(ring, &line),
		    "{\"time\":\"1970-01-01T00:00:00.000Z\",\"request_id\":\"" ID
		    "\",\"status\":401,"
		    "\"error\":\"unauthorized\",\"total_ms\":0.090,"
		    "\"session\":{\"id\":\"0011223344556677\"}}");
	log_ring_free(ring);
}

static void a_session_has_a_line_at_its_begin_and_its_end(void **state)
{
	(void)state;
	struct log_mcp_session line = {
		.wall_ns = UINT64_C(1772323207089) * MSEC,
		.request_id = "00ff",
		.tenant = SLICE("ac\"me"),
		.server = SLICE("everything"),
		.client = SLICE("desk"),
		.revision = SLICE("2025-11-25"),
		.mode = "backfill",
		.session = "00112233445566ff",
	};
	struct log_ring *ring = log_ring_new();

	assert_true(log_mcp_session(ring, &line));
	expect_text(log_ring_peek(ring),
		    "{\"time\":\"2026-03-01T00:00:07.089Z\",\"event\":\"session_begin\","
		    "\"request_id\":\"00ff\",\"tenant\":\"ac\\\"me\",\"server\":\"everything\","
		    "\"front\":\"mcp\",\"client\":\"desk\",\"revision\":\"2025-11-25\","
		    "\"mode\":\"backfill\",\"session\":{\"id\":\"00112233445566ff\"}}\n");
	log_ring_read(ring, log_ring_peek(ring).len);
	line.request_id = NULL;
	line.client = line.revision = slice_of(NULL, 0);
	line.end = "deleted";
	line.lasted_s = 3600;
	assert_true(log_mcp_session(ring, &line));
	const struct slice end = log_ring_peek(ring);
	expect_text(end, "{\"time\":\"2026-03-01T00:00:07.089Z\",\"event\":\"session_end\","
			 "\"tenant\":\"ac\\\"me\",\"server\":\"everything\",\"front\":\"mcp\","
			 "\"mode\":\"backfill\",\"session\":{\"id\":\"00112233445566ff\"},"
			 "\"end\":\"deleted\",\"lasted_s\":3600}\n");
	expect_valid(slice_of(end.at, end.len - 1));
	log_ring_free(ring);
}

static void dates_are_those_of_the_calendar(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		uint64_t second;
		const char *text;
	} rows[] = {
		{ "leap day", 951782400, "2000-02-29T00:00:00.000Z" },
		{ "last second of a leap year", 1735689599, "2024-12-31T23:59:59.000Z" },
		{ "first day after a February of 28", 1772323200, "2026-03-01T00:00:00.000Z" },
		{ "a century that is no leap year", 4107542400, "2100-03-01T00:00:00.000Z" },
	};
	struct log_ring *ring = log_ring_new();

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const struct log_request line = { .wall_ns = rows[i].second * SEC };
		struct slice text = one_line(ring, &line);
		text = slice_of(text.at + strlen("{\"time\":\""), strlen(rows[i].text));
		if (!slice_eq(text, slice_str(rows[i].text)))
			fail_msg("%s: %.*s", rows[i].name, (int)text.len, text.at);
		log_ring_read(ring, log_ring_peek(ring).len);
	}
	log_ring_free(ring);
}

/* As long as one of ours may be. */
static const char own[] = "0123456789abcdef0123456789abcdef";

/* Every text of the line that is not ours says `s`. */
static struct log_request all_say(struct slice s, const char *terminated)
{
	struct log_request line = {
		.traceparent = s,
		.tenant = s,
		.server = s,
		.session = { "ffffffffffffffff", true, UINT64_MAX, UINT64_MAX, UINT64_MAX },
		.revision = own,
		.rpc = own,
		.model = s,
		.provider = s,
		.endpoint = s,
		.route = { .config_digest = own,
			   .seed = UINT64_MAX,
			   .hint = s,
			   .alias = INT32_MAX,
			   .input_tokens = UINT64_MAX,
			   .max_tokens = UINT32_MAX,
			   .image = true,
			   .audio = true,
			   .held = LOG_HELD_ENDPOINT,
			   .cost = 999999999,
			   .speed = 999999999,
			   .intelligence = -1,
			   .candidate_count = UINT32_MAX,
			   .drawn = { { UINT32_MAX, 1e300 }, { UINT32_MAX, 999999999 } },
			   .drawn_count = UINT32_MAX },
		.attempts = UINT32_MAX,
		.usage = { .known = true,
			   .input = UINT64_MAX,
			   .output = UINT64_MAX,
			   .cache_read = UINT64_MAX,
			   .cache_write = UINT64_MAX,
			   .cache_write_1h = UINT64_MAX,
			   .reasoning = UINT64_MAX },
		.usd_nano = UINT64_MAX,
		.stop = own,
		.err = ERR_INTERNAL,
		.status = -1,
		.detail = terminated,
		.wall_ns = UINT64_MAX,
		.total = UINT64_MAX,
		.queue = UINT64_MAX,
		.provider_ttfb = UINT64_MAX,
		.provider_total = UINT64_MAX,
	};

	memcpy(line.request_id, own, sizeof(line.request_id));
	line.route.candidates[0].score = (double)__builtin_nanf("");
	line.route.candidates[1].score = -1;
	line.route.candidates[2].score = 1e300;
	line.route.candidates[3].score = (double)__builtin_inff();
	return line;
}

static void hostile_texts_that_are_not_ours_still_give_one_valid_line(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		struct slice text;
	} rows[] = {
		{ "quotes", SLICE_INIT("\",\"tenant\":\"other\"}\n{\"") },
		{ "newlines", SLICE_INIT("\n\r\n\t\b\f") },
		{ "backslashes", SLICE_INIT("\\\\\\") },
		{ "one backslash at the end", SLICE_INIT("a\\") },
		{ "escapes that are none", SLICE_INIT("\\x\\u12\\u12g4\\") },
		{ "lone surrogate bytes", SLICE_INIT("\xed\xa0\x80") },
		{ "bytes that are no UTF-8", SLICE_INIT("\x80\xff\xc0\xaf\xf5\x80\x80\x80") },
		{ "a sequence cut short", SLICE_INIT("abc\xe2\x82") },
		{ "too long a form", SLICE_INIT("\xe0\x80\x80\xf0\x80\x80\x80") },
		{ "good UTF-8", SLICE_INIT("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80") },
		{ "lone surrogate escapes", SLICE_INIT("\\ud83d\\u0041\\ude00\\ud83d") },
		{ "control characters", SLICE_INIT("\x01\x1b[2J\x7f") },
	};
	struct log_ring *ring = log_ring_new();

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct log_request line = all_say(rows[i].text, rows[i].text.at);
		struct slice text = one_line(ring, &line);
		print_message("%s\n", rows[i].name);
		expect_valid(text);
		log_ring_read(ring, text.len + 1);
	}
	log_ring_free(ring);
}

static void texts_of_any_length_fit_into_a_line(void **state)
{
	(void)state;
	static const char units[] = { 'a', '\n', '"', '\\', '\x80', '\x01' };
	struct log_ring *ring = log_ring_new();
	char *text = malloc(100001);

	for (size_t i = 0; i < COUNT_OF(units); i++) {
		memset(text, units[i], 100000);
		text[100000] = '\0';
		struct log_request line = all_say(slice_of(text, 100000), text);
		struct slice out = one_line(ring, &line);
		expect_valid(out);
		log_ring_read(ring, out.len + 1);
	}
	free(text);
	log_ring_free(ring);
}

/* What a text of so many 'a' becomes with `escaped` in the place of one of them. */
static void expect_escaped(struct log_ring *ring, size_t len, size_t place, char byte,
			   const char *escaped)
{
	char text[80], wanted[120];
	struct log_request line = { .request_id = ID, .status = 200 };

	(void)memset(text, 'a', sizeof(text));
	text[place] = byte;
	line.tenant = slice_of(text, len);
	(void)snprintf(wanted, sizeof(wanted), "\"tenant\":\"%.*s%s%.*s\",", (int)place, text,
		       escaped, (int)(len - place - 1), text + place + 1);
	const struct slice found = one_line(ring, &line);
	if (!slice_has_nocase(found, slice_str(wanted)))
		fail_msg("%zu bytes, 0x%02x at %zu: %.*s\nhas no\n%s", len, (uint8_t)byte, place,
			 (int)found.len, found.at, wanted);
	log_ring_read(ring, found.len + 1);
}

static void what_needs_an_escape_gets_one_at_every_place_of_a_text_of_any_length(void **state)
{
	static const struct {
		char byte;
		const char *escaped;
	} rows[] = { { '"', "\\\"" },       { '\\', "\\\\" },      { '\x1f', "\\u001f" },
		     { '\x7f', "\\u007f" }, { '\x80', "\\ufffd" }, { '\xff', "\\ufffd" },
		     { ' ', " " },          { '~', "~" } };
	struct log_ring *ring = log_ring_new();

	(void)state;
	assert_non_null(ring);
	for (size_t len = 1; len <= 34; len++)
		for (size_t place = 0; place < len; place++)
			for (size_t i = 0; i < COUNT_OF(rows); i++)
				expect_escaped(ring, len, place, rows[i].byte, rows[i].escaped);
	log_ring_free(ring);
}

static void every_byte_alone_and_every_pair_with_an_escape_is_valid(void **state)
{
	(void)state;
	struct log_ring *ring = log_ring_new();

	for (int c = 0; c < 256; c++) {
		const char bytes[] = { (char)c, '\\', (char)c, '\0' };
		const struct log_request line = { .request_id = ID,
						  .route = { .config_digest = "0123456789abcdef",
							     .hint = slice_of(bytes, 3) },
						  .tenant = slice_of(bytes, 3),
						  .server = slice_of(bytes, 1) };
		struct slice text = one_line(ring, &line);
		expect_valid(text);
		log_ring_read(ring, text.len + 1);
	}
	log_ring_free(ring);
}

/* Reads at most `max` bytes into `out`. */
static size_t take(struct log_ring *ring, char *out, size_t max)
{
	struct slice text = log_ring_peek(ring);
	size_t len = text.len < max ? text.len : max;

	memcpy(out, text.at, len);
	log_ring_read(ring, len);
	return len;
}

static void lines_come_out_as_they_went_in_however_often_the_ring_wraps(void **state)
{
	(void)state;
	struct log_ring *ring = log_ring_new();
	char *got = malloc(LOG_LINE_MAX);
	uint64_t written = 0;

	while (written < 3 * (uint64_t)LOG_RING_BYTES) {
		char name[32];
		size_t len = 0;
		(void)snprintf(name, sizeof(name), "%0*u", (int)(written % 23 + 1),
			       (unsigned)written % 100000);
		const struct log_request line = { .request_id = ID,
						  .tenant = slice_str(name),
						  .status = 200 };
		assert_true(log_request(ring, &line));
		while (log_ring_peek(ring).len > 0) /* in pieces: the end of the ring, or of 100 */
			len += take(ring, got + len, 100);
		assert_int_equal(got[len - 1], '\n');
		expect_valid(slice_of(got, len - 1));
		got[len - 1] = '\0';
		assert_non_null(strstr(got, name));
		written += len;
	}
	assert_int_equal(log_ring_dropped(ring), 0);
	free(got);
	log_ring_free(ring);
}

static void a_full_ring_drops_whole_lines_and_counts_them(void **state)
{
	(void)state;
	const struct log_request line = { .request_id = ID,
					  .tenant = SLICE("acme"),
					  .status = 200 };
	struct log_ring *ring = log_ring_new();
	size_t fit = 0, lines = 0, len = 0;
	char *all = malloc(LOG_RING_BYTES);

	while (log_request(ring, &line))
		fit++;
	assert_false(log_request(ring, &line));
	assert_int_equal(log_ring_dropped(ring), 2);
	while (log_ring_peek(ring).len > 0)
		len += take(ring, all + len, LOG_RING_BYTES);
	for (size_t i = 0; i < len; i++)
		lines += all[i] == '\n';
	assert_int_equal(lines, fit);
	assert_int_equal(all[len - 1], '\n');
	assert_true(log_request(ring, &line));
	assert_int_equal(log_ring_dropped(ring), 2);
	free(all);
	log_ring_free(ring);
}

static void a_long_raw_text_is_not_cut_inside_a_character(void **state)
{
	(void)state;
	static const char pair[] = "\\ud83d\\ude00", euro[] = "\xe2\x82\xac";
	struct log_ring *ring = log_ring_new();
	char text[2048];

	for (size_t shift = 0; shift < 12; shift++) {
		size_t len = shift;
		memset(text, 'x', shift);
		while (len + strlen(pair) + strlen(euro) <= sizeof(text)) {
			memcpy(text + len, pair, strlen(pair));
			memcpy(text + len + strlen(pair), euro, strlen(euro));
			len += strlen(pair) + strlen(euro);
		}
		const struct log_request line = { .request_id = ID,
						  .route = { .config_digest = "0123456789abcdef",
							     .hint = slice_of(text, len) } };
		struct slice out = one_line(ring, &line);
		expect_valid(out);
		log_ring_read(ring, out.len + 1);
	}
	log_ring_free(ring);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_full_line_says_everything_in_one_object),
		cmocka_unit_test(what_did_not_happen_is_left_out),
		cmocka_unit_test(a_session_has_a_line_at_its_begin_and_its_end),
		cmocka_unit_test(dates_are_those_of_the_calendar),
		cmocka_unit_test(hostile_texts_that_are_not_ours_still_give_one_valid_line),
		cmocka_unit_test(texts_of_any_length_fit_into_a_line),
		cmocka_unit_test(a_long_raw_text_is_not_cut_inside_a_character),
		cmocka_unit_test(
			what_needs_an_escape_gets_one_at_every_place_of_a_text_of_any_length),
		cmocka_unit_test(every_byte_alone_and_every_pair_with_an_escape_is_valid),
		cmocka_unit_test(lines_come_out_as_they_went_in_however_often_the_ring_wraps),
		cmocka_unit_test(a_full_ring_drops_whole_lines_and_counts_them),
	};
	return cmocka_run_group_tests_name("log", tests, work_up, work_down);
}
