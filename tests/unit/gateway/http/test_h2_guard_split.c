/* Header blocks in several frames: h2o sees each as one HEADERS frame, however the input comes and whenever it eats. */
#include "tests/unit/gateway/http/h2_guard_rig.h"

#include "gateway/http/h2_guard_block.h"

enum { PADDED = 8, WITH_PRIORITY = 0x20 };

/* ---- what h2o sees ---- */
#define BYTES(text) text, sizeof(text) - 1

struct part {
	uint8_t type, flags;
	uint32_t stream;
	const char *payload;
	size_t len;
};

#define PARTS_MAX 7

static const struct split {
	const char *name;
	struct part sent[PARTS_MAX], seen[PARTS_MAX];
} splits[] = {
	{ "in two",
	  { { HEADERS, END_STREAM, 1, BYTES("\x82\x86") },
	    { CONTINUATION, END_HEADERS, 1, BYTES("\x84\x41\x01x") } },
	  { { HEADERS, END_STREAM | END_HEADERS, 1, BYTES("\x82\x86\x84\x41\x01x") } } },
	{ "in many, some of them empty, among other frames",
	  { { PING, 0, 0, BYTES("12345678") },
	    { HEADERS, 0, 1, BYTES("") },
	    { CONTINUATION, 0, 1, BYTES("\x82") },
	    { CONTINUATION, 0, 1, BYTES("") },
	    { CONTINUATION, 0, 1, BYTES("\x86\x84") },
	    { CONTINUATION, END_HEADERS, 1, BYTES("") },
	    { DATA, END_STREAM, 1, BYTES("body") } },
	  { { PING, 0, 0, BYTES("12345678") },
	    { HEADERS, END_HEADERS, 1, BYTES("\x82\x86\x84") },
	    { DATA, END_STREAM, 1, BYTES("body") } } },
	{ "two of them, one behind the other",
	  { { HEADERS, END_STREAM, 1, BYTES("\x82\x86") },
	    { CONTINUATION, END_HEADERS, 1, BYTES("\x84") },
	    { HEADERS, 0, 3, BYTES("\x83") },
	    { CONTINUATION, END_HEADERS, 3, BYTES("\x86\x84\x84") },
	    { RST, 0, 3, BYTES("\0\0\0\x08") } },
	  { { HEADERS, END_STREAM | END_HEADERS, 1, BYTES("\x82\x86\x84") },
	    { HEADERS, END_HEADERS, 3, BYTES("\x83\x86\x84\x84") },
	    { RST, 0, 3, BYTES("\0\0\0\x08") } } },
	{ "padded: the padding is not in the middle",
	  { { HEADERS, END_STREAM | PADDED, 1, BYTES("\x03\x82\x86ppp") },
	    { CONTINUATION, END_HEADERS, 1, BYTES("\x84") },
	    { PING, 0, 0, BYTES("12345678") } },
	  { { HEADERS, END_STREAM | END_HEADERS, 1, BYTES("\x82\x86\x84") },
	    { PING, 0, 0, BYTES("12345678") } } },
	{ "nothing but padding in the first frame",
	  { { HEADERS, END_STREAM | PADDED, 1, BYTES("\x02pp") },
	    { CONTINUATION, 0, 1, BYTES("\x82\x86") },
	    { CONTINUATION, END_HEADERS, 1, BYTES("\x84") } },
	  { { HEADERS, END_STREAM | END_HEADERS, 1, BYTES("\x82\x86\x84") } } },
	{ "no byte of padding",
	  { { HEADERS, END_STREAM | PADDED, 1, BYTES("\0\x82") },
	    { CONTINUATION, END_HEADERS, 1, BYTES("\x86\x84") } },
	  { { HEADERS, END_STREAM | END_HEADERS, 1, BYTES("\x82\x86\x84") } } },
	{ "with a priority",
	  { { HEADERS, END_STREAM | WITH_PRIORITY, 1, BYTES("\0\0\0\0\x0f") },
	    { CONTINUATION, END_HEADERS, 1, BYTES("\x82\x86\x84") } },
	  { { HEADERS, END_STREAM | END_HEADERS | WITH_PRIORITY, 1,
	      BYTES("\0\0\0\0\x0f\x82\x86\x84") } } },
	{ "with a priority, padded",
	  { { HEADERS, END_STREAM | WITH_PRIORITY | PADDED, 1, BYTES("\x04\0\0\0\0\x0f\x82pppp") },
	    { CONTINUATION, END_HEADERS, 1, BYTES("\x86\x84") } },
	  { { HEADERS, END_STREAM | END_HEADERS | WITH_PRIORITY, 1,
	      BYTES("\0\0\0\0\x0f\x82\x86\x84") } } },
	{ "a trailer",
	  { { HEADERS, END_HEADERS, 1, BYTES("\x83\x86\x84") },
	    { DATA, 0, 1, BYTES("body") },
	    { HEADERS, END_STREAM, 1, BYTES("\x40\x01") },
	    { CONTINUATION, END_HEADERS, 1, BYTES("n\x01v") } },
	  { { HEADERS, END_HEADERS, 1, BYTES("\x83\x86\x84") },
	    { DATA, 0, 1, BYTES("body") },
	    { HEADERS, END_STREAM | END_HEADERS, 1, BYTES("\x40\x01n\x01v") } } },
};

static size_t write_parts(const struct part parts[PARTS_MAX], char *into)
{
	size_t len = 0;

	for (size_t i = 0; i < PARTS_MAX && parts[i].payload != NULL; i++) {
		const struct part *part = &parts[i];
		const size_t whole =
			frame_write((struct frame){ part->type, part->flags, part->stream,
						    (uint32_t)part->len },
				    into + len);
		(void)memcpy(into + len + 9, part->payload, part->len);
		len += whole;
	}
	return len;
}

/* H2o eats the frames that look whole to it. Returns how many bytes. */
static size_t h2o_eats(struct rig *rig, char *into)
{
	size_t eaten = 0;

	for (;;) {
		const uint8_t *at = (const uint8_t *)rig->input + eaten;
		if (rig->len - eaten < 9)
			break;
		const size_t whole = 9U + ((size_t)at[0] << 16 | (size_t)at[1] << 8 | at[2]);
		if (rig->len - eaten < whole)
			break;
		eaten += whole;
	}
	(void)memcpy(into, rig->input, eaten);
	h2_guard_ate(&rig->guard, eaten);
	(void)memmove(rig->input, rig->input + eaten, rig->len - eaten);
	rig->len -= eaten;
	return eaten;
}

static void check_split(const struct split *split, size_t piece)
{
	struct rig rig = rig_new();
	char *sent = malloc(INPUT_MAX), *wanted = malloc(INPUT_MAX), *seen = malloc(INPUT_MAX);

	assert_true(sent != NULL && wanted != NULL && seen != NULL);
	assert_int_equal(scan(&rig, START), GUARD_PASS); /* the preface */
	const size_t len = write_parts(split->sent, sent);
	const size_t wanted_len = write_parts(split->seen, wanted);
	size_t seen_len = 0;
	for (size_t at = 0; at < len; at += piece) {
		const size_t n = len - at < piece ? len - at : piece;
		assert_int_equal(feed(&rig, sent + at, n, n), GUARD_PASS);
		seen_len += h2o_eats(&rig, seen + seen_len);
	}
	assert_int_equal(seen_len, wanted_len);
	assert_memory_equal(seen, wanted, wanted_len);
	assert_int_equal(rig.len, 0);
	assert_false(rig.guard.split);
	assert_int_equal(rig.guard.partial_since, 0);
	free(sent);
	free(wanted);
	free(seen);
	rig_free(&rig);
}

static void h2o_sees_one_frame_of_each(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(splits) / sizeof(splits[0]); i++) {
		print_message("  %s\n", splits[i].name);
		for (size_t piece = 1; piece < 120; piece++)
			check_split(&splits[i], piece);
	}
}

/* ---- what ends the connection ---- */
#define OPEN                                 \
	{                                    \
		HEADERS, 0, 1, BYTES("\x82") \
	}
static const struct broken {
	const char *name;
	enum guard_verdict verdict;
	struct part sent[PARTS_MAX];
} broken[] = {
	{ "DATA inside", GUARD_FORBIDDEN_FRAME, { OPEN, { DATA, 0, 1, BYTES("x") } } },
	{ "its HEADERS again", GUARD_FORBIDDEN_FRAME, { OPEN, OPEN } },
	{ "another stream's HEADERS inside",
	  GUARD_FORBIDDEN_FRAME,
	  { OPEN, { HEADERS, END_HEADERS, 3, BYTES("\x82") } } },
	{ "PRIORITY inside", GUARD_FORBIDDEN_FRAME, { OPEN, { PRIORITY, 0, 1, BYTES("12345") } } },
	{ "RST_STREAM inside", GUARD_FORBIDDEN_FRAME, { OPEN, { RST, 0, 1, BYTES("1234") } } },
	{ "PING inside", GUARD_FORBIDDEN_FRAME, { OPEN, { PING, 0, 0, BYTES("12345678") } } },
	{ "an unknown frame inside", GUARD_FORBIDDEN_FRAME, { OPEN, { 0x77, 0, 0, BYTES("") } } },
	{ "CONTINUATION of another stream",
	  GUARD_FORBIDDEN_FRAME,
	  { OPEN, { CONTINUATION, END_HEADERS, 3, BYTES("") } } },
	{ "CONTINUATION of no stream",
	  GUARD_FORBIDDEN_FRAME,
	  { OPEN, { CONTINUATION, END_HEADERS, 0, BYTES("") } } },
	{ "CONTINUATION behind the last one",
	  GUARD_FORBIDDEN_FRAME,
	  { OPEN,
	    { CONTINUATION, END_HEADERS, 1, BYTES("") },
	    { CONTINUATION, END_HEADERS, 1, BYTES("") } } },
	{ "a block of no stream", GUARD_FORBIDDEN_FRAME, { { HEADERS, 0, 0, BYTES("\x82") } } },
	{ "padded, without the byte that says how much",
	  GUARD_FORBIDDEN_FRAME,
	  { { HEADERS, PADDED, 1, BYTES("") } } },
	{ "more padding than there is",
	  GUARD_FORBIDDEN_FRAME,
	  { { HEADERS, PADDED, 1, BYTES("\x03\x82\x82") },
	    { CONTINUATION, END_HEADERS, 1, BYTES("ppp") } } },
	{ "padding where the priority is to be",
	  GUARD_FORBIDDEN_FRAME,
	  { { HEADERS, PADDED | WITH_PRIORITY, 1, BYTES("\x01\0\0\0\0\x0f") },
	    { CONTINUATION, END_HEADERS, 1, BYTES("ppp") } } },
	{ "a priority in two frames",
	  GUARD_FORBIDDEN_FRAME,
	  { { HEADERS, WITH_PRIORITY, 1, BYTES("\0\0\0\0") },
	    { CONTINUATION, END_HEADERS, 1, BYTES("\x0f\x82") } } },
};

static void what_breaks_a_block_ends_the_connection(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++)
		for (size_t piece = 1; piece < 60; piece += 7) {
			struct rig rig = rig_new();
			const size_t len = write_parts(broken[i].sent, rig.sent);
			print_message("  %s, %zu\n", broken[i].name, piece);
			assert_int_equal(feed(&rig, rig.sent, len, piece), broken[i].verdict);
			rig_free(&rig);
		}
}

/* ---- how much, and for how long ---- */
static enum guard_verdict begin(struct rig *rig, uint8_t flags, uint32_t len)
{
	return give(rig, (struct frame){ HEADERS, flags, 1, len }, START);
}

static enum guard_verdict go_on(struct rig *rig, uint8_t flags, uint32_t len, nsec_t now)
{
	put(rig, (struct frame){ CONTINUATION, flags, 1, len });
	return h2_guard_scan(&rig->guard, &rig->budget, rig->input, &rig->len, now);
}

static void as_many_bytes_as_a_head_may_have(void **state)
{
	(void)state;
	static const char one_field[] = "\x00\x01n\x7f\xfa\xfe\x01"; /* to the end of the block */
	for (uint32_t more = 0; more < 2; more++) {
		struct rig rig = rig_new();
		assert_int_equal(begin(&rig, END_STREAM, 16384), GUARD_PASS);
		(void)memcpy(rig.input + rig.guard.block, one_field, sizeof(one_field) - 1);
		assert_int_equal(go_on(&rig, 0, 16000, START), GUARD_PASS);
		assert_int_equal(go_on(&rig, END_HEADERS, 384 + more, START),
				 more == 0 ? GUARD_PASS : GUARD_FLOOD);
		rig_free(&rig);
	}
	struct rig rig = rig_new();
	assert_int_equal(begin(&rig, END_STREAM, 5), GUARD_PASS);
	put(&rig, (struct frame){ CONTINUATION, END_HEADERS, 1, 16385 });
	rig.len -= 16385;
	assert_int_equal(h2_guard_scan(&rig.guard, &rig.budget, rig.input, &rig.len, START),
			 GUARD_FORBIDDEN_FRAME);
	assert_true(rig.guard.oversize);
	rig_free(&rig);
}

static void frames_that_bring_little_are_a_flood(void **state)
{
	(void)state;
	const struct {
		uint32_t len, most; /* of 997 tokens */
	} rows[] = { { 0, 199 }, { 1, 997 }, { 30, 997 } };
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct rig rig = rig_new();
		assert_int_equal(begin(&rig, END_STREAM, 1), GUARD_PASS);
		for (uint32_t n = 0; n < rows[i].most; n++)
			assert_int_equal(go_on(&rig, 0, rows[i].len, START), GUARD_PASS);
		assert_int_equal(go_on(&rig, 0, rows[i].len, START), GUARD_FLOOD);
		rig_free(&rig);
	}
}

static void a_block_must_come_to_its_end_in_time(void **state)
{
	(void)state;
	struct rig rig = rig_new();
	assert_int_equal(begin(&rig, END_STREAM, 1), GUARD_PASS);
	assert_int_equal(go_on(&rig, 0, 1, START + PATIENCE), GUARD_PASS);
	assert_int_equal(h2_guard_check_pace(&rig.guard, &rig.budget, START + PATIENCE),
			 GUARD_PASS);
	assert_int_equal(h2_guard_check_pace(&rig.guard, &rig.budget, START + PATIENCE + 1),
			 GUARD_SLOW);
	rig_free(&rig);
}

/* ---- what is judged when it is whole ---- */
static void fields_of_all_frames_count(void **state)
{
	(void)state;
	for (uint32_t more = 0; more < 2; more++) {
		struct rig rig = rig_new();
		assert_int_equal(scan(&rig, START), GUARD_PASS);
		put(&rig, (struct frame){ HEADERS, END_STREAM, 1, GUARD_FIELDS_MAX / 2 });
		put(&rig,
		    (struct frame){ CONTINUATION, END_HEADERS, 1, GUARD_FIELDS_MAX / 2 + more });
		for (size_t i = 0; i < rig.len; i++)
			if (rig.input[i] == 'x')
				rig.input[i] = '\x82';
		assert_int_equal(scan(&rig, START), more == 0 ? GUARD_PASS : GUARD_FORBIDDEN_FRAME);
		rig_free(&rig);
	}
}

static void a_length_in_a_later_frame_is_seen(void **state)
{
	(void)state;
	struct rig rig = rig_new();
	const struct part parts[PARTS_MAX] = {
		{ HEADERS, 0, 1,
		  BYTES("\x83\x86\x84\x0f\x0d\x05"
			"40") },
		{ CONTINUATION, END_HEADERS, 1, BYTES("001") },
		{ DATA, 0, 1, BYTES("x") },
	};
	const size_t len = write_parts(parts, rig.sent);
	assert_int_equal(feed(&rig, rig.sent, len, 1), GUARD_PASS);
	assert_int_equal(h2_guard_refuses(&rig.guard, 1), GUARD_BODY_TOO_LARGE);
	rig_free(&rig);
}

static void the_budget_counts_all_frames_of_a_head(void **state)
{
	(void)state;
	struct rig rig = rig_new();
	assert_int_equal(begin(&rig, 0, 1000), GUARD_PASS);
	assert_int_equal(rig.budget.unfinished_bytes, GUARD_UPLOAD_COST + 2 * 1000);
	assert_int_equal(go_on(&rig, END_HEADERS, 3000, START), GUARD_PASS);
	assert_int_equal(rig.budget.unfinished_bytes, GUARD_UPLOAD_COST + 2 * 4000);
	eat(&rig);
	/* None of them is a part of the body, which may be as large as any. */
	for (uint32_t n = 0; n < BODY_MAX / 10000; n++)
		assert_int_equal(give(&rig, (struct frame){ DATA, 0, 1, 10000 }, START),
				 GUARD_PASS);
	assert_int_equal(h2_guard_refuses(&rig.guard, 1), GUARD_PASS);
	rig_free(&rig);
}

/* ---- streams that were ended ---- */
/* Whether h2o is to be told, when it gets to the trailer, that its stream was refused. */
static void a_trailer_of_a_refused_stream_is_not_forgotten_before_h2o_has_it(void **state)
{
	(void)state;
	for (int split = 0; split < 2; split++) {
		struct rig rig = rig_new();
		const uint8_t flags = END_STREAM | (split ? 0 : END_HEADERS);
		assert_int_equal(begin(&rig, END_HEADERS, 9), GUARD_PASS);
		for (int n = 0; n < 5; n++)
			assert_int_equal(give(&rig, (struct frame){ DATA, 0, 1, 9000 }, START),
					 GUARD_PASS);
		assert_non_null(guard_ends_find(&rig.guard.ends, 1));
		put(&rig, (struct frame){ HEADERS, flags, 1, 100 });
		rig.len -= 50;
		assert_int_equal(scan(&rig, START), GUARD_PASS);
		assert_non_null(guard_ends_find(&rig.guard.ends, 1));
		rig.len += 50;
		assert_int_equal(h2_guard_scan(&rig.guard, &rig.budget, rig.input, &rig.len, START),
				 GUARD_PASS);
		if (split) {
			eat(&rig);
			assert_non_null(guard_ends_find(&rig.guard.ends, 1));
			assert_int_equal(go_on(&rig, END_HEADERS, 100, START), GUARD_PASS);
		}
		assert_non_null(guard_ends_find(&rig.guard.ends, 1));
		eat(&rig);
		assert_null(guard_ends_find(&rig.guard.ends, 1));
		rig_free(&rig);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(h2o_sees_one_frame_of_each),
		cmocka_unit_test(what_breaks_a_block_ends_the_connection),
		cmocka_unit_test(as_many_bytes_as_a_head_may_have),
		cmocka_unit_test(frames_that_bring_little_are_a_flood),
		cmocka_unit_test(a_block_must_come_to_its_end_in_time),
		cmocka_unit_test(fields_of_all_frames_count),
		cmocka_unit_test(a_length_in_a_later_frame_is_seen),
		cmocka_unit_test(the_budget_counts_all_frames_of_a_head),
		cmocka_unit_test(a_trailer_of_a_refused_stream_is_not_forgotten_before_h2o_has_it),
	};
	return cmocka_run_group_tests_name("h2_guard_split", tests, NULL, NULL);
}
