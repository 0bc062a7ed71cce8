/* wrap_lines.h - cuts a stream into lines, however its bytes were cut into reads; pure.
 *
 * A line that is longer than WRAP_LINE_MAX is handed out in pieces, as they come: it is passed on, but nobody reads
 * it. Zero is ready for the first byte. */
#ifndef GATEWAY_WRAP_WRAP_LINES_H
#define GATEWAY_WRAP_WRAP_LINES_H

#include "gateway/wrap/wrap_text.h"

#include <stdbool.h>

/* Larger than the body of any request that a gateway takes (16 MiB, unless it is told otherwise). */
enum { WRAP_LINE_MAX = 32 << 20 };

struct wrap_lines {
	struct wrap_text held; /* of the line that has no end yet */
	bool passing;          /* it is too long */
};

/* `whole`: a line with its line feed, or the last one without. Else a piece of one that is too long. */
typedef void wrap_line_fn(void *arg, struct slice bytes, bool whole);

/* `max` is WRAP_LINE_MAX, or less in tests. */
void wrap_lines_feed(struct wrap_lines *lines, struct slice bytes, size_t max, wrap_line_fn *got,
		     void *arg);

/* The stream is over: what is left is a line. */
void wrap_lines_end(struct wrap_lines *lines, wrap_line_fn *got, void *arg);

#endif
