#include "tests/support/stream_cut.h"

#include "codec/base/must.h"

#include <stdlib.h>

static size_t next_read(struct stream_cut *cut, size_t at, size_t left)
{
	size_t len = left;
	int64_t size;

	if (cut->sizes != NULL) {
		must(json_to_int64(cut->sizes->text, &size) && (size_t)size <= left);
		cut->sizes = cut->sizes->next;
		return (size_t)size;
	}
	if (at < cut->once && cut->once - at < left)
		len = cut->once - at;
	return cut->step != 0 && cut->step < len ? cut->step : len;
}

enum stream_state stream_feed_cut(struct stream *s, struct slice body, struct stream_cut cut)
{
	enum stream_state state = STREAM_OPEN;

	for (size_t at = 0, len; at < body.len; at += len) {
		len = next_read(&cut, at, body.len - at);
		char *copy = malloc(len);
		must(copy != NULL);
		(void)memcpy(copy, body.at + at, len);
		state = stream_feed(s, slice_of(copy, len));
		free(copy);
	}
	return state;
}
