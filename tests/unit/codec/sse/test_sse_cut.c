/* Streams are cut into their events, in every spelling, however their bytes arrive. */
#include "codec/sse/sse_cut.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "codec/json/json_loose.h"
#include "codec/json/json_read.h"
#include "tests/support/sse_cut_rig.h"

#define BOM "\xef\xbb\xbf"

static const struct stream_row {
	const char *name;
	struct slice stream;
	const char *events, *cursors; /* sse_cut_rig.h */
	size_t rest;
} stream_rows[] = {
	{ "line feeds", SLICE_INIT("data: a\n\ndata: b\n\n"), "-|a\n-|b\n", "", 0 },
	{ "carriage returns and line feeds", SLICE_INIT("data: a\r\n\r\ndata: b\r\n\r\n"),
	  "-|a\n-|b\n", "", 0 },
	{ "carriage returns", SLICE_INIT("data: a\r\rdata: b\r\r"), "-|a\n-|b\n", "", 0 },
	{ "a mixture", SLICE_INIT("data: a\r\n\ndata: b\n\r\ndata: c\r\n\rdata: d\n\r"),
	  "-|a\n-|b\n-|c\n-|d\n", "", 0 },
	{ "no space", SLICE_INIT("data:a\n\n"), "-|a\n", "", 0 },
	{ "two spaces", SLICE_INIT("data:  a\n\n"), "-| a\n", "", 0 },
	{ "several lines", SLICE_INIT("data: {\ndata:  1\r\ndata: }\rdata:\n\n"), "-|{\n 1\n}\n\n",
	  "", 0 },
	{ "empty data", SLICE_INIT("data:\n\ndata\n\ndata: \n\n"), "-|\n-|\n-|\n", "", 0 },
	{ "two empty lines", SLICE_INIT("data\ndata\n\n"), "-|\n\n", "", 0 },
	{ "event", SLICE_INIT("event: message\ndata: a\nevent:endpoint\n\n"), "endpoint|a\n", "",
	  0 },
	{ "id", SLICE_INIT("id: 7\ndata: a\n\nid:8\n\nid\n\nid:  9\ndata: b\nid: 10\n\n"),
	  "-|a\n-|b\n", "7|-\n8|-\n|-\n10|-\n", 0 },
	{ "an id with NUL", SLICE_INIT("id: 7\nid: 8\0\ndata: a\n\n"), "-|a\n", "7|-\n", 0 },
	{ "priming", SLICE_INIT("id: x\nretry: 1500\ndata: \n\n"), "-|\n", "x|1500\n", 0 },
	{ "retry", SLICE_INIT("retry: 10\n\nretry: 1x\n\nretry:\n\nretry: 5\nretry: x\n\n"), "",
	  "-|10\n-|5\n", 0 },
	{ "retry too large", SLICE_INIT("retry: 99999999999999999999\n\n"), "", "", 0 },
	{ "comments", SLICE_INIT(": hello\n\n:\n\ndata: a\n: within\n\n: c\ndata: b\n\n"),
	  "-|a\n-|b\n", "", 0 },
	{ "a comment alone", SLICE_INIT(": hello\n"), "", "", 0 },
	{ "a mark", SLICE_INIT(BOM "data: a\n\n"), "-|a\n", "", 0 },
	{ "a mark alone", SLICE_INIT(BOM), "", "", 0 },
	{ "half a mark", SLICE_INIT("\xef\xbb"), "", "", 2 },
	{ "a mark later", SLICE_INIT("data: a\n\n" BOM "data: b\n\n"), "-|a\n", "", 0 },
	{ "two marks", SLICE_INIT(BOM BOM "data: a\n\n"), "", "", 0 },
	{ "unknown fields", SLICE_INIT("datax: a\nDATA: b\n data: c\nfoo\ndata: d\n\n"), "-|d\n",
	  "", 0 },
	{ "blank lines", SLICE_INIT("\n\r\n\r\ndata: a\n\n\n\n"), "-|a\n", "", 0 },
	{ "no end", SLICE_INIT("data: a\n\ndata: b\n"), "-|a\n", "", 8 },
	{ "no end of the line", SLICE_INIT("data: a\n\ndata: b"), "-|a\n", "", 7 },
	{ "nothing", SLICE_INIT(""), "", "", 0 },
	{ "blocks",
	  SLICE_INIT("data: 0123456789abcdef0123456789abcdef\ndata: 0123456789abcde\r\n"
		     "event: 0123456789abcdef\nid: 0123456789abcdef0123456789\r\r"),
	  "0123456789abcdef|0123456789abcdef0123456789abcdef\n0123456789abcde\n",
	  "0123456789abcdef0123456789|-\n", 0 },
};

static void a_stream_is_cut_the_same_way_however_it_arrives(void **state)
{
	struct sse_cut_told told;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(stream_rows); i++) {
		const struct stream_row *row = &stream_rows[i];
		for (size_t step = 1; step <= row->stream.len + 1; step++) {
			sse_cut_rig_run(row->stream, step, false, &told);
			if (strcmp(told.events, row->events) != 0 ||
			    strcmp(told.cursors, row->cursors) != 0 || told.rest != row->rest)
				fail_msg("%s by %zu: %s and %s, rest %zu", row->name, step,
					 told.events, told.cursors, told.rest);
			sse_cut_rig_free(&told);
		}
	}
}

static void an_event_that_passes_keeps_its_cursor(void **state)
{
	struct sse_cut_told told;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(stream_rows); i++) {
		const struct stream_row *row = &stream_rows[i];
		for (size_t step = 1; step <= row->stream.len + 1; step++) {
			sse_cut_rig_run(row->stream, step, true, &told);
			if (strcmp(told.cursors, row->cursors) != 0)
				fail_msg("%s by %zu: %s", row->name, step, told.cursors);
			sse_cut_rig_free(&told);
		}
	}
}

struct feeding {
	struct sse_cut cut;
	struct sse_cut_piece piece;
	struct arena_pool pool;
	struct arena arena;
};

static void begin(struct feeding *f)
{
	*f = (struct feeding){ .pool = { .keep_max = 4 } };
	sse_cut_init(&f->cut);
	arena_init(&f->arena, &f->pool, 1 << 16);
}

static void end(struct feeding *f)
{
	arena_give(&f->arena);
	arena_pool_fini(&f->pool);
}

static enum sse_cut_got next(struct feeding *f, struct slice kept)
{
	return sse_cut_next(&f->cut, kept, &f->arena, &f->piece);
}

#define assert_slice(slice, text) assert_true(slice_eq((slice), slice_str(text)))

static void pieces_are_the_bytes_themselves(void **state)
{
	struct feeding f;
	const struct slice kept = SLICE("event: m\r\nid: 3\r\ndata: {}\r\n\r\n: next\n");

	(void)state;
	begin(&f);
	assert_int_equal(next(&f, kept), SSE_CUT_EVENT);
	assert_ptr_equal(f.piece.raw.at, kept.at);
	assert_slice(f.piece.raw, "event: m\r\nid: 3\r\ndata: {}\r\n\r\n");
	assert_slice(f.piece.data, "{}");
	assert_ptr_equal(f.piece.data.at, strchr(kept.at, '{'));
	assert_slice(f.piece.name, "m");
	assert_slice(f.piece.id, "3");
	assert_false(f.piece.retries);
	assert_int_equal(next(&f, slice_str(": next\n")), SSE_CUT_EVENT);
	assert_slice(f.piece.raw, ": next\n");
	assert_true(slice_absent(f.piece.data));
	end(&f);
}

static void a_late_line_feed_goes_where_its_event_went(void **state)
{
	struct feeding f;

	(void)state;
	begin(&f);
	assert_int_equal(next(&f, SLICE("data: a\r\n\r")), SSE_CUT_EVENT);
	assert_int_equal(next(&f, SLICE("")), SSE_CUT_NOTHING);
	assert_int_equal(next(&f, SLICE("\ndata: b\r\r")), SSE_CUT_TAIL);
	assert_slice(f.piece.raw, "\n");
	assert_int_equal(next(&f, SLICE("data: b\r\r")), SSE_CUT_EVENT);
	assert_slice(f.piece.data, "b");
	assert_int_equal(next(&f, SLICE("d")), SSE_CUT_NOTHING);
	end(&f);
}

static void lines_are_joined_when_there_is_memory(void **state)
{
	struct feeding f;
	const struct slice kept = SLICE("id: 1\ndata: a\n: x\r\ndata: b\r\n\r\n");

	(void)state;
	begin(&f);
	f.pool.fail_next = 1;
	assert_int_equal(next(&f, kept), SSE_CUT_FULL);
	assert_int_equal(next(&f, kept), SSE_CUT_EVENT);
	assert_slice(f.piece.data, "a\nb");
	assert_slice(f.piece.raw, kept.at);
	assert_slice(f.piece.id, "1");
	end(&f);
}

static void data_are_seen_before_the_event_ends(void **state)
{
	struct feeding f;
	struct slice piece;

	(void)state;
	begin(&f);
	assert_int_equal(next(&f, SLICE("data: {\"a\"")), SSE_CUT_NOTHING);
	assert_true(sse_cut_peek(&f.cut, SLICE("data: {\"a\""), &piece));
	assert_slice(piece, "{\"a\"");
	assert_false(sse_cut_peek(&f.cut, SLICE("data: {\"a\""), &piece));
	assert_int_equal(next(&f, SLICE("data: {\"a\":\r\nid: 4\r\ndata")), SSE_CUT_NOTHING);
	assert_true(sse_cut_peek(&f.cut, SLICE("data: {\"a\":\r\nid: 4\r\ndata"), &piece));
	assert_slice(piece, ":");
	assert_false(sse_cut_peek(&f.cut, SLICE("data: {\"a\":\r\nid: 4\r\ndata"), &piece));
	const struct slice more = SLICE("data: {\"a\":\r\nid: 4\r\ndata:1}");
	assert_int_equal(next(&f, more), SSE_CUT_NOTHING);
	assert_true(sse_cut_peek(&f.cut, more, &piece));
	assert_slice(piece, "\n");
	assert_true(sse_cut_peek(&f.cut, more, &piece));
	assert_slice(piece, "1}");
	assert_false(sse_cut_peek(&f.cut, more, &piece));
	end(&f);
}

static void an_event_passes_in_parts(void **state)
{
	struct feeding f;
	struct slice piece;

	(void)state;
	begin(&f);
	assert_int_equal(next(&f, SLICE("id: 5\ndata: {\"resul")), SSE_CUT_NOTHING);
	sse_cut_pass(&f.cut);
	assert_int_equal(next(&f, SLICE("id: 5\ndata: {\"resul")), SSE_CUT_PART);
	assert_slice(f.piece.raw, "id: 5\ndata: {\"resul");
	assert_slice(f.piece.id, "5");
	assert_int_equal(next(&f, SLICE("t\":1")), SSE_CUT_PART);
	assert_slice(f.piece.raw, "t\":1");
	assert_true(slice_absent(f.piece.id));
	assert_int_equal(next(&f, SLICE("}\r\ni")), SSE_CUT_PART); /* the next line may be an id */
	assert_slice(f.piece.raw, "}\r\n");
	assert_int_equal(next(&f, SLICE("id: 6")), SSE_CUT_NOTHING);
	assert_false(sse_cut_peek(&f.cut, SLICE("id: 6"), &piece));
	assert_int_equal(next(&f, SLICE("id: 6\ndata: \n\ndata: b\n\n")), SSE_CUT_LAST);
	assert_slice(f.piece.raw, "id: 6\ndata: \n\n");
	assert_slice(f.piece.id, "6");
	assert_int_equal(next(&f, SLICE("data: b\n\n")), SSE_CUT_EVENT);
	assert_slice(f.piece.data, "b");
	end(&f);
}

/* ---- streams of real servers ----------------------------------------------------------------- */

static size_t check_chunk(struct slice line)
{
	struct arena_pool pool = { .keep_max = 16 };
	struct arena arena;
	struct sse_cut_told whole, bytes;
	struct slice object;

	arena_init(&arena, &pool, 1 << 24);
	assert_true(json_loose_whole(line, &object));
	const struct slice raw = json_loose_member(object, "raw");
	if (json_loose_kind(raw) != JSON_LOOSE_STRING)
		return 0;
	const struct slice stream = json_str_plain(slice_of(raw.at + 1, raw.len - 2), &arena);
	assert_false(slice_absent(stream));
	sse_cut_rig_run(stream, stream.len == 0 ? 1 : stream.len, false, &whole);
	sse_cut_rig_run(stream, 1, false, &bytes);
	assert_string_equal(whole.events, bytes.events);
	assert_string_equal(whole.cursors, bytes.cursors);
	assert_int_equal(whole.rest, bytes.rest);
	const size_t found = whole.events_len != 0;
	sse_cut_rig_free(&whole);
	sse_cut_rig_free(&bytes);
	arena_give(&arena);
	arena_pool_fini(&pool);
	return found;
}

static void captured_streams_come_out_byte_for_byte(void **state)
{
	static const char *const names[] = { "everything-sampling-ok.jsonl",
					     "conformance-tools-call-sampling.jsonl",
					     "backfill/legacy-upstream-side.jsonl",
					     "backfill/legacy-client-side.jsonl",
					     "raw/batch.jsonl",
					     "raw/legsrv-sample_get-get.jsonl" };
	const char *shared = getenv("SLUICE_SHARED");
	char path[512], *line = NULL;
	size_t room = 0, found = 0;

	(void)state;
	if (shared == NULL)
		skip();
	for (size_t i = 0; i < COUNT_OF(names); i++) {
		(void)snprintf(path, sizeof(path), "%s/contract/wire/%s", shared, names[i]);
		FILE *file = fopen(path, "r");
		if (file == NULL) {
			(void)fprintf(stderr, "SKIPPED: %s is not there\n", path);
			skip();
		}
		ssize_t len;
		while ((len = getline(&line, &room, file)) > 0)
			found += check_chunk(slice_of(line, (size_t)len));
		(void)fclose(file);
	}
	free(line);
	assert_true(found > 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stream_is_cut_the_same_way_however_it_arrives),
		cmocka_unit_test(an_event_that_passes_keeps_its_cursor),
		cmocka_unit_test(pieces_are_the_bytes_themselves),
		cmocka_unit_test(a_late_line_feed_goes_where_its_event_went),
		cmocka_unit_test(lines_are_joined_when_there_is_memory),
		cmocka_unit_test(data_are_seen_before_the_event_ends),
		cmocka_unit_test(an_event_passes_in_parts),
		cmocka_unit_test(captured_streams_come_out_byte_for_byte),
	};
	return cmocka_run_group_tests_name("sse_cut", tests, NULL, NULL);
}
