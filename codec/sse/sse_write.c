#include "codec/sse/sse_write.h"

/* The next `c`, or `end`; `known` is what was found before, stale below `at`. */
static const char *next_of(const char *known, const char *at, const char *end, char c)
{
	if (known != NULL && known >= at)
		return known;
	const char *found = memchr(at, c, (size_t)(end - at));
	return found != NULL ? found : end;
}

/* JSON has line ends between its tokens only, where they mean nothing, and a line end would be the end
 * of the data. */
static void write_line(struct gather *g, const char *at, size_t len)
{
	const char *end = at + len, *lf = NULL, *cr = NULL;

	while (at < end) {
		lf = next_of(lf, at, end, '\n');
		cr = next_of(cr, at, end, '\r');
		const char *stop = lf < cr ? lf : cr;
		if (stop != at)
			gather_raw(g, slice_of(at, (size_t)(stop - at)));
		at = stop + 1;
	}
}

void sse_write_message(struct gather *event, const struct gather *json)
{
	gather_lit(event, "event: message\ndata: ");
	for (uint32_t i = 0; i < json->count; i++)
		write_line(event, json->v[i].iov_base, json->v[i].iov_len);
	gather_lit(event, "\n\n");
}
