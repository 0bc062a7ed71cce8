#include "codec/sse/sse.h"

#include "codec/base/must.h"
#include "codec/isa/isa.h"
#include "codec/sse/sse_line.h"

enum { SIZE_MIN = 64, FRONT_SHARE = 64, FRONT_MAX = 1024 };

static const struct slice nothing = { NULL, 0 };

void sse_init(struct sse *sse, char *buffer, size_t size)
{
	must(buffer != NULL && size >= SIZE_MIN);
	*sse = (struct sse){ .buffer = buffer, .size = size };
}

/* Whether what comes next is the first byte of an event, and cannot be a byte order mark. */
static bool between_events(const struct sse *sse)
{
	if (!sse->begun || sse->after_cr)
		return false;
	return sse->given || (slice_absent(sse->event.data) && slice_absent(sse->event.name) &&
			      sse->line_len == 0 && !sse->comment);
}

static uint64_t line_ends(const char *block)
{
	struct isa_block b = isa_load(block);

	return isa_equal(b, '\n') | isa_equal(b, '\r');
}

/* Moves the window to `at`, which has bytes, or so that it ends with them. */
static void look(struct sse *sse, const char *at)
{
	size_t len = (size_t)(sse->end - sse->fed);
	char copy[ISA_BLOCK] = { 0 };

	if (sse->end - at >= ISA_BLOCK) {
		sse->window = at;
	} else if (len >= ISA_BLOCK) {
		sse->window = sse->end - ISA_BLOCK;
	} else {
		(void)memcpy(copy, sse->fed, len);
		sse->window = sse->fed;
		sse->line_ends = line_ends(copy);
		return;
	}
	sse->line_ends = line_ends(sse->window);
}

void sse_feed(struct sse *sse, struct slice bytes)
{
	must(sse->at == sse->end || sse->passing);
	sse->at = sse->fed = bytes.at;
	sse->end = bytes.len == 0 ? bytes.at : bytes.at + bytes.len;
	sse->window = NULL; /* nobody may have to look for lines */
	sse->begin = between_events(sse) ? sse->at : NULL;
}

/* ---- what has to be kept ---- */

/* Whether the event so far and a line of `len` bytes fit, with a line feed between. */
static bool fits(const struct sse *sse, size_t len)
{
	return len < sse->size && sse->event.data.len + sse->event.name.len < sse->size - len;
}

static char *data_end(const struct sse *sse)
{
	return sse->buffer + sse->event.data.len;
}

static void store_data(struct sse *sse)
{
	if (sse->data_stored || slice_absent(sse->event.data))
		return;
	(void)memmove(sse->buffer, sse->event.data.at, sse->event.data.len);
	sse->event.data.at = sse->buffer;
	sse->data_stored = true;
}

static void store_name(struct sse *sse)
{
	if (sse->name_stored || slice_absent(sse->event.name))
		return;
	char *to = sse->buffer + sse->size - sse->event.name.len;
	(void)memmove(to, sse->event.name.at, sse->event.name.len);
	sse->event.name.at = to;
	sse->name_stored = true;
}

/* The unfinished line: behind the data and the line feed that will join it to them. */
static char *line_begin(const struct sse *sse)
{
	return data_end(sse) + 1;
}

/* Keeps what the bytes fed still say: they are the caller's again. False when it is too much. */
static bool store_rest(struct sse *sse)
{
	size_t len = (size_t)(sse->end - sse->at);

	if (len != 0 && sse->line_len == 0 && *sse->at == ':')
		sse->comment = true;
	if (sse->comment)
		len = 0;
	if (!fits(sse, sse->line_len + len))
		return false;
	store_name(sse);
	store_data(sse);
	if (len != 0)
		(void)memcpy(line_begin(sse) + sse->line_len, sse->at, len);
	sse->line_len += len;
	sse->at = sse->end;
	return true;
}

void sse_move(struct sse *sse, char *buffer, size_t size)
{
	struct slice *data = &sse->event.data, *name = &sse->event.name;

	must(buffer != NULL && size >= SIZE_MIN && (sse->given || size > sse->size));
	if (!sse->given) { /* else nothing is kept */
		if (sse->line_len != 0)
			(void)memcpy(buffer + data->len + 1, line_begin(sse), sse->line_len);
		if (sse->data_stored && !slice_absent(*data))
			data->at = memcpy(buffer, data->at, data->len);
		if (sse->name_stored && !slice_absent(*name))
			name->at = memcpy(buffer + size - name->len, name->at, name->len);
	}
	sse->buffer = buffer;
	sse->size = size;
}

/* ---- lines ---- */

static void take_data(struct sse *sse, struct slice value, bool stored)
{
	if (slice_absent(sse->event.data)) {
		sse->event.data = value;
		sse->data_stored = false;
		if (stored)
			store_data(sse);
		return;
	}
	store_data(sse);
	char *to = data_end(sse);
	*to = '\n'; /* in front of the line, when that is in the buffer */
	(void)memmove(to + 1, value.at, value.len);
	sse->event.data.len += 1 + value.len;
}

static void take_name(struct sse *sse, struct slice value, bool stored)
{
	sse->event.name = value;
	sse->name_stored = false;
	if (stored)
		store_name(sse);
}

/* `stored`: the line lies in the buffer. */
static void take_line(struct sse *sse, struct slice line, bool stored)
{
	struct slice value = FIELD_VALUE(line, "data");

	if (!slice_absent(value)) {
		take_data(sse, value, stored);
		return;
	}
	value = FIELD_VALUE(line, "event");
	if (!slice_absent(value))
		take_name(sse, value, stored);
}

/* The end of the line at `at`: the next line feed or carriage return; `end` when there is none. */
static inline const char *line_end(struct sse *sse)
{
	const char *at = sse->at;

	for (;;) {
		uintptr_t offset = (uintptr_t)at - (uintptr_t)sse->window;
		uint64_t ends = offset < ISA_BLOCK ? sse->line_ends >> offset : 0;
		if (ends != 0)
			return at + __builtin_ctzll(ends);
		if (offset < ISA_BLOCK)
			at += ISA_BLOCK - offset;
		if (at >= sse->end)
			return sse->end;
		look(sse, at);
	}
}

/* Goes behind the line that ends at `end`. */
static inline void leave_line(struct sse *sse, const char *end)
{
	sse->at = end + 1;
	if (*end == '\r') {
		sse->after_cr = sse->at == sse->end;
		sse->at += !sse->after_cr && *sse->at == '\n';
	}
}

/* The line that ends at `end`, in one piece; false when the event is too large with it. */
static bool whole_line(struct sse *sse, const char *end, struct slice *line, bool *stored)
{
	*line = slice_of(sse->at, (size_t)(end - sse->at));
	*stored = sse->line_len != 0;
	if (*stored) {
		size_t len = sse->line_len + line->len;
		if (!fits(sse, len))
			return false;
		char *begin = line_begin(sse);
		(void)memcpy(begin + sse->line_len, line->at, line->len);
		*line = slice_of(begin, len);
		sse->line_len = 0;
	} else if (sse->comment || (line->len != 0 && line->at[0] == ':')) {
		sse->comment = true;
	} else if (!fits(sse, line->len)) {
		return false;
	}
	leave_line(sse, end);
	return true;
}

static struct slice without_mark(struct slice line)
{
	const struct slice mark = sse_byte_order_mark;

	return slice_starts(line, mark) ? slice_of(line.at + mark.len, line.len - mark.len) : line;
}

static void begin_event(struct sse *sse)
{
	sse->event = (struct sse_event){ .name = nothing, .data = nothing };
	sse->given = false;
	sse->begin = between_events(sse) ? sse->at : NULL;
}

/* ---- what is too large ---- */

/* The front of the data of the line that does not fit, which is the event's only one; else empty. The same
 * for every cut. */
static struct slice front_of(struct sse *sse)
{
	const size_t share = sse->size / FRONT_SHARE;
	const size_t most = share < FRONT_MAX ? share : FRONT_MAX; /* less than the line has */
	struct slice line = slice_of(sse->at, most);

	if (!slice_absent(sse->event.data) || !fits(sse, most))
		return SLICE("");
	if (sse->line_len != 0) { /* it begins in the buffer */
		if (sse->line_len < most)
			(void)memcpy(line_begin(sse) + sse->line_len, sse->at,
				     most - sse->line_len);
		line = slice_of(line_begin(sse), most);
	}
	const struct slice value = FIELD_VALUE(line, "data");
	return slice_absent(value) ? SLICE("") : value;
}

void sse_pass(struct sse *sse, struct sse_event *event)
{
	must(!sse->given && !sse->passing);
	sse->event.data = front_of(sse); /* not absent: no event begins here */
	sse->data_stored = sse->begun = sse->passing = true;
	*event = sse->event;
}

/* Goes behind the event that is too large; false: it has not ended yet. */
static bool pass_over(struct sse *sse)
{
	while (sse->at < sse->end) {
		if (sse->after_cr) {
			sse->after_cr = false;
			sse->at += *sse->at == '\n';
			continue;
		}
		const char *end = line_end(sse);
		sse->line_len += (size_t)(end - sse->at);
		sse->at = end;
		if (end == sse->end)
			break;
		const bool blank = sse->line_len == 0;
		sse->line_len = 0;
		leave_line(sse, end);
		if (blank) {
			sse->passing = false;
			begin_event(sse);
			return true;
		}
	}
	return false;
}

enum sse_got sse_next(struct sse *sse, struct sse_event *event)
{
	struct slice line;
	bool stored;

	if (sse->given && sse->at == sse->end)
		return SSE_NOTHING;
	if (sse->given)
		begin_event(sse);
	if (sse->passing && !pass_over(sse))
		return SSE_NOTHING;
	while (sse->at < sse->end) {
		if (sse->after_cr) {
			sse->after_cr = false;
			if (*sse->at == '\n') {
				sse->at++;
				continue;
			}
		}
		const char *end = line_end(sse);
		if (end == sse->end)
			break;
		if (!whole_line(sse, end, &line, &stored))
			return SSE_FULL;
		if (!sse->begun)
			line = without_mark(line);
		sse->begun = true;
		if (sse->comment) {
			sse->comment = false;
		} else if (line.len != 0) {
			take_line(sse, line, stored);
		} else if (slice_absent(sse->event.data)) {
			begin_event(sse);
		} else {
			sse->given = true;
			*event = sse->event;
			return SSE_EVENT;
		}
	}
	return store_rest(sse) ? SSE_NOTHING : SSE_FULL;
}

struct slice sse_written(const struct sse *sse)
{
	must(sse->given);
	if (sse->begin == NULL || sse->data_stored || sse->after_cr)
		return nothing;
	return slice_of(sse->begin, (size_t)(sse->at - sse->begin));
}

struct slice sse_ahead(const struct sse *sse)
{
	if (!between_events(sse) || sse->at == sse->end)
		return nothing;
	return slice_of(sse->at, (size_t)(sse->end - sse->at));
}

void sse_skip(struct sse *sse, size_t len)
{
	must(len <= (size_t)(sse->end - sse->at));
	sse->at += len;
	sse->begin = sse->at;
	sse->given = true;
}

char *sse_writable(struct sse *sse, struct sse_event *event)
{
	must(sse->given && sse->line_len == 0);
	store_data(sse);
	event->data = sse->event.data;
	return sse->buffer;
}
