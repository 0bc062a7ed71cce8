#include "gateway/wrap/wrap_lines.h"

#include <stdlib.h>

/* A long line's memory is not kept for the short ones behind it. */
enum { KEPT_MAX = 64 << 10 };

static void let_go(struct wrap_lines *lines)
{
	lines->held.len = 0;
	if (lines->held.room > KEPT_MAX)
		wrap_text_free(&lines->held);
}

/* The end of a line, or a piece of one that is too long. */
static void hand_out(struct wrap_lines *lines, struct slice bytes, bool whole, wrap_line_fn *got,
		     void *arg)
{
	if (lines->held.len == 0) {
		got(arg, bytes, whole);
		return;
	}
	wrap_text_add(&lines->held, bytes);
	got(arg, wrap_text_slice(&lines->held), whole);
	let_go(lines);
}

void wrap_lines_feed(struct wrap_lines *lines, struct slice bytes, size_t max, wrap_line_fn *got,
		     void *arg)
{
	const char *at = bytes.at, *end = bytes.at + bytes.len, *feed;

	while (at < end && (feed = memchr(at, '\n', (size_t)(end - at))) != NULL) {
		const struct slice rest = slice_of(at, (size_t)(feed + 1 - at));
		const bool whole = !lines->passing && lines->held.len + rest.len <= max;
		hand_out(lines, rest, whole, got, arg);
		lines->passing = false;
		at = feed + 1;
	}
	const struct slice rest = slice_of(at, (size_t)(end - at));
	if (rest.len == 0)
		return;
	if (lines->passing || lines->held.len + rest.len > max) {
		lines->passing = true;
		hand_out(lines, rest, false, got, arg);
	} else {
		wrap_text_add(&lines->held, rest);
	}
}

void wrap_lines_end(struct wrap_lines *lines, wrap_line_fn *got, void *arg)
{
	if (lines->held.len != 0)
		got(arg, wrap_text_slice(&lines->held), true);
	wrap_text_free(&lines->held);
	lines->passing = false;
}
