/* sse_line.h - one line of an event stream; private to codec/sse. */
#ifndef CODEC_SSE_SSE_LINE_H
#define CODEC_SSE_SSE_LINE_H

#include "codec/base/slice.h"

/* Past "field:" and one space when the line has that field; absent when it has another. */
static inline struct slice sse_field_value(struct slice line, const char *field, size_t len)
{
	if (line.len < len || memcmp(line.at, field, len) != 0)
		return (struct slice){ NULL, 0 };
	if (line.len == len)
		return slice_of(line.at + len, 0);
	if (line.at[len] != ':')
		return (struct slice){ NULL, 0 };
	size_t skip = len + 1;
	skip += skip < line.len && line.at[skip] == ' ';
	return slice_of(line.at + skip, line.len - skip);
}
#define FIELD_VALUE(line, field) sse_field_value((line), "" field, sizeof(field) - 1)

/* What may stand in front of a stream. */
static const struct slice sse_byte_order_mark = SLICE_INIT("\xef\xbb\xbf");

#endif
