#include "codec/sse/sse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { BUFFER = 256, TEXT = 4096, LARGE = 64 * 64 };

/* A splitter, and what it has found: "[name]data" for each event, in front of it "!" when it is too large. */
struct splitter {
	struct sse sse;
	char *buffer;       /* of exactly its size, so that ASan sees a byte beside it */
	size_t first, most; /* bytes of the buffer at first, and of the largest one */
	char found[TEXT];
	size_t len;
};

static void begin(struct splitter *s, size_t size)
{
	s->buffer = malloc(size);
	assert_non_null(s->buffer);
	sse_init(&s->sse, s->buffer, size);
	s->first = s->most = size;
	s->len = 0;
	s->found[0] = '\0';
}

static void end(struct splitter *s)
{
	free(s->buffer);
}

static void put(struct splitter *s, struct slice text)
{
	assert_true(s->len + text.len < TEXT);
	if (text.len != 0)
		(void)memcpy(s->found + s->len, text.at, text.len);
	s->len += text.len;
	s->found[s->len] = '\0';
}

static void move(struct splitter *s, size_t size)
{
	char *buffer = malloc(size);

	assert_non_null(buffer);
	sse_move(&s->sse, buffer, size);
	free(s->buffer);
	s->buffer = buffer;
}

/* Every read has memory of its own, which is gone afterwards. SSE_FULL if any event in it was too large. */
static enum sse_got feed(struct splitter *s, struct slice bytes)
{
	char *copy = malloc(bytes.len == 0 ? 1 : bytes.len);
	enum sse_got got, all = SSE_NOTHING;
	struct sse_event event;

	assert_non_null(copy);
	if (bytes.len != 0)
		(void)memcpy(copy, bytes.at, bytes.len);
	sse_feed(&s->sse, slice_of(copy, bytes.len));
	while ((got = sse_next(&s->sse, &event)) != SSE_NOTHING) {
		if (got == SSE_FULL && s->sse.size < s->most) {
			move(s, 2 * s->sse.size < s->most ? 2 * s->sse.size : s->most);
			continue;
		}
		if (got == SSE_FULL) {
			sse_pass(&s->sse, &event);
			put(s, SLICE("!"));
			all = got;
		}
		put(s, SLICE("["));
		put(s, event.name);
		put(s, SLICE("]"));
		assert_false(slice_absent(event.data));
		put(s, event.data);
		if (got == SSE_EVENT && s->sse.size != s->first)
			move(s, s->first);
	}
	free(copy);
	return all;
}

/* All of it in reads of `step` bytes, the first one `first` bytes long. */
static void split(struct splitter *s, struct slice body, size_t first, size_t step)
{
	size_t len = first;

	for (size_t at = 0; at < body.len; at += len, len = step) {
		if (len > body.len - at)
			len = body.len - at;
		(void)feed(s, slice_of(body.at + at, len));
	}
}

static void check(const char *name, struct slice body, const char *expect, size_t first,
		  size_t step)
{
	struct splitter s;

	begin(&s, BUFFER);
	split(&s, body, first, step);
	if (strcmp(s.found, expect) != 0)
		fail_msg("%s, cut at %zu and every %zu: have %s, want %s", name, first, step,
			 s.found, expect);
	end(&s);
}

/* In one read, cut in two at every place, and in reads of one to five bytes. */
static void check_all_cuts(const char *name, struct slice body, const char *expect)
{
	for (size_t first = 1; first <= body.len; first++)
		check(name, body, expect, first, body.len);
	for (size_t step = 1; step <= 5; step++)
		check(name, body, expect, step, step);
}

static void events_are_the_same_however_they_are_cut(void **state)
{
	static const struct {
		const char *name;
		struct slice body;
		const char *expect;
	} rows[] = {
		{ "one", SLICE_INIT("data: a\n\n"), "[]a" },
		{ "two", SLICE_INIT("data: a\n\ndata: b\n\n"), "[]a[]b" },
		{ "name", SLICE_INIT("event: x\ndata: a\n\n"), "[x]a" },
		{ "name behind the data", SLICE_INIT("data: a\nevent: x\n\n"), "[x]a" },
		{ "the last name counts", SLICE_INIT("event: longer\nevent: x\ndata: a\n\n"),
		  "[x]a" },
		{ "a longer name later", SLICE_INIT("event: x\ndata: a\nevent: longer\n\n"),
		  "[longer]a" },
		{ "an empty name later", SLICE_INIT("event: x\ndata: a\nevent\n\n"), "[]a" },
		{ "a name lasts for one event", SLICE_INIT("event: x\ndata: a\n\ndata: b\n\n"),
		  "[x]a[]b" },
		{ "a name without data is none", SLICE_INIT("event: x\n\ndata: b\n\n"), "[]b" },
		{ "no space", SLICE_INIT("event:x\ndata:a\n\n"), "[x]a" },
		{ "one space of two", SLICE_INIT("data:  a\n\n"), "[] a" },
		{ "a tab is no space", SLICE_INIT("data:\ta\n\n"), "[]\ta" },
		{ "colons in the data", SLICE_INIT("data: a: b:\n\n"), "[]a: b:" },
		{ "lines are joined", SLICE_INIT("data: a\ndata: b\ndata:\ndata: c\n\n"),
		  "[]a\nb\n\nc" },
		{ "a name between lines", SLICE_INIT("data: a\nevent: xyz\ndata: b\n\n"),
		  "[xyz]a\nb" },
		{ "empty data", SLICE_INIT("data:\n\n"), "[]" },
		{ "a field without colon", SLICE_INIT("data\n\n"), "[]" },
		{ "two empty lines of data", SLICE_INIT("data\ndata\n\n"), "[]\n" },
		{ "comments", SLICE_INIT(": x\n:\n:data: no\ndata: a\n: y\ndata: b\n\n: z\n\n"),
		  "[]a\nb" },
		{ "other fields",
		  SLICE_INIT("id: 1\nretry: 5\nfoo: x\ndatax: y\ndat: z\n data: w\n"
			     "data: a\n\n"),
		  "[]a" },
		{ "the case of a field counts", SLICE_INIT("Data: x\n\ndata: a\n\n"), "[]a" },
		{ "blank lines between", SLICE_INIT("\n\n\ndata: a\n\n\n\ndata: b\n\n\n"),
		  "[]a[]b" },
		{ "CR LF", SLICE_INIT("event: x\r\ndata: a\r\n\r\ndata: b\r\n\r\n"), "[x]a[]b" },
		{ "CR", SLICE_INIT("event: x\rdata: a\r\rdata: b\r\r"), "[x]a[]b" },
		{ "mixed", SLICE_INIT("data: a\r\ndata: b\rdata: c\n\r\ndata: d\n\r"),
		  "[]a\nb\nc[]d" },
		{ "LF CR is two", SLICE_INIT("data: a\n\rdata: b\n\r"), "[]a[]b" },
		{ "byte order mark",
		  SLICE_INIT("\xef\xbb\xbf"
			     "data: a\n\n"),
		  "[]a" },
		{ "byte order mark alone in its line", SLICE_INIT("\xef\xbb\xbf\ndata: a\n\n"),
		  "[]a" },
		{ "byte order mark and a comment", SLICE_INIT("\xef\xbb\xbf: x\ndata: a\n\n"),
		  "[]a" },
		{ "a second mark belongs to the field",
		  SLICE_INIT("\xef\xbb\xbf\xef\xbb\xbf"
			     "data: a\n\ndata: b\n\n"),
		  "[]b" },
		{ "a mark behind the first line",
		  SLICE_INIT("\n\xef\xbb\xbf"
			     "data: a\n\ndata: b\n\n"),
		  "[]b" },
		{ "half a mark",
		  SLICE_INIT("\xef\xbb"
			     "data: a\n\ndata: b\n\n"),
		  "[]b" },
		{ "characters of several bytes",
		  SLICE_INIT("data: Gr\xc3\xbc\xc3\x9f"
			     "e\n\n"),
		  "[]Gr\xc3\xbc\xc3\x9f"
		  "e" },
		{ "no blank line at the end", SLICE_INIT("data: a\n\ndata: b\n"), "[]a" },
		{ "no line end at the end", SLICE_INIT("data: a\n\ndata: b"), "[]a" },
		{ "nothing but a colon", SLICE_INIT(":"), "" },
		{ "a NUL is a byte like others", SLICE_INIT("data: a\n\nid: \0\ndata: b\n\n"),
		  "[]a[]b" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++)
		check_all_cuts(rows[i].name, rows[i].body, rows[i].expect);
}

/* `field` and as many bytes as make the line `line` bytes long. */
static size_t put_line(char *out, const char *field, size_t line)
{
	size_t len = strlen(field);

	(void)memcpy(out, field, len);
	(void)memset(out + len, 'x', line - len);
	out[line] = '\n';
	return line + 1;
}

/* With a buffer of BUFFER bytes in the end, that begins with `size`. */
static bool passes(struct slice body, size_t size, size_t first, size_t step)
{
	struct splitter s;

	begin(&s, size);
	s.most = BUFFER;
	split(&s, body, first, step);
	bool whole = strchr(s.found, '!') == NULL;
	end(&s);
	return whole;
}

/* What the buffer holds: data, name, the longest line and a byte between; the same for all cuts. */
static void an_event_is_too_large_for_every_cut_or_for_none(void **state)
{
	static const struct {
		const char *name;
		size_t first, event, second; /* lengths of lines: data, event, data; 0: none */
		bool fits;
	} rows[] = {
		{ "one line that just fits", BUFFER - 1, 0, 0, true },
		{ "one line and a byte", BUFFER, 0, 0, false },
		{ "two lines", 100, 0, BUFFER - 1 - 94, true },
		{ "two lines and a byte", 100, 0, BUFFER - 94, false },
		{ "a name", 100, 107, 0, true },
		{ "a name beside which a line does not fit", 100, 107, 62, false },
		{ "a name beside which it does", 100, 107, 61, true },
		{ "a name that is too long", 100, BUFFER - 94, 0, false },
	};
	char body[3 * BUFFER];

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		size_t len = put_line(body, "data: ", rows[i].first);
		if (rows[i].event != 0)
			len += put_line(body + len, "event: ", rows[i].event);
		if (rows[i].second != 0)
			len += put_line(body + len, "data: ", rows[i].second);
		body[len++] = '\n';
		for (size_t first = 1; first <= len; first++)
			for (size_t size = BUFFER; size >= 64; size -= 64)
				if (passes(slice_of(body, len), size, first, len) != rows[i].fits)
					fail_msg("%s, cut at %zu, at first %zu bytes", rows[i].name,
						 first, size);
		if (passes(slice_of(body, len), BUFFER, 1, 1) != rows[i].fits ||
		    passes(slice_of(body, len), 64, 1, 1) != rows[i].fits)
			fail_msg("%s, byte by byte", rows[i].name);
	}
}

/* Every part of an event that is kept moves: data, an unfinished line, a name. */
static void an_event_goes_on_in_a_larger_buffer(void **state)
{
	static const struct slice body = SLICE_INIT(
		"data: 0\n\nevent: a-name-of-its-own\ndata: "
		"0123456789012345678901234567890123456789\n"
		"data: abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz\nevent: another-name\n"
		"data: 0123456789012345678901234567890123456789\n\ndata: 1\n\n");
	static const char expect[] = "[]0[another-name]0123456789012345678901234567890123456789\n"
				     "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz\n"
				     "0123456789012345678901234567890123456789[]1";

	(void)state;
	for (size_t first = 1; first <= body.len; first++)
		for (size_t step = 1; step <= body.len; step += 7) {
			struct splitter s;
			begin(&s, 64);
			s.most = 4096;
			split(&s, body, first, step);
			assert_string_equal(s.found, expect);
			assert_int_equal(s.sse.size, 64);
			end(&s);
		}
}

static void a_comment_may_have_any_length(void **state)
{
	struct splitter s;
	char line[BUFFER];

	(void)state;
	(void)memset(line, 'x', sizeof(line));
	begin(&s, BUFFER);
	assert_int_equal(feed(&s, SLICE("data: a\n:")), SSE_NOTHING);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(feed(&s, slice_of(line, sizeof(line))), SSE_NOTHING);
	assert_int_equal(feed(&s, SLICE("\n\n")), SSE_NOTHING);
	assert_string_equal(s.found, "[]a");
	end(&s);
}

static void a_line_that_never_ends_is_refused_once(void **state)
{
	struct splitter s;
	int reads = 0;

	(void)state;
	begin(&s, BUFFER);
	while (feed(&s, SLICE("retry: 1234567890")) == SSE_NOTHING)
		assert_true(++reads < BUFFER);
	for (reads = 0; reads < BUFFER; reads++)
		assert_int_equal(feed(&s, SLICE("1234567890")), SSE_NOTHING);
	assert_int_equal(feed(&s, SLICE("\n\ndata: a\n\n")), SSE_NOTHING);
	assert_string_equal(s.found, "![][]a");
	end(&s);
}

/* One line of it is filled up with x. */
static size_t put_large(char *body, const char *front, const char *line, const char *back)
{
	char *at = stpcpy(body, front), *end = at + LARGE + 1;

	at = stpcpy(at, line);
	(void)memset(at, 'x', (size_t)(end - at));
	return (size_t)(stpcpy(end, back) - body);
}

static void of_an_event_that_is_too_large_there_is_the_front_and_what_is_behind(void **state)
{
	static const struct {
		const char *name, *front, *line, *back, *expect;
	} rows[] = {
		{ "the only line", "data: 1\n\n", "data: {0123456789012345678901234567890123456789",
		  "\n\ndata: 2\n\n",
		  "[]1![]{0123456789012345678901234567890123456789xxxxxxxxxxxxxxxxx[]2" },
		{ "with a name, by CR LF", "event: e\r\n", "data:", "\r\n\r\ndata: 2\r\n\r\n",
		  "![e]xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx[]2" },
		{ "other lines behind it", "", "data: ", "\ndata: 1\n: c\r\r\ndata: 2\rdata: 3\n\n",
		  "![]xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx[]2\n3" },
		{ "CR LF within it", "", "data: ", "\r\ndata: 1\r\n\r\ndata: 2\r\n\r\n",
		  "![]xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx[]2" },
		{ "other data in front of it", "data: 1\n", "data: ", "\n\ndata: 2\n\n", "![][]2" },
		{ "a name", "data: 1\n", "event: ", "\n\ndata: 2\n\n", "![][]2" },
		{ "the end", "", "data: ", "\n",
		  "![]xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" },
	};
	static char body[LARGE + 256];
	struct splitter s;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		size_t len = put_large(body, rows[i].front, rows[i].line, rows[i].back);
		for (size_t cut = 1; cut <= len; cut++) {
			begin(&s, LARGE);
			split(&s, slice_of(body, len), cut, cut % 2 != 0 ? len : cut);
			if (strcmp(s.found, rows[i].expect) != 0)
				fail_msg("%s, cut at %zu:\n have %s\n want %s", rows[i].name, cut,
					 s.found, rows[i].expect);
			end(&s);
		}
	}
}

static void an_event_in_one_read_is_handed_out_where_it_lies(void **state)
{
	static const struct slice body = SLICE_INIT("event: x\ndata: abc\n\n");
	struct sse_event event;
	struct splitter s;

	(void)state;
	begin(&s, BUFFER);
	sse_feed(&s.sse, body);
	assert_int_equal(sse_next(&s.sse, &event), SSE_EVENT);
	assert_ptr_equal(event.name.at, body.at + 7);
	assert_ptr_equal(event.data.at, body.at + 15);
	char *copy = sse_writable(&s.sse, &event);
	assert_ptr_equal(event.data.at, copy);
	assert_true(copy >= s.buffer && copy + event.data.len <= s.buffer + BUFFER);
	assert_true(slice_eq(event.data, SLICE("abc")));
	assert_int_equal(sse_next(&s.sse, &event), SSE_NOTHING);
	end(&s);
}

/* What was written between two events is theirs only when it is in the same read as they are. */
static void an_event_is_known_as_it_was_written(void **state)
{
	static const struct {
		const char *name;
		struct slice before, body; /* two reads; the last event of the second */
		const char *written;       /* NULL: not to be seen */
	} rows[] = {
		{ "one", SLICE_INIT("data: x\n\n"), SLICE_INIT("data: a\n\n"), "data: a\n\n" },
		{ "with a name", SLICE_INIT("\n"), SLICE_INIT("event: n\ndata: a\nid: 1\n\n"),
		  "event: n\ndata: a\nid: 1\n\n" },
		{ "with comments", SLICE_INIT("\n"), SLICE_INIT(": c\ndata: a\n\n"),
		  ": c\ndata: a\n\n" },
		{ "behind blank lines", SLICE_INIT("\n"), SLICE_INIT("\n\ndata: a\n\n"),
		  "data: a\n\n" },
		{ "CR LF", SLICE_INIT("\n"), SLICE_INIT("data: a\r\n\r\n"), "data: a\r\n\r\n" },
		{ "CR, behind which a line feed may come", SLICE_INIT("\n"),
		  SLICE_INIT("data: a\r\r"), NULL },
		{ "the first of all, which may have a mark", SLICE_INIT(""),
		  SLICE_INIT("data: a\n\n"), NULL },
		{ "begun in the read before", SLICE_INIT("\nda"), SLICE_INIT("ta: a\n\n"), NULL },
		{ "a comment in the read before", SLICE_INIT("\n: c\n"), SLICE_INIT("data: a\n\n"),
		  "data: a\n\n" },
		{ "its name in the read before", SLICE_INIT("\nevent: n\n"),
		  SLICE_INIT("data: a\n\n"), NULL },
		{ "several lines of data", SLICE_INIT("\n"), SLICE_INIT("data: a\ndata: b\n\n"),
		  NULL },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct slice written = { NULL, 0 };
		struct sse_event event;
		struct splitter s;
		begin(&s, BUFFER);
		(void)feed(&s, rows[i].before);
		sse_feed(&s.sse, rows[i].body);
		while (sse_next(&s.sse, &event) == SSE_EVENT)
			written = sse_written(&s.sse);
		if (rows[i].written == NULL ? !slice_absent(written)
					    : !slice_eq(written, slice_str(rows[i].written)))
			fail_msg("%s: %.*s", rows[i].name, (int)written.len, written.at);
		end(&s);
	}
}

static void what_is_ahead_is_seen_between_events_only(void **state)
{
	static const struct {
		const char *name;
		struct slice before;
		bool seen;
	} rows[] = {
		{ "at the very beginning", SLICE_INIT(""), false },
		{ "behind an event", SLICE_INIT("data: a\n\n"), true },
		{ "behind a blank line", SLICE_INIT("\n"), true },
		{ "behind a comment", SLICE_INIT("\n: c\n"), true },
		{ "inside a comment", SLICE_INIT("\n: c"), false },
		{ "inside a line", SLICE_INIT("\nda"), false },
		{ "behind data", SLICE_INIT("\ndata: a\n"), false },
		{ "behind a name", SLICE_INIT("\nevent: a\n"), false },
		{ "behind half a line end", SLICE_INIT("data: a\n\r"), false },
	};
	static const struct slice body = SLICE_INIT("data: b\n\ndata: c\n\n");
	struct sse_event event;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct splitter s;
		begin(&s, BUFFER);
		(void)feed(&s, rows[i].before);
		sse_feed(&s.sse, body);
		struct slice ahead = sse_ahead(&s.sse);
		if (slice_absent(ahead) == rows[i].seen)
			fail_msg("%s", rows[i].name);
		if (rows[i].seen) {
			assert_true(slice_eq(ahead, body));
			sse_skip(&s.sse, 9);
			assert_int_equal(sse_next(&s.sse, &event), SSE_EVENT);
			assert_true(slice_eq(event.data, SLICE("c")));
			assert_true(slice_eq(sse_written(&s.sse), SLICE("data: c\n\n")));
			assert_true(slice_absent(sse_ahead(&s.sse)));
		}
		end(&s);
	}
}

static void empty_reads_change_nothing(void **state)
{
	struct splitter s;

	(void)state;
	begin(&s, BUFFER);
	assert_int_equal(feed(&s, SLICE("")), SSE_NOTHING);
	assert_int_equal(feed(&s, SLICE("da")), SSE_NOTHING);
	assert_int_equal(feed(&s, SLICE("")), SSE_NOTHING);
	assert_int_equal(feed(&s, SLICE("ta: a\r")), SSE_NOTHING);
	assert_int_equal(feed(&s, SLICE("")), SSE_NOTHING);
	assert_int_equal(feed(&s, SLICE("\n\r")), SSE_NOTHING);
	assert_string_equal(s.found, "[]a");
	end(&s);
}

/* Its line is shorter than the front of another would be. */
static void a_short_line_behind_a_long_name_has_no_front(void **state)
{
	enum { NAME = LARGE - 46 };
	static char body[LARGE + 256], expect[TEXT];
	struct splitter s;
	char *at = stpcpy(body, "event: ");

	(void)state;
	(void)memset(at, 'n', NAME);
	(void)stpcpy(at + NAME, "\ndata: 01234567890123456789012345678901234567890\n\ndata: 2\n\n");
	(void)snprintf(expect, sizeof(expect), "![%.*s][]2", NAME, at);
	for (size_t step = 1; step < LARGE; step = 3 * step + 1) {
		begin(&s, LARGE);
		split(&s, slice_str(body), step, step);
		assert_string_equal(s.found, expect);
		end(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_are_the_same_however_they_are_cut),
		cmocka_unit_test(an_event_is_too_large_for_every_cut_or_for_none),
		cmocka_unit_test(an_event_goes_on_in_a_larger_buffer),
		cmocka_unit_test(a_comment_may_have_any_length),
		cmocka_unit_test(
			of_an_event_that_is_too_large_there_is_the_front_and_what_is_behind),
		cmocka_unit_test(a_short_line_behind_a_long_name_has_no_front),
		cmocka_unit_test(a_line_that_never_ends_is_refused_once),
		cmocka_unit_test(an_event_in_one_read_is_handed_out_where_it_lies),
		cmocka_unit_test(an_event_is_known_as_it_was_written),
		cmocka_unit_test(what_is_ahead_is_seen_between_events_only),
		cmocka_unit_test(empty_reads_change_nothing),
	};
	return cmocka_run_group_tests_name("sse", tests, NULL, NULL);
}
