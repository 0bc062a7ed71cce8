/* Which frames may come, and what of their header blocks: sequences, each with the verdict they must end
 * in; the input is also given byte by byte, and eaten by h2o at every point at which it may eat. */
#include "tests/unit/gateway/http/h2_guard_rig.h"

#include "gateway/http/h2_guard_block.h"

/* ---- sequences ---- */
enum { FRAMES_MAX = 8 };

struct row {
	const char *name;
	enum guard_verdict verdict;
	unsigned times; /* the frames, so often; odd stream numbers go up each time; 0: once */
	struct frame frames[FRAMES_MAX];
};

#define REQUEST                           \
	{ HEADERS, END_HEADERS, 1, 40 },  \
	{                                 \
		DATA, END_STREAM, 1, 2000 \
	}
#define UPLOAD                                                                              \
	{ HEADERS, END_HEADERS, 1, 9 }, { DATA, 0, 1, EACH / 3 }, { DATA, 0, 1, EACH / 3 }, \
	{                                                                                   \
		DATA, 0, 1, EACH / 3                                                        \
	}
#define LAST                      \
	{                         \
		.type = UINT8_MAX \
	}

static const struct row rows[] = {
	{ "a request without a body",
	  GUARD_PASS,
	  333,
	  { { HEADERS, END_HEADERS | END_STREAM, 1, 40 }, LAST } },
	{ "a request with a body", GUARD_PASS, 333, { REQUEST, LAST } },
	{ "a request with trailers",
	  GUARD_PASS,
	  166,
	  { { HEADERS, END_HEADERS, 1, 40 },
	    { DATA, 0, 1, 9 },
	    { HEADERS, END_HEADERS | END_STREAM, 1, 9 },
	    LAST } },
	{ "the largest frame",
	  GUARD_PASS,
	  1,
	  { { HEADERS, END_HEADERS, 1, 1 }, { DATA, 0, 1, 16384 }, LAST } },
	{ "a frame of a byte more", GUARD_FORBIDDEN_FRAME, 1, { { DATA, 0, 1, 16385 }, LAST } },
	{ "a frame as long as can be", GUARD_FORBIDDEN_FRAME, 1, { { PING, 0, 0, 0x8000 }, LAST } },
	{ "CONTINUATION", GUARD_FORBIDDEN_FRAME, 1, { { CONTINUATION, END_HEADERS, 1, 3 }, LAST } },
	{ "a header block in three frames",
	  GUARD_PASS,
	  199,
	  { { HEADERS, END_STREAM, 1, 3 },
	    { CONTINUATION, 0, 1, 3 },
	    { CONTINUATION, END_HEADERS, 1, 0 },
	    LAST } },
	{ "PUSH_PROMISE", GUARD_FORBIDDEN_FRAME, 1, { { PUSH, END_HEADERS, 1, 3 }, LAST } },
	{ "a frame behind a request is judged too",
	  GUARD_FORBIDDEN_FRAME,
	  1,
	  { REQUEST, { CONTINUATION, 0, 1, 0 }, LAST } },
	{ "334 requests that get no answer",
	  GUARD_FLOOD,
	  334,
	  { { HEADERS, END_HEADERS | END_STREAM, 1, 40 }, LAST } },
	{ "20 SETTINGS", GUARD_PASS, 20, { { SETTINGS, 0, 0, 6 }, LAST } },
	{ "21 SETTINGS", GUARD_FLOOD, 21, { { SETTINGS, 0, 0, 6 }, LAST } },
	{ "21 SETTINGS acknowledgements", GUARD_FLOOD, 21, { { SETTINGS, ACK, 0, 0 }, LAST } },
	{ "200 PINGs", GUARD_PASS, 200, { { PING, 0, 0, 8 }, LAST } },
	{ "201 PINGs", GUARD_FLOOD, 201, { { PING, 0, 0, 8 }, LAST } },
	{ "125 resets", GUARD_PASS, 125, { REQUEST, { RST, 0, 1, 4 }, LAST } },
	{ "126 resets", GUARD_FLOOD, 126, { REQUEST, { RST, 0, 1, 4 }, LAST } },
	{ "1,000 PRIORITYs", GUARD_PASS, 1000, { { PRIORITY, 0, 1, 5 }, LAST } },
	{ "1,001 PRIORITYs", GUARD_FLOOD, 1001, { { PRIORITY, 0, 1, 5 }, LAST } },
	{ "20 frames of an unknown type", GUARD_PASS, 20, { { 0x77, 0, 0, 3 }, LAST } },
	{ "21 frames of an unknown type", GUARD_FLOOD, 21, { { 0x77, 0, 0, 3 }, LAST } },
	{ "201 empty DATA", GUARD_FLOOD, 201, { { DATA, 0, 1, 0 }, LAST } },
	{ "empty DATA that end streams",
	  GUARD_PASS,
	  333,
	  { { HEADERS, END_HEADERS, 1, 9 }, { DATA, END_STREAM, 1, 0 }, LAST } },
	{ "100,000 WINDOW_UPDATEs", GUARD_PASS, 100000, { { WINDOW, 0, 0, 4 }, LAST } },
	{ "100,001 WINDOW_UPDATEs", GUARD_FLOOD, 100001, { { WINDOW, 0, 0, 4 }, LAST } },
	{ "100,000 DATA of a byte", GUARD_PASS, 100000, { { DATA, 0, 1, 1 }, LAST } },
	{ "100,001 DATA of a byte", GUARD_FLOOD, 100001, { { DATA, 0, 1, 1 }, LAST } },
	{ "DATA of 64 bytes are as good as any", GUARD_PASS, 100001, { { DATA, 0, 1, 64 }, LAST } },
	{ "100 bodies at once", GUARD_PASS, 100, { { HEADERS, END_HEADERS, 1, 9 }, LAST } },
	{ "101 bodies at once are no reason to close",
	  GUARD_PASS,
	  101,
	  { { HEADERS, END_HEADERS, 1, 9 }, LAST } },
	{ "a reset ends a body",
	  GUARD_PASS,
	  125,
	  { { HEADERS, END_HEADERS, 1, 9 }, { RST, 0, 1, 4 }, LAST } },
	{ "a body as large as can be",
	  GUARD_PASS,
	  1,
	  { { HEADERS, END_HEADERS, 1, 9 },
	    { DATA, 0, 1, 16000 },
	    { DATA, 0, 1, 16000 },
	    { DATA, 0, 1, 8000 },
	    LAST } },
	{ "a body too large is no reason to close",
	  GUARD_PASS,
	  50,
	  { { HEADERS, END_HEADERS, 1, 9 },
	    { DATA, 0, 1, 16000 },
	    { DATA, 0, 1, 16000 },
	    { DATA, 0, 1, 8001 },
	    { DATA, END_STREAM, 1, 1000 },
	    LAST } },
	{ "nor one whose end is too large",
	  GUARD_PASS,
	  50,
	  { { HEADERS, END_HEADERS, 1, 9 },
	    { DATA, 0, 1, 16000 },
	    { DATA, 0, 1, 16000 },
	    { DATA, END_STREAM, 1, 8001 },
	    LAST } },
	{ "nor many at once",
	  GUARD_PASS,
	  300,
	  { { HEADERS, END_HEADERS, 1, 9 },
	    { DATA, 0, 1, 16000 },
	    { DATA, 0, 1, 16000 },
	    { DATA, 0, 1, 8001 },
	    LAST } },
	{ "its frames cost as much as others",
	  GUARD_FLOOD,
	  201,
	  { { HEADERS, END_HEADERS, 1, 9 },
	    { DATA, 0, 1, 16000 },
	    { DATA, 0, 1, 16000 },
	    { DATA, 0, 1, 8001 },
	    { DATA, 0, 1, 0 },
	    { DATA, END_STREAM, 1, 1 },
	    LAST } },
	{ "bodies that do not end, as many as fit", GUARD_PASS, FIT, { UPLOAD, LAST } },
	{ "bodies that do not end, one more", GUARD_PASS, FIT + 1, { UPLOAD, LAST } },
	{ "DATA of a stream that is not known count for nothing",
	  GUARD_PASS,
	  50,
	  { { DATA, 0, 1, 10000 }, LAST } },
};

static enum guard_verdict run_row(const struct row *row, bool bytewise)
{
	struct rig rig = rig_new();
	enum guard_verdict verdict = GUARD_PASS;
	for (unsigned i = 0; i < row->times && verdict == GUARD_PASS; i++)
		for (size_t n = 0; row->frames[n].type != UINT8_MAX && verdict == GUARD_PASS; n++) {
			struct frame frame = row->frames[n];
			frame.stream += frame.stream == 0 ? 0 : 2 * i;
			size_t len = frame_write(frame, rig.sent);
			verdict = feed(&rig, rig.sent, len, bytewise ? 1 : len);
			if (verdict == GUARD_PASS)
				eat(&rig);
		}
	rig_free(&rig);
	return verdict;
}

static void sequences_end_as_they_must(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		print_message("  %s\n", rows[i].name);
		assert_int_equal(run_row(&rows[i], false), rows[i].verdict);
	}
}

static void sequences_end_the_same_byte_by_byte(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		print_message("  %s\n", rows[i].name);
		assert_int_equal(run_row(&rows[i], true), rows[i].verdict);
	}
}

/* ---- single rules ---- */
static void a_frame_is_judged_by_its_header_alone(void **state)
{
	(void)state;
	struct rig rig = rig_new();
	put(&rig, (struct frame){ CONTINUATION, 0, 1, 5000 });
	rig.len -= 5000;
	assert_int_equal(scan(&rig, START), GUARD_FORBIDDEN_FRAME);
	rig_free(&rig);
}

static void nothing_is_judged_before_the_preface_is_whole(void **state)
{
	(void)state;
	struct rig rig = rig_new();
	rig.len = 23;
	assert_int_equal(scan(&rig, START), GUARD_PASS);
	assert_false(rig.guard.preface);
	rig_free(&rig);
}

static void input_that_h2o_leaves_is_not_judged_again(void **state)
{
	(void)state;
	struct rig rig = rig_new();
	for (int i = 0; i < 20; i++)
		put(&rig, (struct frame){ SETTINGS, 0, 0, 6 });
	for (int again = 0; again < 3; again++) /* the gate is closed: h2o eats nothing */
		assert_int_equal(h2_guard_scan(&rig.guard, &rig.budget, rig.input, &rig.len, START),
				 GUARD_PASS);
	eat(&rig);
	assert_int_equal(rig.len, 0);
	rig_free(&rig);
}

static void every_cause_has_a_name_of_its_own(void **state)
{
	(void)state;
	for (int i = 0; i < GUARD_CAUSES; i++) {
		assert_non_null(guard_verdict_name((enum guard_verdict)i));
		for (int j = 0; j < i; j++)
			assert_string_not_equal(guard_verdict_name((enum guard_verdict)i),
						guard_verdict_name((enum guard_verdict)j));
	}
	assert_null(guard_verdict_name(GUARD_PASS));
}

/* ---- header blocks ---- */
struct block {
	uint8_t bytes[16384];
	size_t len;
};

static void add_fields(struct block *block, const char *bytes, size_t len, unsigned times)
{
	for (unsigned i = 0; i < times; i++) {
		assert_true(block->len + len <= sizeof(block->bytes));
		(void)memcpy(block->bytes + block->len, bytes, len);
		block->len += len;
	}
}

/* Whole, and cut in two at some places. */
static enum guard_verdict judge_block(const struct block *block, uint8_t flags)
{
	const size_t cuts[] = { 0, 1, 9, 10, block->len / 2, block->len + 8 };
	enum guard_verdict verdict = GUARD_PASS;
	for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
		struct rig rig = rig_new();
		put(&rig, (struct frame){ HEADERS, END_HEADERS | END_STREAM | flags, 1,
					  (uint32_t)block->len });
		(void)memcpy(rig.input + 24 + 9, block->bytes, block->len);
		size_t whole = rig.len;
		rig.len = 24 + cuts[i];
		assert_int_equal(h2_guard_scan(&rig.guard, &rig.budget, rig.input, &rig.len, START),
				 GUARD_PASS);
		rig.len = whole;
		enum guard_verdict one = scan(&rig, START);
		if (i != 0)
			assert_int_equal(one, verdict);
		verdict = one;
		rig_free(&rig);
	}
	return verdict;
}

static const struct field_row {
	const char *name, *bytes;
	size_t len;
} fields[] = {
#define FIELD(name, text)                    \
	{                                    \
		name, text, sizeof(text) - 1 \
	}
	FIELD("indexed, static", "\x82"),
	FIELD("indexed, dynamic, two bytes", "\xff\x00"),
	FIELD("indexed, as far as an index goes", "\xff\xff\xff\xff\x07"),
	FIELD("a change of the table's size", "\x20"),
	FIELD("literal, indexed name", "\x44\x01/"),
	FIELD("literal, new name", "\x40\x01n\x02vv"),
	FIELD("not indexed, indexed name", "\x04\x01/"),
	FIELD("not indexed, new name", "\x00\x01n\x02vv"),
	FIELD("never indexed, name by two bytes", "\x1f\x01\x01v"),
	FIELD("empty value", "\x00\x01n\x00"),
	FIELD("packed texts", "\x00\x81\xff\x82\xff\xff"),
#undef FIELD
};

static void so_many_fields_and_no_more(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		struct block block = { .len = 0 };
		print_message("  %s\n", fields[i].name);
		add_fields(&block, fields[i].bytes, fields[i].len, GUARD_FIELDS_MAX);
		assert_int_equal(judge_block(&block, 0), GUARD_PASS);
		add_fields(&block, fields[i].bytes, fields[i].len, 1);
		assert_int_equal(judge_block(&block, 0), GUARD_FORBIDDEN_FRAME);
	}
}

static void what_stands_around_a_block_is_no_field(void **state)
{
	(void)state;
	struct block block = { .len = 0 };
	add_fields(&block, "\x03", 1, 1); /* padding */
	add_fields(&block, "\x82", 1, 5); /* priority */
	add_fields(&block, "\x82", 1, GUARD_FIELDS_MAX);
	add_fields(&block, "\x82", 1, 3);
	assert_int_equal(judge_block(&block, 0x28), GUARD_PASS);
	add_fields(&block, "\x82", 1, 1);
	assert_int_equal(judge_block(&block, 0x28), GUARD_FORBIDDEN_FRAME);
}

static void malformed_blocks_are_h2os(void **state)
{
	(void)state;
	const struct field_row rows_[] = {
		{ "a text longer than the frame", "\x00\x01n\x7f\xff\x7f", 6 },
		{ "a text of 2^28 bytes", "\x00\x7f\xff\xff\xff\x7fn", 7 },
		{ "an integer without an end", "\xff\xff\xff\xff\xff\xff\xff", 7 },
		{ "cut off behind the name", "\x00\x01n", 3 },
	};
	for (size_t i = 0; i < sizeof(rows_) / sizeof(rows_[0]); i++) {
		struct block block = { .len = 0 };
		print_message("  %s\n", rows_[i].name);
		add_fields(&block, rows_[i].bytes, rows_[i].len, 1);
		assert_int_equal(judge_block(&block, 0), GUARD_PASS);
	}
	struct block padded = { .bytes = { 200 }, .len = 10 };
	assert_int_equal(judge_block(&padded, 0x08), GUARD_PASS);
	struct block empty = { .len = 0 };
	assert_int_equal(judge_block(&empty, 0x28), GUARD_PASS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sequences_end_as_they_must),
		cmocka_unit_test(sequences_end_the_same_byte_by_byte),
		cmocka_unit_test(a_frame_is_judged_by_its_header_alone),
		cmocka_unit_test(nothing_is_judged_before_the_preface_is_whole),
		cmocka_unit_test(input_that_h2o_leaves_is_not_judged_again),
		cmocka_unit_test(every_cause_has_a_name_of_its_own),
		cmocka_unit_test(so_many_fields_and_no_more),
		cmocka_unit_test(what_stands_around_a_block_is_no_field),
		cmocka_unit_test(malformed_blocks_are_h2os),
	};
	return cmocka_run_group_tests_name("h2_guard_frames", tests, NULL, NULL);
}
