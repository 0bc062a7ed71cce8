#include "codec/api/api_event.h"

#include "codec/json/json_scan.h"
#include "codec/sse/sse_line.h"

/* ---- where edits go ---- */

static bool is_line_end(char c)
{
	return c == '\n' || c == '\r';
}

/* The value of the next line of data at *at or behind, which there is, and *at behind it. */
static struct slice next_data(const char **at, const char *end)
{
	struct slice value = { NULL, 0 };

	while (*at < end && slice_absent(value)) {
		const char *from = *at;
		while (*at < end && !is_line_end(**at))
			++*at;
		value = FIELD_VALUE(slice_of(from, (size_t)(*at - from)), "data");
		while (*at < end && slice_absent(value) && is_line_end(**at))
			++*at;
	}
	return value;
}

/* The place in the event of a part of its data, all in one line: what joins several lines is a line feed each. */
static struct slice place_of(const struct sse_cut_piece *event, struct slice part)
{
	const char *at = event->raw.at, *end = at + event->raw.len;
	const char *from = event->data.at;

	if (part.at >= at && part.at + part.len <= end)
		return part;
	struct slice line = next_data(&at, end);
	for (const char *feed; (feed = memchr(from, '\n', (size_t)(part.at - from))) != NULL;) {
		line = next_data(&at, end);
		from = feed + 1;
	}
	return slice_of(line.at + (part.at - from), part.len);
}

static void put(struct api_stream *s, const struct sse_cut_piece *event, struct slice at,
		struct slice text)
{
	if (s->edits.count < MCP_EDITS_FEW)
		mcp_edits_put(&s->edits, place_of(event, at), text);
}

static void put_model(struct api_stream *s, const struct sse_cut_piece *event, struct slice model)
{
	const enum json_loose_kind kind = json_loose_kind(model);

	if (kind == JSON_LOOSE_STRING && !slice_eq(model, s->model))
		put(s, event, model, s->model);
}

/* The object that the data are, up to the end of the text: its end is not looked for here. Absent: no object. */
static struct slice object_of(struct slice data)
{
	const char *end = data.at + data.len, *at = scan_space(data.at, end);

	return at < end && *at == '{' ? slice_of(at, (size_t)(end - at)) : slice_of(NULL, 0);
}

/* ---- Messages ---- */

static bool is_named(const struct sse_cut_piece *event, struct slice type, const char *name)
{
	return slice_absent(event->name) ? json_loose_is(type, name)
					 : slice_eq(event->name, slice_str(name));
}

static enum api_event read_messages(struct api_stream *s, const struct sse_cut_piece *event)
{
	const struct slice object = object_of(event->data);
	struct slice type = { NULL, 0 };

	if (slice_absent(event->name))
		type = json_loose_member(object, "type");
	if (is_named(event, type, "message_start")) {
		const struct slice message = json_loose_member(object, "message");
		put_model(s, event, json_loose_member(message, "model"));
		if (s->paid != NULL)
			api_paid_usage(s->paid, json_loose_member(message, "usage"), false);
	} else if (is_named(event, type, "message_delta")) {
		s->stopped = true;
		if (s->paid != NULL)
			api_paid_usage(s->paid, json_loose_member(object, "usage"), true);
	} else if (is_named(event, type, "message_stop")) {
		return s->stopped ? API_EVENT_LAST : API_EVENT_BROKEN;
	} else if (is_named(event, type, "error")) {
		return API_EVENT_ERROR;
	}
	return API_EVENT_PASS;
}

/* ---- Chat ---- */

struct chunk {
	bool has_choices; /* an array */
	uint32_t choices;
	bool usage; /* an object */
	bool error;
};

/* A choice has its reason. Of several all have to have theirs: one that ends first is not the answer. */
static void note_end(struct api_stream *s, struct slice choice)
{
	enum { CHOICES_TOLD = 64 };
	double index = 0;

	if (s->choices > 1 && json_loose_number(json_loose_member(choice, "index"), &index) &&
	    index >= 0 && index < CHOICES_TOLD)
		s->ended |= UINT64_C(1) << (unsigned)index;
	else
		s->ended |= 1;
	const uint64_t wanted = s->choices < CHOICES_TOLD ? s->choices : CHOICES_TOLD;
	s->stopped = (uint64_t)__builtin_popcountll(s->ended) >= wanted;
}

/* The item that is next in `list`. False: the text is not JSON. */
static bool read_choice(struct api_stream *s, const struct sse_cut_piece *event,
			struct json_loose_walk *list)
{
	struct json_loose_walk walk;
	bool delta = false, empty = true, ends = false;
	const struct slice front = slice_of(list->at + 1, 0);

	if (!json_loose_enter(&walk, list) || walk.close != '}')
		return json_loose_value(list);
	while (json_loose_next(&walk)) {
		empty = false;
		delta |= json_loose_is(walk.name, "delta");
		if (json_loose_is(walk.name, "finish_reason"))
			ends = json_loose_kind(walk.value) == JSON_LOOSE_STRING;
	}
	if (walk.bad || !json_loose_leave(list, &walk))
		return false;
	if (ends)
		note_end(s, slice_of(front.at - 1, (size_t)(walk.at - front.at) + 1));
	if (!delta)
		put(s, event, front, empty ? SLICE("\"delta\":{}") : SLICE("\"delta\":{},"));
	return true;
}

/* The value that is next in `top`, likewise. */
static bool read_choices(struct api_stream *s, const struct sse_cut_piece *event,
			 struct json_loose_walk *top, struct chunk *chunk)
{
	struct json_loose_walk list;

	if (!json_loose_enter(&list, top) || list.close != ']')
		return json_loose_value(top);
	chunk->has_choices = true;
	while (json_loose_name(&list)) {
		chunk->choices++;
		if (!read_choice(s, event, &list))
			return false;
	}
	return !list.bad && json_loose_leave(top, &list);
}

static bool is_nothing(struct slice value)
{
	return json_loose_kind(value) == JSON_LOOSE_NULL || slice_eq(value, SLICE("false"));
}

static enum api_event read_chat(struct api_stream *s, const struct sse_cut_piece *event)
{
	struct chunk chunk = { .choices = 0 };
	struct json_loose_walk walk;

	if (slice_eq(slice_trim(event->data), SLICE("[DONE]")))
		return s->stopped ? API_EVENT_LAST : API_EVENT_BROKEN;
	json_loose_open(&walk, object_of(event->data));
	while (json_loose_name(&walk)) {
		const bool choices = json_loose_is(walk.name, "choices");
		if (choices ? !read_choices(s, event, &walk, &chunk) : !json_loose_value(&walk))
			return API_EVENT_PASS; /* no JSON: it is the reader's to judge */
		if (choices)
			continue;
		if (json_loose_is(walk.name, "model"))
			put_model(s, event, walk.value);
		else if (json_loose_is(walk.name, "usage"))
			chunk.usage = json_loose_kind(walk.value) == JSON_LOOSE_OBJECT;
		else if (json_loose_is(walk.name, "error"))
			chunk.error = !is_nothing(walk.value);
		else if (s->paid != NULL && json_loose_is(walk.name, "service_tier"))
			api_paid_tier(s->paid, walk.value);
	}
	if (chunk.error)
		return API_EVENT_ERROR;
	if (chunk.choices != 0 || (!chunk.has_choices && !chunk.usage))
		return API_EVENT_PASS;
	return chunk.usage && s->usage_asked ? API_EVENT_PASS : API_EVENT_DROP;
}

enum api_event api_event_read(struct api_stream *s, const struct sse_cut_piece *event)
{
	if (slice_absent(event->data))
		return API_EVENT_PASS;
	return api_is_anthropic(s->api) ? read_messages(s, event) : read_chat(s, event);
}
