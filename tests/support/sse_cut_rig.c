#include "tests/support/sse_cut_rig.h"

#include "codec/base/must.h"
#include "codec/sse/sse_cut.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct text {
	char *at;
	size_t len;
	FILE *file;
};

struct rig {
	struct sse_cut cut;
	struct arena arena;
	char *kept; /* a block of kept_len bytes */
	size_t kept_len;
	bool pass;
	struct text given, events, cursors, peeked;
	char id[256]; /* of the event that is passed, so far */
	bool has_id, retries;
	uint64_t retry_ms;
	size_t parts;
};

static void text_open(struct text *text)
{
	*text = (struct text){ .file = NULL };
	text->file = open_memstream(&text->at, &text->len);
	must(text->file != NULL);
}

static void text_add(struct text *text, struct slice bytes)
{
	must(bytes.len == 0 || fwrite(bytes.at, 1, bytes.len, text->file) == bytes.len);
	must(fflush(text->file) == 0);
}

static void text_close(struct text *text)
{
	must(fclose(text->file) == 0);
}

static void keep(struct rig *rig, struct slice more)
{
	const size_t len = rig->kept_len + more.len;
	char *kept = malloc(len == 0 ? 1 : len);

	must(kept != NULL);
	if (rig->kept_len != 0)
		(void)memcpy(kept, rig->kept, rig->kept_len);
	(void)memcpy(kept + rig->kept_len, more.at, more.len);
	free(rig->kept);
	rig->kept = kept;
	rig->kept_len = len;
}

static void drop(struct rig *rig, size_t len)
{
	char *kept = malloc(rig->kept_len - len == 0 ? 1 : rig->kept_len - len);

	must(kept != NULL && len <= rig->kept_len);
	rig->kept_len -= len;
	(void)memcpy(kept, rig->kept + len, rig->kept_len);
	free(rig->kept);
	rig->kept = kept;
}

static void write_cursor(struct rig *rig)
{
	char line[320];

	if (!rig->has_id && !rig->retries)
		return;
	int len = snprintf(line, sizeof(line), "%s|", rig->has_id ? rig->id : "-");
	if (rig->retries)
		len += snprintf(line + len, sizeof(line) - (size_t)len, "%" PRIu64, rig->retry_ms);
	else
		len += snprintf(line + len, sizeof(line) - (size_t)len, "-");
	text_add(&rig->cursors, slice_of(line, (size_t)len));
	text_add(&rig->cursors, SLICE("\n"));
	rig->has_id = rig->retries = false;
}

static void take_cursor(struct rig *rig, const struct sse_cut_piece *piece)
{
	if (!slice_absent(piece->id)) {
		rig->has_id = true;
		(void)snprintf(rig->id, sizeof(rig->id), "%.*s", (int)piece->id.len, piece->id.at);
	}
	if (piece->retries) {
		rig->retries = true;
		rig->retry_ms = piece->retry_ms;
	}
}

static void check_peeked(struct rig *rig, struct slice data)
{
	must(rig->peeked.len <= data.len);
	must(rig->peeked.len == 0 || memcmp(rig->peeked.at, data.at, rig->peeked.len) == 0);
	text_close(&rig->peeked);
	free(rig->peeked.at);
	text_open(&rig->peeked);
}

static void take(struct rig *rig, enum sse_cut_got got, const struct sse_cut_piece *piece)
{
	must(piece->raw.at == rig->kept && piece->raw.len != 0 && piece->raw.len <= rig->kept_len);
	must(got == SSE_CUT_EVENT || slice_absent(piece->data));
	text_add(&rig->given, piece->raw);
	take_cursor(rig, piece);
	rig->parts += got == SSE_CUT_PART || got == SSE_CUT_LAST;
	if (got == SSE_CUT_PART)
		return;
	write_cursor(rig);
	if (!slice_absent(piece->data)) {
		text_add(&rig->events, slice_absent(piece->name) ? SLICE("-") : piece->name);
		text_add(&rig->events, SLICE("|"));
		text_add(&rig->events, piece->data);
		text_add(&rig->events, SLICE("\n"));
	}
	check_peeked(rig,
		     got == SSE_CUT_LAST ? slice_of(rig->peeked.at, rig->peeked.len) : piece->data);
}

static void feed(struct rig *rig, struct slice bytes)
{
	struct sse_cut_piece piece;
	struct slice data;
	enum sse_cut_got got;

	keep(rig, bytes);
	while ((got = sse_cut_next(&rig->cut, slice_of(rig->kept, rig->kept_len), &rig->arena,
				   &piece)) != SSE_CUT_NOTHING) {
		must(got != SSE_CUT_FULL);
		take(rig, got, &piece);
		drop(rig, piece.raw.len);
		arena_give(&rig->arena);
	}
	if (rig->kept_len == 0)
		return;
	while (sse_cut_peek(&rig->cut, slice_of(rig->kept, rig->kept_len), &data))
		text_add(&rig->peeked, data);
	if (rig->pass && !rig->cut.passing) {
		sse_cut_pass(&rig->cut);
		feed(rig, SLICE(""));
	}
}

void sse_cut_rig_run(struct slice stream, size_t step, bool pass, struct sse_cut_told *out)
{
	struct arena_pool pool = { .keep_max = 16 };
	struct rig rig = { .pass = pass };

	sse_cut_init(&rig.cut);
	arena_init(&rig.arena, &pool, 1 << 24);
	text_open(&rig.given);
	text_open(&rig.events);
	text_open(&rig.cursors);
	text_open(&rig.peeked);
	for (size_t at = 0; at < stream.len; at += step)
		feed(&rig,
		     slice_of(stream.at + at, stream.len - at < step ? stream.len - at : step));
	out->rest = rig.kept_len;
	out->parts = rig.parts;
	text_add(&rig.given, slice_of(rig.kept_len == 0 ? "" : rig.kept, rig.kept_len));
	text_add(&rig.events, SLICE(""));
	text_add(&rig.cursors, SLICE(""));
	must(slice_eq(slice_of(rig.given.at, rig.given.len), stream));
	text_close(&rig.given);
	text_close(&rig.events);
	text_close(&rig.cursors);
	text_close(&rig.peeked);
	out->events = rig.events.at;
	out->events_len = rig.events.len;
	out->cursors = rig.cursors.at;
	out->cursors_len = rig.cursors.len;
	free(rig.given.at);
	free(rig.peeked.at);
	free(rig.kept);
	arena_give(&rig.arena);
	arena_pool_fini(&pool);
}

void sse_cut_rig_free(struct sse_cut_told *told)
{
	free(told->events);
	free(told->cursors);
}
