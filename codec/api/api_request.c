/* api_request.c - the walk over a request, and what is asked of it as a whole. */
#include "codec/api/api_request.h"

#include "codec/api/api_walk.h"
#include "codec/base/must.h"
#include "codec/json/json_loose.h"
#include "codec/json/json_reader.h"
#include "codec/json/json_scan.h"
#include "codec/json/json_write.h"

const char api_field_required[] = "Field required";

/* ---- where it stands ---- */

enum { INDEX_ROOM = 12 }; /* a number of 32 bits, with brackets or a dot */

static char *put_index(char *to, uint32_t index, bool brackets)
{
	*to++ = brackets ? '[' : '.';
	to = pen_uint(to, index);
	if (brackets)
		*to++ = ']';
	return to;
}

struct slice api_walk_path(const struct api_walk *w)
{
	const bool brackets = !api_is_anthropic(w->out->api);
	size_t room = 0;

	for (uint32_t i = 0; i < w->depth; i++)
		room += INDEX_ROOM + PEN_UINT_MAX +
			(w->frames[i].row == NULL ? 0 : w->frames[i].row->name.len);
	char *text = arena_take(w->into, room), *to = text;
	if (text == NULL)
		return slice_of(NULL, 0);
	for (uint32_t i = 0; i < w->depth; i++) {
		const struct api_frame *frame = &w->frames[i];
		if (frame->array) {
			to = put_index(to, frame->index, brackets);
		} else if (frame->row != NULL) {
			if (to != text)
				*to++ = '.';
			to = pen_slice(to, frame->row->name);
		}
	}
	return slice_of(text, (size_t)(to - text));
}

bool api_walk_fail(struct api_walk *w, enum err err, const char *detail)
{
	if (w->r.fault.err != ERR_OK || w->fault->err != ERR_OK)
		return false;
	*w->fault = (struct fault){
		.err = err, .offset = json_offset(&w->r), .path = api_walk_path(w), .detail = detail
	};
	return false;
}

/* ---- the walk ---- */

enum err api_field_error(uint8_t field)
{
	switch (field) {
	case API_MAX_TOKENS:
	case API_MAX_COMPLETION_TOKENS:
		return ERR_MAX_TOKENS;
	case API_MESSAGE_LIST:
		return ERR_MESSAGES;
	default:
		return ERR_FIELD;
	}
}

static bool read_member(struct api_walk *w, struct api_frame *frame, struct slice name)
{
	const struct api_found found =
		api_member_find((enum api_argument)frame->place, w->out->api, name);

	frame->row = found.row;
	if (found.row == NULL)
		return reader_new_key(&w->r, name) && json_skip(&w->r, NULL);
	if (!found.exact)
		return api_walk_fail(
			w, ERR_FIELD,
			"a member's name is this but for case: other readers take it for this");
	if ((frame->seen & found.bit) != 0)
		return reader_same_key(&w->r, name);
	frame->seen |= found.bit;
	const enum json_kind kind = json_peek(&w->r);
	if (kind == JSON_BAD)
		return false;
	if (kind != JSON_NULL && (frame->row->kinds >> kind & 1) == 0)
		return api_walk_fail(w, api_field_error(frame->row->field),
				     api_kinds_text(frame->row->kinds));
	return api_walk_act(w, kind);
}

/* An item that is no object means nothing, but for messages. */
static bool read_item(struct api_walk *w, struct api_frame *frame)
{
	const enum json_kind kind = json_peek(&w->r);

	if (kind == JSON_OBJECT)
		return api_walk_enter(w, kind, (enum api_argument)frame->place, API_NONE);
	if (kind == JSON_BAD)
		return false;
	if (frame->place == API_ARG_MESSAGE)
		return api_walk_fail(w, ERR_MESSAGES, "must be an object");
	return json_skip(&w->r, NULL);
}

/* Its bracket was consumed. */
static void leave(struct api_walk *w)
{
	const struct api_frame *frame = &w->frames[--w->depth];

	if (frame->field != API_NONE)
		w->out->at[frame->field].text =
			slice_of(w->out->body.at + frame->begin, json_offset(&w->r) - frame->begin);
	if (!frame->array)
		api_walk_end_object(w, frame);
}

static void walk(struct api_walk *w)
{
	struct slice name;

	while (w->depth != 0) {
		struct api_frame *frame = api_top(w);
		bool more = frame->array ? json_next_item(&w->r) : reader_next_key(&w->r, &name);
		if (w->r.fault.err != ERR_OK || w->fault->err != ERR_OK)
			return;
		if (!more) {
			leave(w);
			continue;
		}
		frame->index++;
		if (!(frame->array ? read_item(w, frame) : read_member(w, frame, name)))
			return;
	}
}

/* ---- the request as a whole ---- */

static enum err missing(struct fault *fault, enum err err, struct slice name)
{
	*fault = (struct fault){
		.err = err, .offset = FAULT_NO_OFFSET, .path = name, .detail = api_field_required
	};
	return err;
}

static enum err check(const struct api_request *q, struct fault *fault)
{
	if (!api_has(q, API_MODEL))
		return missing(fault, ERR_FIELD, SLICE("model"));
	if (q->at[API_MODEL].text.len == 2) {
		*fault = (struct fault){ .err = ERR_FIELD,
					 .offset = FAULT_NO_OFFSET,
					 .path = SLICE("model"),
					 .detail = "must not be empty" };
		return ERR_FIELD;
	}
	if (!api_has(q, API_MESSAGE_LIST))
		return missing(fault, ERR_MESSAGES, SLICE("messages"));
	if (q->messages == 0) {
		*fault = (struct fault){ .err = ERR_MESSAGES_EMPTY,
					 .offset = FAULT_NO_OFFSET,
					 .path = SLICE("messages"),
					 .detail = "at least one message is required" };
		return ERR_MESSAGES_EMPTY;
	}
	if (q->api == API_MESSAGES && !api_has(q, API_MAX_TOKENS))
		return missing(fault, ERR_MAX_TOKENS, SLICE("max_tokens"));
	return ERR_OK;
}

static uint64_t largest(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static void sum_up(struct api_request *q)
{
	const struct api_value *system = &q->at[API_SYSTEM];

	q->stream = q->at[API_STREAM].kind == JSON_TRUE;
	q->usage_asked = q->at[API_INCLUDE_USAGE].kind == JSON_TRUE;
	q->tokens = largest(q->at[API_MAX_TOKENS].count, q->at[API_MAX_COMPLETION_TOKENS].count);
	q->n = api_has(q, API_N) ? q->at[API_N].count : 1;
	q->thinking = q->at[API_BUDGET_TOKENS].count;
	if (api_is_anthropic(q->api)) {
		q->system = *system;
		q->system_bytes = api_has(q, API_SYSTEM) ? system->text.len : 0;
	}
}

enum err api_request_read_here(enum api api, struct slice body, struct json_work *work,
			       struct arena *into, struct api_request *out, struct fault *fault)
{
	struct api_request q = { .api = api, .body = body };
	struct api_walk w;

	must(api < API_ALL && work != NULL && into != NULL);
	w.out = &q;
	w.into = into;
	w.fault = fault;
	w.depth = 0;
	*fault = (struct fault){ .err = ERR_OK, .offset = FAULT_NO_OFFSET };
	json_open(&w.r, body, NULL, work);
	if (json_peek(&w.r) == JSON_OBJECT) {
		const uint32_t begin = json_offset(&w.r);
		if (api_walk_enter(&w, JSON_OBJECT, API_ARG_TOP, API_NONE))
			walk(&w);
		q.object = slice_of(body.at + begin, json_offset(&w.r) - begin);
	} else {
		(void)api_walk_fail(&w, ERR_FIELD, "the body must be a JSON object");
	}
	if (fault->err == ERR_OK && !json_finish(&w.r))
		*fault = w.r.fault;
	if (fault->err != ERR_OK)
		return fault->err;
	sum_up(&q);
	const enum err err = check(&q, fault);
	if (err == ERR_OK)
		*out = q;
	return err;
}

/* ---- questions ---- */

/* Whether `type` has something in front of an end of that form: 9 is a digit, all else itself. */
static bool ends_like(struct slice type, struct slice form)
{
	if (type.len <= form.len)
		return false;
	const char *end = type.at + type.len - form.len;
	for (size_t i = 0; i < form.len; i++)
		if (form.at[i] == '9' ? !scan_is_digit(end[i]) : end[i] != form.at[i])
			return false;
	return true;
}

/* Without the date at its end. */
static struct slice undated(struct slice type)
{
	static const struct slice dates[] = { SLICE_INIT("_99999999"), SLICE_INIT("_9999_99_99") };

	for (size_t i = 0; i < COUNT_OF(dates); i++)
		if (ends_like(type, dates[i]))
			return slice_of(type.at, type.len - dates[i].len);
	return type;
}

bool api_tool_is(const struct api_tool *tool, struct slice name)
{
	char buffer[API_NAME_MAX];
	const struct slice type = json_str_fit(tool->type, buffer, sizeof(buffer));

	return !slice_absent(type) && (slice_glob(name, type) || slice_eq(name, undated(type)));
}

uint64_t api_request_names(const struct api_request *request, const struct slice *names,
			   size_t count)
{
	struct json_loose_walk walk;
	uint64_t found = 0;

	must(count <= API_NAMES_MAX);
	json_loose_open(&walk, request->object);
	while (count != 0 && json_loose_next(&walk)) {
		const struct slice raw = slice_of(walk.name.at + 1, walk.name.len - 2);
		for (size_t i = 0; i < count; i++)
			if (api_name_match(raw, names[i]) != API_NAME_OTHER)
				found |= UINT64_C(1) << i;
	}
	return found;
}
