/* fuzz_sse.c - one stream, one answer: however it is cut, and whether its events are known by their
 * shape or read.
 *
 * Three bytes in front choose: [0] bit 0 the dialect, the others what the answer is read with; [1] the
 * length of reads and, bit 6, a small limit, bit 7, a third dialect; [2] which take of memory fails, '0' none. */
#include "codec/base/must.h"
#include "codec/dialects.h"
#include "tests/support/stream_case.h"

#include <stdlib.h>

enum {
	HEADER = 3,
	BODY_MAX = 3 * STREAM_EVENT_ROOM,
	BUFFER = 64,
	BUFFER_MOST = 4 * BUFFER,
	EVENT_MAX = STREAM_EVENT_ROOM * 5 / 2,
	LIMIT = 1 << 20,
	SMALL_LIMIT = 100
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- the splitter, with as small a buffer as there may be, and another one when that is full ---- */

/* What came of a stream: all its events in one number. */
struct events {
	uint64_t hash, count, too_large;
};

static void add_bytes(struct events *events, struct slice bytes)
{
	uint64_t hash = events->hash ^ bytes.len;

	for (size_t i = 0; i < bytes.len; i++)
		hash = (hash ^ (unsigned char)bytes.at[i]) * 0x100000001b3u;
	events->hash = hash;
}

static struct events split(struct slice body, size_t step)
{
	struct events events = { 0 };
	char *buffer = malloc(BUFFER), *larger = malloc(BUFFER_MOST);
	struct sse_event event;
	struct sse sse;

	must(buffer != NULL && larger != NULL);
	sse_init(&sse, buffer, BUFFER);
	for (size_t at = 0, len; at < body.len; at += len) {
		len = step < body.len - at ? step : body.len - at;
		enum sse_got got;
		sse_feed(&sse, slice_of(body.at + at, len));
		while ((got = sse_next(&sse, &event)) != SSE_NOTHING) {
			if (got == SSE_FULL && sse.size == BUFFER) {
				sse_move(&sse, larger, BUFFER_MOST);
				continue;
			}
			if (got == SSE_FULL)
				sse_pass(&sse, &event);
			must(event.data.len + event.name.len < BUFFER_MOST);
			add_bytes(&events, event.name);
			add_bytes(&events, event.data);
			events.count++;
			events.too_large += got == SSE_FULL;
			if (got == SSE_EVENT)
				sse_move(&sse, buffer, BUFFER);
		}
	}
	free(buffer);
	free(larger);
	return events;
}

static void drive_splitter(struct slice body, size_t step)
{
	struct events whole = split(body, body.len), cut = split(body, step);
	struct events bytes = split(body, 1);

	must(whole.hash == cut.hash && whole.count == cut.count &&
	     whole.too_large == cut.too_large);
	must(whole.hash == bytes.hash && whole.count == bytes.count &&
	     whole.too_large == bytes.too_large);
}

/* ---- streams ---- */

static void choose(struct stream_case *c, const uint8_t *header)
{
	static struct slice stops[] = { SLICE_INIT("END"), SLICE_INIT("\\n\\n") };
	uint8_t bits = header[0];

	c->dialect = dialect_get(header[1] & 128 ? DIALECT_RESPONSES
				 : bits & 1      ? DIALECT_OPENAI
						 : DIALECT_ANTHROPIC);
	c->context.native_schema = bits & 2;
	c->context.think_tags = bits & 4;
	c->context.emulate_stop = stops;
	c->context.emulate_stop_count = bits & 8 ? COUNT_OF(stops) : 0;
	c->context.calls_forbidden = bits & 64;
	c->context.audio_format = bits & 128 ? SLICE("wav") : (struct slice){ NULL, 0 };
	c->limits.answer_bytes_max = header[1] & 64 ? SMALL_LIMIT : LIMIT;
	c->limits.event_bytes_max = EVENT_MAX;
}

/* What a run must hold to, whatever it was given. */
static void check_run(struct stream_case *c)
{
	const struct stream *s = c->stream;
	struct gather g;

	must(s->left <= c->limits.answer_bytes_max);
	const size_t kept = c->limits.answer_bytes_max - s->left;
	must(c->used <= kept + (size_t)s->block_count * 6 * 1024 + 2 * STREAM_EVENT_ROOM);
	must(c->progress.begun == (c->progress.output_bytes != 0));
	if (c->err != ERR_OK) {
		must(c->failure.err == c->err);
		must(c->err == ERR_BUSY || c->err == ERR_CONTEXT_WINDOW ||
		     (c->err >= ERR_PROVIDER_RATE && c->err <= ERR_PROVIDER_ANSWER));
		return;
	}
	gather_init(&g, &c->arena);
	sampling_write_bare(&g, &c->result, c->context.revision, true, NULL);
	struct slice text = gather_flat(&g, &c->arena);
	struct fault fault = { 0 };
	/* only deeper than we read it may be what was deep before */
	must(slice_absent(text) || json_valid(text, NULL, c->work, &fault) ||
	     fault.err == ERR_TOO_DEEP || fault.err == ERR_TOO_MANY_KEYS);
}

/* What came of it, copied; absent when memory was refused. */
static struct slice run(struct stream_case *c, const uint8_t *header, struct slice body,
			size_t step, bool without_shapes)
{
	struct slice copy = { NULL, 0 };

	c->pool.fail_next = header[2] == '0' ? 0 : header[2];
	c->without_shapes = without_shapes;
	struct slice text = stream_case_read(c, body, (struct stream_cut){ .step = step });
	bool refused = c->err == ERR_BUSY || slice_absent(text);
	check_run(c);
	if (!refused) {
		copy = slice_of(malloc(text.len), text.len);
		must(copy.at != NULL);
		(void)memcpy((char *)(uintptr_t)copy.at, text.at, text.len);
	}
	arena_give(&c->arena);
	return copy;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct stream_case c; /* kept: large, and whole again after every use */
	struct slice outcomes[3];
	struct stream_progress progress[COUNT_OF(outcomes)];

	if (size < HEADER || size - HEADER > BODY_MAX)
		return 0;
	if (c.work == NULL)
		stream_case_init(&c, DIALECT_ANTHROPIC);
	const struct slice body = slice_of((const char *)data + HEADER, size - HEADER);
	const size_t step = (data[1] & 63) + 1u;
	drive_splitter(body, step);
	choose(&c, data);
	for (size_t i = 0; i < COUNT_OF(outcomes); i++) {
		outcomes[i] = run(&c, data, body, i == 1 ? step : 0, i == 2);
		progress[i] = c.progress;
	}
	for (size_t i = 1; i < COUNT_OF(outcomes); i++) {
		if (slice_absent(outcomes[0]) || slice_absent(outcomes[i]))
			continue; /* which take it was that failed may differ */
		must(slice_eq(outcomes[0], outcomes[i]));
		must(stream_progress_same(&progress[0], &progress[i]));
	}
	for (size_t i = 0; i < COUNT_OF(outcomes); i++)
		free((char *)(uintptr_t)outcomes[i].at);
	return 0;
}
