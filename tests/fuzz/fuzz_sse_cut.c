/* fuzz_sse_cut.c - a stream's pieces are the stream, however it arrives; its events are those that sse.h reads.
 *
 * [0] is the length of reads. */
#include "codec/base/must.h"
#include "codec/sse/sse.h"
#include "tests/support/sse_cut_rig.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BODY_MAX = 4096, ROOM = 2 * BODY_MAX };

static void check_same(const struct sse_cut_told *a, const struct sse_cut_told *b)
{
	must(a->cursors_len == b->cursors_len &&
	     memcmp(a->cursors, b->cursors, a->cursors_len) == 0);
	must(a->events_len == b->events_len && memcmp(a->events, b->events, a->events_len) == 0);
	must(a->rest == b->rest);
}

static void check_read(struct slice stream, const struct sse_cut_told *told)
{
	static char buffer[ROOM];
	struct sse sse;
	struct sse_event event;
	size_t at = 0;

	sse_init(&sse, buffer, sizeof(buffer));
	sse_feed(&sse, stream);
	while (sse_next(&sse, &event) == SSE_EVENT) {
		const struct slice name = slice_absent(event.name) ? SLICE("-") : event.name;
		const size_t len = name.len + 1 + event.data.len + 1;
		must(told->events_len - at >= len);
		must(memcmp(told->events + at, name.at, name.len) == 0);
		must(event.data.len == 0 ||
		     memcmp(told->events + at + name.len + 1, event.data.at, event.data.len) == 0);
		at += len;
	}
	must(at == told->events_len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sse_cut_told whole, cut, bytes, passed;

	if (size < 1 || size > BODY_MAX)
		return 0;
	const struct slice stream = slice_of((const char *)data + 1, size - 1);
	const size_t step = data[0] + (size_t)1;
	sse_cut_rig_run(stream, stream.len + 1, false, &whole);
	sse_cut_rig_run(stream, step, false, &cut);
	sse_cut_rig_run(stream, 1, false, &bytes);
	check_same(&whole, &cut);
	check_same(&whole, &bytes);
	check_read(stream, &whole);
	sse_cut_rig_run(stream, step, true, &passed);
	must(passed.rest <= whole.rest);
	must(passed.cursors_len >= whole.cursors_len &&
	     memcmp(passed.cursors, whole.cursors, whole.cursors_len) == 0);
	sse_cut_rig_free(&whole);
	sse_cut_rig_free(&cut);
	sse_cut_rig_free(&bytes);
	sse_cut_rig_free(&passed);
	return 0;
}
