#include "codec/sse/sse_cut.h"

#include "codec/base/must.h"
#include "codec/json/json_scan.h"
#include "codec/sse/sse_line.h"

static const struct slice nothing = { NULL, 0 };

void sse_cut_init(struct sse_cut *cut)
{
	*cut = (struct sse_cut){ .begun = false };
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* At the next line feed or carriage return, or at `end`. */
static const char *line_end(const char *at, const char *end)
{
	return scan_either(at, end, '\n', '\r');
}

static struct slice part(struct slice kept, size_t from, size_t to)
{
	return slice_of(kept.at + from, to - from);
}

/* Passes over a line feed whose carriage return was the last byte seen before. */
static bool skip_line_feed(struct sse_cut *cut, struct slice kept)
{
	if (!cut->after_cr || cut->seen == kept.len)
		return false;
	cut->after_cr = false;
	if (kept.at[cut->seen] != '\n')
		return false;
	cut->line = ++cut->seen;
	return true;
}

/* The next line, without its end; moves behind that. False: it has none so far. */
static bool next_line(struct sse_cut *cut, struct slice kept, struct slice *line)
{
	const char *from = kept.at + cut->seen, *end = kept.at + kept.len;

	if (cut->seen == kept.len)
		return false;
	const char *at = line_end(from, end);
	const size_t begin = cut->line, to = (size_t)(at - kept.at);
	cut->seen = to;
	if (at == end)
		return false;
	*line = part(kept, begin, to);
	cut->line = ++cut->seen;
	cut->after_cr = *at == '\r';
	(void)skip_line_feed(cut, kept);
	return true;
}

static struct sse_cut_range range(struct slice kept, struct slice value)
{
	return (struct sse_cut_range){ (size_t)(value.at - kept.at), value.len };
}

static void take_data(struct sse_cut *cut, struct slice kept, struct slice value)
{
	if (cut->data_lines++ == 0)
		cut->data = range(kept, value);
	cut->data_bytes += value.len;
}

static void take_retry(struct sse_cut *cut, struct slice value)
{
	uint64_t retry_ms;

	if (!slice_to_u64(value, &retry_ms))
		return;
	cut->retries = true;
	cut->retry_ms = retry_ms;
}

/* `line` is neither blank nor a comment. */
static void take_line(struct sse_cut *cut, struct slice kept, struct slice line)
{
	struct slice value;

	if (!slice_absent(value = FIELD_VALUE(line, "data"))) {
		take_data(cut, kept, value);
	} else if (!slice_absent(value = FIELD_VALUE(line, "id"))) {
		if (value.len != 0 && memchr(value.at, '\0', value.len) != NULL)
			return;
		cut->has_id = true;
		cut->id = range(kept, value);
	} else if (!slice_absent(value = FIELD_VALUE(line, "event"))) {
		cut->has_name = true;
		cut->name = range(kept, value);
	} else if (!slice_absent(value = FIELD_VALUE(line, "retry"))) {
		take_retry(cut, value);
	}
}

/* ---- what is given out ----------------------------------------------------------------------- */

/* The front of what is kept, as far as it was seen to `end`, with the fields in it. */
static void give(struct sse_cut *cut, struct slice kept, size_t end, struct sse_cut_piece *piece)
{
	*piece = (struct sse_cut_piece){
		.raw = part(kept, 0, end),
		.name = cut->has_name ? slice_of(kept.at + cut->name.at, cut->name.len) : nothing,
		.id = cut->has_id ? slice_of(kept.at + cut->id.at, cut->id.len) : nothing,
		.retries = cut->retries,
		.retry_ms = cut->retry_ms,
	};
	cut->seen -= end;
	cut->line = cut->line < end ? 0 : cut->line - end;
	cut->has_name = cut->has_id = cut->retries = false;
	cut->retry_ms = 0;
}

/* Afterwards an event may begin. */
static void give_all(struct sse_cut *cut, struct slice kept, struct sse_cut_piece *piece)
{
	const bool after_cr = cut->after_cr;

	give(cut, kept, cut->seen, piece);
	*cut = (struct sse_cut){ .begun = true, .after_cr = after_cr };
}

/* All lines of data, of which there are several, joined; absent: no memory. */
static struct slice join_data(const struct sse_cut *cut, struct slice kept, struct arena *into)
{
	const char *at = kept.at + cut->data.at, *end = kept.at + cut->seen;
	const size_t len = cut->data_bytes + cut->data_lines - 1;
	char *text = arena_take(into, len), *to = text;
	size_t left = cut->data_lines;
	struct slice value = slice_of(at, cut->data.len);

	if (text == NULL)
		return nothing;
	for (;;) {
		if (!slice_absent(value)) {
			if (value.len != 0)
				(void)memcpy(to, value.at, value.len);
			to += value.len;
			at = value.at + value.len;
			if (--left == 0)
				return slice_of(text, len);
			*to++ = '\n';
		}
		const char *from =
			at +
			1; /* behind an end of a line: a line feed behind is a blank line here */
		at = line_end(from, end);
		must(at < end);
		value = FIELD_VALUE(slice_of(from, (size_t)(at - from)), "data");
	}
}

/* `blank`: where the line begins that has ended it. */
static enum sse_cut_got give_event(struct sse_cut *cut, struct slice kept, size_t blank,
				   struct arena *into, struct sse_cut_piece *piece)
{
	struct slice data = nothing;

	if (cut->data_lines != 0)
		data = cut->data_lines == 1 ? slice_of(kept.at + cut->data.at, cut->data.len)
					    : join_data(cut, kept, into);
	if (cut->data_lines != 0 && slice_absent(data)) {
		cut->seen = cut->line = blank;
		cut->after_cr = false;
		return SSE_CUT_FULL;
	}
	give_all(cut, kept, piece);
	piece->data = data;
	return SSE_CUT_EVENT;
}

/* Whether the unfinished line, which has no end, is one of data whatever follows. */
static bool begins_data(const struct sse_cut *cut, struct slice kept)
{
	return slice_starts(part(kept, cut->line, kept.len), SLICE("data:"));
}

static enum sse_cut_got give_part(struct sse_cut *cut, struct slice kept,
				  struct sse_cut_piece *piece)
{
	cut->in_data = cut->in_data || begins_data(cut, kept);
	const size_t end = cut->in_data ? cut->seen : cut->line;

	if (end == 0)
		return SSE_CUT_NOTHING;
	give(cut, kept, end, piece);
	return SSE_CUT_PART;
}

static enum sse_cut_got pass_on(struct sse_cut *cut, struct slice kept, struct sse_cut_piece *piece)
{
	struct slice line;

	(void)skip_line_feed(cut, kept);
	while (next_line(cut, kept, &line)) {
		const bool in_data = cut->in_data;
		cut->in_data = false;
		if (in_data)
			continue;
		if (line.len == 0) {
			give_all(cut, kept, piece);
			return SSE_CUT_LAST;
		}
		take_line(cut, kept, line);
	}
	return give_part(cut, kept, piece);
}

/* The mark in front of a stream, if it is there and not looked at yet. */
static enum sse_cut_got give_mark(struct sse_cut *cut, struct slice kept,
				  struct sse_cut_piece *piece)
{
	const struct slice mark = sse_byte_order_mark;

	cut->begun = true;
	if (slice_starts(kept, mark)) {
		cut->seen = mark.len;
		give(cut, kept, mark.len, piece);
		return SSE_CUT_EVENT;
	}
	cut->begun = !slice_starts(mark, kept);
	return SSE_CUT_NOTHING;
}

enum sse_cut_got sse_cut_next(struct sse_cut *cut, struct slice kept, struct arena *into,
			      struct sse_cut_piece *piece)
{
	struct slice line;

	must(cut->seen <= kept.len);
	if (kept.len == 0)
		return SSE_CUT_NOTHING;
	if (!cut->begun) {
		const enum sse_cut_got got = give_mark(cut, kept, piece);
		if (got != SSE_CUT_NOTHING || !cut->begun)
			return got;
	}
	if (cut->passing)
		return pass_on(cut, kept, piece);
	const bool tail = cut->seen == 0;
	if (skip_line_feed(cut, kept) && tail) {
		give_all(cut, kept, piece);
		return SSE_CUT_TAIL;
	}
	while (next_line(cut, kept, &line)) {
		const bool first = line.at == kept.at;
		if (line.len == 0 || (first && line.at[0] == ':'))
			return give_event(cut, kept, (size_t)(line.at - kept.at), into, piece);
		take_line(cut, kept, line);
	}
	return SSE_CUT_NOTHING;
}

void sse_cut_pass(struct sse_cut *cut)
{
	const struct sse_cut before = *cut;

	must(!cut->passing);
	*cut = (struct sse_cut){ .seen = before.seen,
				 .line = before.line,
				 .name = before.name,
				 .id = before.id,
				 .has_name = before.has_name,
				 .has_id = before.has_id,
				 .retries = before.retries,
				 .retry_ms = before.retry_ms,
				 .begun = before.begun,
				 .after_cr = before.after_cr,
				 .passing = true };
}

/* ---- a look at the unfinished event ---------------------------------------------------------- */

/* At the beginning of a line. False: nothing can be said of it so far. */
static bool peek_line(struct sse_cut *cut, struct slice kept)
{
	enum { TO_KNOW = 6 }; /* "data:" and whether a space follows */
	const char *at = kept.at + cut->peeked, *end = kept.at + cut->seen;
	const bool unfinished = cut->peeked == cut->line;

	if (unfinished && (end - at < TO_KNOW || !begins_data(cut, kept)))
		return false;
	const char *to = unfinished ? end : line_end(at, end);
	const struct slice value = FIELD_VALUE(slice_of(at, (size_t)(to - at)), "data");
	cut->peeking = !slice_absent(value);
	cut->peeked = (size_t)((cut->peeking ? value.at : to + 1) - kept.at);
	return true;
}

/* Within a line of data: the rest of it as far as it is there. */
static struct slice peek_data(struct sse_cut *cut, struct slice kept)
{
	const size_t from = cut->peeked;
	const bool unfinished = from > cut->line;
	const char *end = kept.at + cut->seen;
	const char *to = unfinished ? end : line_end(kept.at + from, end);

	cut->peeking = unfinished;
	cut->peeked = (size_t)(to - kept.at) + !unfinished;
	return part(kept, from, (size_t)(to - kept.at));
}

bool sse_cut_peek(struct sse_cut *cut, struct slice kept, struct slice *piece)
{
	must(cut->seen <= kept.len);
	while (!cut->passing && cut->peeked < cut->seen) {
		if (cut->peeking) {
			*piece = peek_data(cut, kept);
			if (piece->len != 0)
				return true;
			continue;
		}
		if (cut->peeked != 0 && kept.at[cut->peeked] == '\n' &&
		    kept.at[cut->peeked - 1] == '\r') {
			cut->peeked++;
			continue;
		}
		if (!peek_line(cut, kept))
			return false;
		if (cut->peeking && cut->peek_lines++ != 0) {
			*piece = SLICE("\n");
			return true;
		}
	}
	return false;
}
