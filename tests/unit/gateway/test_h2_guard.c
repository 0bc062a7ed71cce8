/* Sequences of frames, each with the verdict they must end in; the input is also given byte by byte,
 * and eaten by h2o at every point at which it may eat. */
#include "gateway/h2_guard.h"

#include "gateway/h2_guard_block.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { DATA, HEADERS, PRIORITY, RST, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION };
enum { END_STREAM = 1, END_HEADERS = 4, ACK = 1 };
enum { BODY_MAX = 40000, INPUT_MAX = 1 << 20 };
/* Room for 14 uploads of three frames, and so for 100 of none; a worker has room for five more. */
enum { EACH = 39000, KEPT = EACH + GUARD_UPLOAD_COST + 2 * 9, FIT = 14, MORE = 5 };
enum { CONN_MAX = FIT * KEPT, WORKER_MAX = (FIT + MORE) * KEPT };

#define START (1000 * SEC)
#define PATIENCE (10 * SEC)

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

struct frame {
	uint8_t type, flags;
	uint32_t stream, len;
};

struct rig {
	struct h2_guard guard;
	struct guard_budget budget;
	char *input;
	size_t len;
	char *sent; /* a frame that comes in pieces */
	uint32_t next_stream;
};

static struct rig rig_new(void)
{
	struct rig rig = { .budget = { .body_bytes_max = BODY_MAX,
				       .conn_bytes_max = CONN_MAX,
				       .worker_bytes_max = WORKER_MAX,
				       .patience = PATIENCE },
			   .input = malloc(INPUT_MAX),
			   .sent = malloc(INPUT_MAX),
			   .next_stream = 1 };
	assert_non_null(rig.input);
	assert_non_null(rig.sent);
	h2_guard_init(&rig.guard, START);
	(void)memcpy(rig.input, preface, 24);
	rig.len = 24;
	return rig;
}

/* The budget is whole again when the connection goes. */
static void rig_free(struct rig *rig)
{
	h2_guard_fini(&rig->guard, &rig->budget);
	assert_int_equal(rig->budget.unfinished_bytes, 0);
	free(rig->input);
	free(rig->sent);
}

/* Returns its length. */
static size_t frame_write(struct frame f, char *into)
{
	const uint8_t head[9] = { (uint8_t)(f.len >> 16),
				  (uint8_t)(f.len >> 8),
				  (uint8_t)f.len,
				  f.type,
				  f.flags,
				  (uint8_t)(f.stream >> 24),
				  (uint8_t)(f.stream >> 16),
				  (uint8_t)(f.stream >> 8),
				  (uint8_t)f.stream };
	(void)memcpy(into, head, sizeof(head));
	(void)memset(into + sizeof(head), 'x', f.len);
	return sizeof(head) + f.len;
}

static void put(struct rig *rig, struct frame f)
{
	assert_true(rig->len + 9 + f.len <= INPUT_MAX);
	rig->len += frame_write(f, rig->input + rig->len);
}

/* As http_h2o_edge does it: h2o has eaten all whole frames. */
static void eat(struct rig *rig)
{
	size_t whole = rig->guard.next <= rig->len ? rig->guard.next : 0;
	h2_guard_ate(&rig->guard, whole);
	(void)memmove(rig->input, rig->input + whole, rig->len - whole);
	rig->len -= whole;
}

static enum guard_verdict scan(struct rig *rig, nsec_t now)
{
	enum guard_verdict verdict =
		h2_guard_scan(&rig->guard, &rig->budget, rig->input, &rig->len, now);
	if (verdict == GUARD_PASS)
		eat(rig);
	return verdict;
}

/* What comes in pieces of that size is scanned after each. */
static enum guard_verdict feed(struct rig *rig, const char *bytes, size_t len, size_t piece)
{
	enum guard_verdict verdict = GUARD_PASS;
	for (size_t at = 0; at < len && verdict == GUARD_PASS; at += piece) {
		size_t n = len - at < piece ? len - at : piece;
		assert_true(rig->len + n <= INPUT_MAX);
		(void)memcpy(rig->input + rig->len, bytes + at, n);
		rig->len += n;
		verdict = h2_guard_scan(&rig->guard, &rig->budget, rig->input, &rig->len, START);
	}
	return verdict;
}

static enum guard_verdict give(struct rig *rig, struct frame f, nsec_t now)
{
	put(rig, f);
	return scan(rig, now);
}

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
	{ "HEADERS that want a CONTINUATION",
	  GUARD_FORBIDDEN_FRAME,
	  1,
	  { { HEADERS, END_STREAM, 1, 3 }, LAST } },
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
	{ "101 bodies at once", GUARD_UPLOADS, 101, { { HEADERS, END_HEADERS, 1, 9 }, LAST } },
	{ "bit 1 of WINDOW_UPDATE ends no body",
	  GUARD_UPLOADS,
	  101,
	  { { HEADERS, END_HEADERS, 1, 9 }, { WINDOW, END_STREAM, 1, 4 }, LAST } },
	{ "bit 1 of PRIORITY ends no body",
	  GUARD_UPLOADS,
	  101,
	  { { HEADERS, END_HEADERS, 1, 9 }, { PRIORITY, END_STREAM, 1, 5 }, LAST } },
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
	{ "as many bodies too large as may go on at once",
	  GUARD_PASS,
	  GUARD_REFUSED_MAX,
	  { { HEADERS, END_HEADERS, 1, 9 },
	    { DATA, 0, 1, 16000 },
	    { DATA, 0, 1, 16000 },
	    { DATA, 0, 1, 8001 },
	    LAST } },
	{ "one more",
	  GUARD_BODY_TOO_LARGE,
	  GUARD_REFUSED_MAX + 1,
	  { { HEADERS, END_HEADERS, 1, 9 },
	    { DATA, 0, 1, 16000 },
	    { DATA, 0, 1, 16000 },
	    { DATA, 0, 1, 8001 },
	    LAST } },
	{ "a reset makes room for another",
	  GUARD_PASS,
	  50,
	  { { HEADERS, END_HEADERS, 1, 9 },
	    { DATA, 0, 1, 16000 },
	    { DATA, 0, 1, 16000 },
	    { DATA, 0, 1, 8001 },
	    { RST, 0, 1, 4 },
	    LAST } },
	{ "what goes on behind its refusal is borne for a while",
	  GUARD_PASS,
	  GUARD_DROPPED_MAX / (16000 + 3 * 16009),
	  { { HEADERS, END_HEADERS, 1, 9 },
	    { DATA, 0, 1, 16000 },
	    { DATA, 0, 1, 16000 },
	    { DATA, 0, 1, 16000 },
	    { DATA, 0, 1, 16000 },
	    { DATA, 0, 1, 16000 },
	    { DATA, END_STREAM, 1, 16000 },
	    LAST } },
	{ "and not for ever",
	  GUARD_BODY_TOO_LARGE,
	  GUARD_DROPPED_MAX / (16000 + 3 * 16009) + 1,
	  { { HEADERS, END_HEADERS, 1, 9 },
	    { DATA, 0, 1, 16000 },
	    { DATA, 0, 1, 16000 },
	    { DATA, 0, 1, 16000 },
	    { DATA, 0, 1, 16000 },
	    { DATA, 0, 1, 16000 },
	    { DATA, END_STREAM, 1, 16000 },
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
	{ "bodies that do not end, one more", GUARD_UNFINISHED_BYTES, FIT + 1, { UPLOAD, LAST } },
	{ "headers count as what h2o makes of them",
	  GUARD_UNFINISHED_BYTES,
	  CONN_MAX / (GUARD_UPLOAD_COST + 2 * 15000) + 1,
	  { { HEADERS, END_HEADERS, 1, 15000 }, LAST } },
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

static void time_gives_tokens_back_up_to_the_full_number(void **state)
{
	(void)state;
	struct rig rig = rig_new();
	const struct frame ping = { PING, 0, 0, 8 };
	for (int i = 0; i < 200; i++)
		assert_int_equal(give(&rig, ping, START), GUARD_PASS);
	/* 100 tokens a second, 5 for a ping */
	for (int i = 0; i < 20; i++)
		assert_int_equal(give(&rig, ping, START + SEC), GUARD_PASS);
	for (int i = 0; i < 200; i++)
		assert_int_equal(give(&rig, ping, START + 3600 * SEC), GUARD_PASS);
	assert_int_equal(give(&rig, ping, START + 3600 * SEC), GUARD_FLOOD);
	rig_free(&rig);
}

static void time_that_passes_in_small_steps_counts_in_full(void **state)
{
	(void)state;
	struct rig rig = rig_new();
	const struct frame ping = { PING, 0, 0, 8 };
	for (int i = 0; i < 200; i++)
		assert_int_equal(give(&rig, ping, START), GUARD_PASS);
	for (nsec_t ms = 55; ms <= 5500; ms += 55) /* 5.5 tokens each */
		assert_int_equal(give(&rig, ping, START + ms * MSEC), GUARD_PASS);
	rig_free(&rig);
}

static void small_frames_are_counted_by_the_second(void **state)
{
	(void)state;
	struct rig rig = rig_new();
	const struct frame window = { WINDOW, 0, 0, 4 };
	for (nsec_t s = 1; s <= 2; s++)
		for (int i = 0; i < 100000; i++)
			assert_int_equal(give(&rig, window, START + s * SEC + (nsec_t)i),
					 GUARD_PASS);
	assert_int_equal(give(&rig, window, START + 3 * SEC - 1), GUARD_FLOOD);
	rig_free(&rig);
}

static void answered_requests_give_tokens_back(void **state)
{
	(void)state;
	struct rig rig = rig_new();
	const struct frame reset = { RST, 0, 1, 4 };
	for (int i = 0; i < 5000; i++) {
		assert_int_equal(give(&rig, reset, START), GUARD_PASS);
		assert_int_equal(h2_guard_request_over(&rig.guard, GUARD_ANSWERED), GUARD_PASS);
	}
	rig_free(&rig);
}

/* How many may end so before it is too many. */
static int endings_borne(enum guard_ending ending)
{
	struct rig rig = rig_new();
	int count = 0;
	while (h2_guard_request_over(&rig.guard, ending) == GUARD_PASS && count < 1000)
		count++;
	rig_free(&rig);
	return count;
}

static void so_many_requests_may_end_before_their_answer(void **state)
{
	(void)state;
	assert_int_equal(endings_borne(GUARD_UNBEGUN), 100);
	assert_int_equal(endings_borne(GUARD_GIVEN_UP), 50);
	assert_int_equal(endings_borne(GUARD_ANSWERED), 1000);
}

/* Of those that are begun and given up at last. */
static void no_more_than_100_are_begun_for_nothing_however_they_are_given_up(void **state)
{
	(void)state;
	for (uint32_t at_once = 1; at_once <= 110; at_once++) {
		struct rig rig = rig_new();
		enum guard_verdict verdict = GUARD_PASS;
		uint32_t begun = 0, all = 0;
		while (verdict == GUARD_PASS) { /* fills up, and gives up so many of them */
			for (; h2_guard_may_begin(&rig.guard, begun); begun++)
				all++;
			for (uint32_t i = 0; i < at_once && begun != 0 && verdict == GUARD_PASS;
			     i++, begun--)
				verdict = h2_guard_request_over(&rig.guard, GUARD_GIVEN_UP);
		}
		assert_int_equal(verdict, GUARD_ABORTED);
		assert_int_equal(all, 100);
		rig_free(&rig);
	}
}

static void a_hundred_requests_are_worked_on_at_once_by_who_gives_up_none(void **state)
{
	(void)state;
	struct rig rig = rig_new();
	assert_true(h2_guard_may_begin(&rig.guard, 99));
	assert_false(h2_guard_may_begin(&rig.guard, 100));
	assert_int_equal(h2_guard_request_over(&rig.guard, GUARD_GIVEN_UP), GUARD_PASS);
	assert_false(h2_guard_may_begin(&rig.guard, 99));
	assert_true(h2_guard_may_begin(&rig.guard, 98));
	assert_int_equal(h2_guard_request_over(&rig.guard, GUARD_ANSWERED), GUARD_PASS);
	assert_true(h2_guard_may_begin(&rig.guard, 99));
	rig_free(&rig);
}

static void an_answered_request_makes_up_for_an_aborted_one(void **state)
{
	(void)state;
	struct rig rig = rig_new();
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(h2_guard_request_over(&rig.guard, GUARD_GIVEN_UP), GUARD_PASS);
		assert_int_equal(h2_guard_request_over(&rig.guard, GUARD_ANSWERED), GUARD_PASS);
	}
	assert_int_equal(rig.guard.aborted, 0);
	rig_free(&rig);
}

static void five_a_second_may_be_given_up(void **state)
{
	(void)state;
	struct rig rig = rig_new();
	for (nsec_t s = 1; s <= 100; s++) {
		for (int i = 0; i < 5; i++)
			assert_int_equal(h2_guard_request_over(&rig.guard, GUARD_GIVEN_UP),
					 GUARD_PASS);
		assert_int_equal(h2_guard_check_pace(&rig.guard, &rig.budget, START + s * SEC),
				 GUARD_PASS);
	}
	assert_int_equal(rig.guard.aborted, 0);
	rig_free(&rig);
}

static void streams_below_the_highest_may_begin_bodies(void **state)
{
	(void)state;
	struct rig rig = rig_new();
	assert_int_equal(
		give(&rig, (struct frame){ HEADERS, END_HEADERS | END_STREAM, 101, 9 }, START),
		GUARD_PASS);
	for (uint32_t stream = 1; stream <= 9; stream += 2) {
		assert_int_equal(
			give(&rig, (struct frame){ HEADERS, END_HEADERS, stream, 9 }, START),
			GUARD_PASS);
		assert_int_equal(give(&rig, (struct frame){ DATA, 0, stream, 1000 }, START),
				 GUARD_PASS);
	}
	assert_int_equal(rig.guard.bytes, 5 * (1000 + GUARD_UPLOAD_COST + 2 * 9));
	rig_free(&rig);
}

/* Its verdict; `stream` is new. */
static enum guard_verdict upload(struct rig *rig, uint32_t stream)
{
	enum guard_verdict verdict =
		give(rig, (struct frame){ HEADERS, END_HEADERS, stream, 9 }, START);
	for (int i = 0; i < 3 && verdict == GUARD_PASS; i++)
		verdict = give(rig, (struct frame){ DATA, 0, stream, EACH / 3 }, START);
	return verdict;
}

static void the_budget_is_shared_by_connections(void **state)
{
	(void)state;
	struct rig a = rig_new(), b = rig_new();
	for (uint32_t i = 0; i < FIT; i++)
		assert_int_equal(upload(&a, 2 * i + 1), GUARD_PASS);
	b.budget = a.budget; /* one worker: what a has filled, b sees */
	for (uint32_t i = 0; i < MORE; i++)
		assert_int_equal(upload(&b, 2 * i + 1), GUARD_PASS);
	assert_int_equal(upload(&b, 2 * MORE + 1), GUARD_UNFINISHED_BYTES);
	h2_guard_fini(&b.guard, &b.budget);
	assert_int_equal(b.budget.unfinished_bytes, FIT * KEPT);
	free(b.input);
	free(b.sent);
	rig_free(&a);
}

/* ---- bodies that are too large ---- */
/* Behind the frame that passes the limit, h2o sees the others and not that body's. */
static const struct seen {
	struct frame sent;
	uint8_t flags;
	bool gone, emptied;
} too_large[] = {
	{ { HEADERS, END_HEADERS, 1, 9 }, .flags = END_HEADERS },
	{ { HEADERS, END_HEADERS, 3, 9 }, .flags = END_HEADERS },
	{ { DATA, 0, 1, 16000 }, .flags = 0 },
	{ { DATA, 0, 1, 16000 }, .flags = 0 },
	{ { DATA, 0, 3, 5 }, .flags = 0 },
	{ { DATA, 0, 1, 9000 }, .flags = END_STREAM, .emptied = true },
	{ { PING, 0, 0, 8 }, .flags = 0 },
	{ { DATA, 0, 1, 0 }, .gone = true },
	{ { DATA, 0, 1, 700 }, .gone = true },
	{ { DATA, 0, 3, 300 }, .flags = 0 },
	{ { WINDOW, 0, 1, 4 }, .flags = 0 },
	{ { DATA, 0, 1, 1 }, .gone = true },
	{ { HEADERS, END_HEADERS | END_STREAM, 5, 70 }, .flags = END_HEADERS | END_STREAM },
	{ { DATA, END_STREAM, 3, 10 }, .flags = END_STREAM },
	{ { DATA, END_STREAM, 1, 200 }, .gone = true },
	{ { RST, 0, 1, 4 }, .flags = 0 },
	{ { PING, 0, 0, 8 }, .flags = 0 },
};

static void what_h2o_sees_of_a_body_too_large_is_the_same_however_it_comes(void **state)
{
	(void)state;
	const size_t pieces[] = { 1, 2, 9, 10, 700, 16008, 16009, 20000, INPUT_MAX };
	struct rig all = rig_new(), wanted = rig_new();
	for (size_t i = 0; i < sizeof(too_large) / sizeof(too_large[0]); i++) {
		struct frame frame = too_large[i].sent;
		put(&all, frame);
		frame.flags = too_large[i].flags;
		frame.len = too_large[i].emptied ? 0 : frame.len;
		if (!too_large[i].gone)
			put(&wanted, frame);
	}
	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		struct rig rig = rig_new();
		assert_int_equal(feed(&rig, all.input + 24, all.len - 24, pieces[i]), GUARD_PASS);
		assert_int_equal(rig.len, wanted.len);
		assert_memory_equal(rig.input, wanted.input, wanted.len);
		assert_true(h2_guard_refuses(&rig.guard, 1)); /* until h2o has it */
		assert_false(h2_guard_refuses(&rig.guard, 3));
		eat(&rig);
		assert_int_equal(rig.len, 0);
		assert_false(h2_guard_refuses(&rig.guard, 1));
		assert_int_equal(rig.guard.bytes, 0);
		rig_free(&rig);
	}
	rig_free(&all);
	rig_free(&wanted);
}

static void a_frame_that_is_dropped_must_come_to_its_end_too(void **state)
{
	(void)state;
	struct rig rig = rig_new();
	for (int i = 0; i < 3; i++) {
		if (i == 0)
			put(&rig, (struct frame){ HEADERS, END_HEADERS, 1, 9 });
		put(&rig, (struct frame){ DATA, 0, 1, 16000 });
	}
	assert_int_equal(scan(&rig, START), GUARD_PASS);
	put(&rig, (struct frame){ DATA, 0, 1, 500 });
	rig.len -= 400;
	assert_int_equal(scan(&rig, START), GUARD_PASS);
	assert_int_equal(rig.len, 0);
	assert_int_equal(h2_guard_check_pace(&rig.guard, &rig.budget, START + PATIENCE),
			 GUARD_PASS);
	assert_int_equal(h2_guard_check_pace(&rig.guard, &rig.budget, START + PATIENCE + 1),
			 GUARD_SLOW);
	rig_free(&rig);
}

/* The headers of a body of so many bytes, given in two pieces. */
static void begin_body(struct rig *rig, const char *length, uint8_t flags, size_t cut)
{
	char bytes[100];
	size_t digits = strlen(length);
	uint32_t len = (uint32_t)(3 + digits);
	size_t head = frame_write((struct frame){ HEADERS, flags, 7, len }, bytes);
	bytes[head - len] = '\x0f'; /* not indexed, content-length */
	bytes[head - len + 1] = '\x0d';
	bytes[head - len + 2] = (char)digits;
	(void)memcpy(bytes + head - digits, length, digits);
	assert_int_equal(feed(rig, bytes, cut, cut), GUARD_PASS);
	assert_int_equal(feed(rig, bytes + cut, head - cut, head), GUARD_PASS);
}

static void a_length_that_is_too_large_ends_the_request_with_its_first_data(void **state)
{
	(void)state;
	const struct {
		const char *length, *seen;
		uint8_t flags;
	} rows_[] = {
		{ "40000", "40000", END_HEADERS },
		{ "40001", "00000", END_HEADERS },
		{ "99999999999", "00000000000", END_HEADERS },
		{ "99999999999", "99999999999", END_HEADERS | END_STREAM },
		{ "x", "x", END_HEADERS },
	};
	for (size_t i = 0; i < sizeof(rows_) / sizeof(rows_[0]); i++)
		for (size_t cut = 1; cut < 12; cut++) {
			struct rig rig = rig_new();
			begin_body(&rig, rows_[i].length, rows_[i].flags, cut);
			assert_int_equal(rig.input[24 + 4], rows_[i].flags);
			assert_memory_equal(rig.input + 24 + 12, rows_[i].seen,
					    strlen(rows_[i].seen));
			assert_false(h2_guard_refuses(&rig.guard, 7));
			eat(&rig);
			assert_int_equal(give(&rig, (struct frame){ DATA, 0, 9, 10 }, START),
					 GUARD_PASS);
			put(&rig, (struct frame){ DATA, 0, 7, 900 });
			assert_int_equal(
				h2_guard_scan(&rig.guard, &rig.budget, rig.input, &rig.len, START),
				GUARD_PASS);
			bool refused = rows_[i].seen[0] == '0';
			assert_int_equal(h2_guard_refuses(&rig.guard, 7), refused);
			assert_int_equal(rig.len, refused ? 9 : 909);
			assert_int_equal(rig.input[4], refused ? END_STREAM : 0);
			rig_free(&rig);
		}
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

/* ---- pace ---- */
static enum guard_verdict pace(struct rig *rig, nsec_t now)
{
	return h2_guard_check_pace(&rig->guard, &rig->budget, now);
}

static void a_body_may_take_its_patience_and_no_longer(void **state)
{
	(void)state;
	struct rig rig = rig_new();
	assert_int_equal(give(&rig, (struct frame){ HEADERS, END_HEADERS, 1, 9 }, START),
			 GUARD_PASS);
	assert_int_equal(pace(&rig, START + PATIENCE), GUARD_PASS);
	assert_int_equal(pace(&rig, START + PATIENCE + 1), GUARD_SLOW);
	rig_free(&rig);
}

static void bytes_buy_a_body_time(void **state)
{
	(void)state;
	struct rig rig = rig_new();
	assert_int_equal(give(&rig, (struct frame){ HEADERS, END_HEADERS, 1, 9 }, START),
			 GUARD_PASS);
	assert_int_equal(give(&rig, (struct frame){ DATA, 0, 1, 16384 }, START), GUARD_PASS);
	assert_int_equal(pace(&rig, START + PATIENCE + SEC - 10 * USEC), GUARD_PASS);
	assert_int_equal(pace(&rig, START + PATIENCE + SEC), GUARD_SLOW);
	rig_free(&rig);
}

static void a_frame_behind_a_judged_header_must_come_to_its_end(void **state)
{
	(void)state;
	struct rig rig = rig_new();
	put(&rig, (struct frame){ WINDOW, 0, 0, 4 });
	rig.len -= 1;
	assert_int_equal(scan(&rig, START), GUARD_PASS);
	assert_int_equal(pace(&rig, START + PATIENCE), GUARD_PASS);
	assert_int_equal(scan(&rig, START + PATIENCE), GUARD_PASS); /* a part of it again */
	assert_int_equal(pace(&rig, START + PATIENCE + 1), GUARD_SLOW);
	rig_free(&rig);
}

static void a_stream_of_frames_that_never_ends_on_a_border_is_not_slow(void **state)
{
	(void)state;
	struct rig rig = rig_new();
	put(&rig, (struct frame){ WINDOW, 0, 0, 4 });
	for (nsec_t s = 0; s < 60; s++) { /* each read ends in the middle of the next header */
		put(&rig, (struct frame){ WINDOW, 0, 0, 4 });
		rig.len -= 9;
		assert_int_equal(scan(&rig, START + s * SEC), GUARD_PASS);
		assert_int_equal(pace(&rig, START + s * SEC), GUARD_PASS);
		rig.len += 9;
	}
	rig_free(&rig);
}

static void a_connection_at_rest_is_not_slow(void **state)
{
	(void)state;
	struct rig rig = rig_new();
	assert_int_equal(scan(&rig, START), GUARD_PASS);
	assert_int_equal(give(&rig, (struct frame){ HEADERS, END_HEADERS, 1, 9 }, START),
			 GUARD_PASS);
	assert_int_equal(give(&rig, (struct frame){ DATA, END_STREAM, 1, 9 }, START), GUARD_PASS);
	assert_int_equal(pace(&rig, START + 3600 * SEC), GUARD_PASS);
	rig_free(&rig);
}

static void memory_for_many_bodies_is_given_back_when_they_have_ended(void **state)
{
	(void)state;
	struct rig rig = rig_new();
	for (uint32_t stream = 1; stream <= 199; stream += 2)
		assert_int_equal(
			give(&rig, (struct frame){ HEADERS, END_HEADERS, stream, 1 }, START),
			GUARD_PASS);
	assert_int_equal(pace(&rig, START), GUARD_PASS);
	assert_non_null(rig.guard.many);
	for (uint32_t stream = 1; stream <= 199; stream += 2)
		assert_int_equal(give(&rig, (struct frame){ DATA, END_STREAM, stream, 1 }, START),
				 GUARD_PASS);
	assert_int_equal(pace(&rig, START), GUARD_PASS);
	assert_null(rig.guard.many);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sequences_end_as_they_must),
		cmocka_unit_test(sequences_end_the_same_byte_by_byte),
		cmocka_unit_test(a_frame_is_judged_by_its_header_alone),
		cmocka_unit_test(nothing_is_judged_before_the_preface_is_whole),
		cmocka_unit_test(input_that_h2o_leaves_is_not_judged_again),
		cmocka_unit_test(time_gives_tokens_back_up_to_the_full_number),
		cmocka_unit_test(time_that_passes_in_small_steps_counts_in_full),
		cmocka_unit_test(small_frames_are_counted_by_the_second),
		cmocka_unit_test(answered_requests_give_tokens_back),
		cmocka_unit_test(so_many_requests_may_end_before_their_answer),
		cmocka_unit_test(no_more_than_100_are_begun_for_nothing_however_they_are_given_up),
		cmocka_unit_test(a_hundred_requests_are_worked_on_at_once_by_who_gives_up_none),
		cmocka_unit_test(an_answered_request_makes_up_for_an_aborted_one),
		cmocka_unit_test(five_a_second_may_be_given_up),
		cmocka_unit_test(streams_below_the_highest_may_begin_bodies),
		cmocka_unit_test(the_budget_is_shared_by_connections),
		cmocka_unit_test(what_h2o_sees_of_a_body_too_large_is_the_same_however_it_comes),
		cmocka_unit_test(a_frame_that_is_dropped_must_come_to_its_end_too),
		cmocka_unit_test(a_length_that_is_too_large_ends_the_request_with_its_first_data),
		cmocka_unit_test(so_many_fields_and_no_more),
		cmocka_unit_test(what_stands_around_a_block_is_no_field),
		cmocka_unit_test(malformed_blocks_are_h2os),
		cmocka_unit_test(a_body_may_take_its_patience_and_no_longer),
		cmocka_unit_test(bytes_buy_a_body_time),
		cmocka_unit_test(a_frame_behind_a_judged_header_must_come_to_its_end),
		cmocka_unit_test(a_stream_of_frames_that_never_ends_on_a_border_is_not_slow),
		cmocka_unit_test(a_connection_at_rest_is_not_slow),
		cmocka_unit_test(memory_for_many_bodies_is_given_back_when_they_have_ended),
		cmocka_unit_test(every_cause_has_a_name_of_its_own),
	};
	return cmocka_run_group_tests_name("h2_guard", tests, NULL, NULL);
}
