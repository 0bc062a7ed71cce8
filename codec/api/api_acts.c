/* api_acts.c - what the members of a request mean: a function for each kind of act (api_members.h), none for a name. */
#include "codec/api/api_walk.h"

#include "codec/base/must.h"
#include "codec/json/json_fields.h"
#include "codec/json/json_names.h"
#include "codec/json/json_scan.h"

const char api_thread_refused[] = "thread is not supported here (capability_rejected: "
				  "beta_header:message-threads-2026-08-12)";

/* ---- tools ---- */

/* NULL: failed. */
static struct api_tool *add_tool(struct api_walk *w)
{
	enum { TOOLS_FIRST = 16 };
	struct api_request *q = w->out;

	if (q->tool_count == API_TOOLS_MAX) {
		(void)api_walk_fail(w, ERR_TOOLS_TOO_MANY, "there are more than 4096 tools");
		return NULL;
	}
	if (q->tool_count == q->tool_cap) {
		const uint32_t cap = q->tool_cap == 0 ? TOOLS_FIRST : q->tool_cap * 2;
		struct api_tool *tools = arena_take(w->into, cap * sizeof(*tools));
		if (tools == NULL) {
			(void)api_walk_fail(w, ERR_BUSY, NULL);
			return NULL;
		}
		if (q->tool_count != 0)
			(void)memcpy(tools, q->tools, q->tool_count * sizeof(*tools));
		q->tools = tools;
		q->tool_cap = cap;
	}
	struct api_tool *tool = &q->tools[q->tool_count++];
	*tool = (struct api_tool){ .kind = API_TOOL_FUNCTION };
	return tool;
}

/* The one under way: tools are not inside of each other. */
static struct api_tool *last_tool(struct api_walk *w)
{
	must(w->out->tool_count != 0);
	return &w->out->tools[w->out->tool_count - 1];
}

/* A name, an underscore and a date: computer_20250124. */
static bool is_dated(struct slice type, struct slice name)
{
	enum { DATE = 8 };

	if (type.len != name.len + 1 + DATE || !slice_starts(type, name) ||
	    type.at[name.len] != '_')
		return false;
	for (size_t i = name.len + 1; i < type.len; i++)
		if (!scan_is_digit(type.at[i]))
			return false;
	return true;
}

static enum api_tool_kind kind_of(struct slice raw)
{
	static const struct slice functions[] = { SLICE_INIT("function"), SLICE_INIT("custom") };
	static const struct slice clients[] = { SLICE_INIT("bash"), SLICE_INIT("text_editor"),
						SLICE_INIT("computer"),
						SLICE_INIT("computer_toolset"),
						SLICE_INIT("memory") };
	char buffer[API_NAME_MAX];

	if (slice_absent(raw) ||
	    names_find(functions, COUNT_OF(functions), raw) < COUNT_OF(functions))
		return API_TOOL_FUNCTION;
	const struct slice type = json_str_fit(raw, buffer, sizeof(buffer));
	for (size_t i = 0; i < COUNT_OF(clients) && !slice_absent(type); i++)
		if (is_dated(type, clients[i]))
			return API_TOOL_CLIENT;
	return API_TOOL_SERVER;
}

static bool is_server_tool(struct api_walk *w, struct api_tool *tool)
{
	tool->kind = API_TOOL_SERVER;
	tool->path = api_walk_path(w);
	w->out->server_tools++;
	return !slice_absent(tool->path) || api_walk_fail(w, ERR_BUSY, NULL);
}

/* `[]` asks for nothing; `{}` does. */
static bool is_empty_array(struct slice value)
{
	return value.at[0] == '[' && *scan_space(value.at + 1, value.at + value.len) == ']';
}

static bool take_extra(struct api_walk *w, const struct api_member *row)
{
	struct slice value;

	if (!json_skip(&w->r, &value))
		return false;
	if (is_empty_array(value))
		return true;
	struct api_tool *tool = add_tool(w);
	if (tool == NULL)
		return false;
	tool->type = row->name;
	return is_server_tool(w, tool);
}

/* ---- content and where it comes from ---- */

enum { FRONT = 40 }; /* of a string: enough for the scheme of a URL */

/* The front of what a raw string means. */
static struct slice front_of(struct slice raw, char out[FRONT])
{
	const char *at = raw.at, *end = raw.at + raw.len;
	size_t len = 0;

	while (at < end && len + 4 <= FRONT) {
		if (*at == '\\')
			len += scan_unescape(&at, out + len);
		else
			out[len++] = *at++;
	}
	return slice_of(out, len);
}

static bool is_data_uri(struct slice front)
{
	static const struct slice scheme = SLICE_INIT("data:");

	return front.len >= scheme.len && slice_eq_nocase(slice_of(front.at, scheme.len), scheme);
}

/* No base64 has a colon; RFC 3986, 3.1 */
static bool has_scheme(struct slice front)
{
	for (size_t i = 0; i < front.len; i++) {
		const char c = front.at[i], small = (char)(c | 0x20);
		if (c == ':')
			return i != 0;
		if (!(small >= 'a' && small <= 'z') && !scan_is_digit(c) && c != '+' && c != '-' &&
		    c != '.')
			return false;
	}
	return false;
}

static bool add_url(struct api_walk *w, struct api_frame *frame)
{
	frame->urls++;
	if (w->out->urls++ != 0)
		return true;
	w->out->url_path = api_walk_path(w);
	return !slice_absent(w->out->url_path) || api_walk_fail(w, ERR_BUSY, NULL);
}

/* A string of content. What is none means nothing. */
static bool take_content(struct api_walk *w, struct api_frame *frame, enum json_kind kind,
			 enum api_act act)
{
	char buffer[FRONT];
	struct slice raw;

	if (kind != JSON_STRING)
		return json_skip(&w->r, NULL);
	if (!json_take_string(&w->r, &raw))
		return false;
	if (act == API_ACT_DATA) {
		frame->bytes += raw.len;
		return true;
	}
	const struct slice front = front_of(raw, buffer);
	if (!is_data_uri(front) && (act != API_ACT_DATA_OR_URL || has_scheme(front)))
		return raw.len == 0 || add_url(w, frame);
	frame->bytes += raw.len;
	return true;
}

/* An object that has the URL, or the URL itself. */
static bool take_source(struct api_walk *w, struct api_frame *frame, enum json_kind kind,
			enum api_media media)
{
	if (media > frame->media)
		frame->media = (uint8_t)media;
	if (kind == JSON_OBJECT || kind == JSON_ARRAY)
		return api_walk_enter(w, kind, API_ARG_SOURCE, API_NONE);
	return take_content(w, frame, kind, API_ACT_URL);
}

/* ---- the end of objects ---- */

static bool means(struct slice raw, const struct slice *names, size_t count)
{
	return !slice_absent(raw) && names_find(names, count, raw) < count;
}

static enum api_media media_of(const struct api_frame *block)
{
	static const struct slice images[] = { SLICE_INIT("image"), SLICE_INIT("image_url"),
					       SLICE_INIT("input_image") };
	static const struct slice sounds[] = { SLICE_INIT("input_audio"), SLICE_INIT("audio_url") };
	static const struct slice documents[] = { SLICE_INIT("document"), SLICE_INIT("file"),
						  SLICE_INIT("input_file"),
						  SLICE_INIT("video_url") };

	if (block->media == API_MEDIA_IMAGE || means(block->kind, images, COUNT_OF(images)))
		return API_MEDIA_IMAGE;
	if (block->media == API_MEDIA_SOUND || means(block->kind, sounds, COUNT_OF(sounds)))
		return API_MEDIA_SOUND;
	if (block->media == API_MEDIA_DOCUMENT || block->bytes != 0 ||
	    means(block->kind, documents, COUNT_OF(documents)))
		return API_MEDIA_DOCUMENT;
	return API_MEDIA_NONE;
}

static void end_block(struct api_walk *w, const struct api_frame *block)
{
	static const struct slice sealed[] = { SLICE_INIT("redacted_thinking"),
					       SLICE_INIT("reasoning.encrypted") };
	static const struct slice results[] = { SLICE_INIT("tool_result") };
	struct api_request *q = w->out;

	q->blocks += w->frames[1].field == API_MESSAGE_LIST;
	q->sealed |= means(block->kind, sealed, COUNT_OF(sealed));
	if (w->frames[1].field == API_MESSAGE_LIST && means(block->kind, results, 1))
		w->frames[2].results = true;
	if (block->urls != 0 && media_of(block) != API_MEDIA_IMAGE)
		q->documents_by_url += block->urls;
	switch (media_of(block)) {
	case API_MEDIA_IMAGE:
		q->images++;
		q->image_bytes += block->bytes;
		if (block->bytes > q->image_bytes_most)
			q->image_bytes_most = block->bytes;
		break;
	case API_MEDIA_SOUND:
		q->sounds++;
		q->sound_bytes += block->bytes;
		break;
	case API_MEDIA_DOCUMENT:
		q->documents++;
		q->document_bytes += block->bytes;
		break;
	case API_MEDIA_NONE:
		break;
	}
	if (q->blocks > API_BLOCKS_MAX || q->images > API_BLOCKS_MAX || q->sounds > API_BLOCKS_MAX)
		(void)api_walk_fail(w, ERR_CONTENT, "there are more than 65536 content blocks");
}

/* What a source holds is its block's. */
static void end_source(struct api_walk *w, const struct api_frame *source)
{
	struct api_frame *block = api_top(w);

	if (block->array && w->depth > 1) /* of several sources */
		block = &w->frames[w->depth - 2];
	block->bytes += source->bytes;
	block->urls += source->urls;
	if (!slice_absent(source->kind) && slice_starts(source->kind, SLICE("image")))
		block->media = API_MEDIA_IMAGE;
}

/* What the system says belongs to no round. */
static void count_rounds(struct api_request *q, const struct api_frame *message)
{
	static const struct slice results[] = { SLICE_INIT("tool"), SLICE_INIT("function") };
	static const struct slice user[] = { SLICE_INIT("user") };

	if (message->results || means(message->kind, results, COUNT_OF(results))) {
		q->tool_rounds += !q->in_results;
		q->in_results = true;
		return;
	}
	q->in_results = false;
	if (means(message->kind, user, COUNT_OF(user)))
		q->tool_rounds = 0;
}

static void end_message(struct api_walk *w, const struct api_frame *message)
{
	static const struct slice usual[] = { SLICE_INIT("user"), SLICE_INIT("assistant"),
					      SLICE_INIT("tool"), SLICE_INIT("function") };
	static const struct slice systems[] = { SLICE_INIT("system"), SLICE_INIT("developer") };
	struct api_request *q = w->out;
	struct api_value *content = &q->at[API_CONTENT];
	const bool leads = q->system_messages == q->messages && !q->system_later;

	if (++q->messages > API_MESSAGES_MAX)
		(void)api_walk_fail(w, ERR_MESSAGES, "there are more than 65536 messages");
	q->blocks += content->kind == JSON_STRING;
	count_rounds(q, message);
	if (!means(message->kind, usual, COUNT_OF(usual))) {
		if (leads && !api_is_anthropic(q->api) &&
		    means(message->kind, systems, COUNT_OF(systems))) {
			if (q->system_messages++ == 0)
				q->system = *content;
			q->system_bytes += content->text.len;
		} else {
			q->system_later = true;
		}
	}
	*content = (struct api_value){ .kind = JSON_BAD };
}

static void end_tool(struct api_walk *w, const struct api_frame *object)
{
	struct api_tool *tool = last_tool(w);

	tool->type = object->kind;
	tool->kind = kind_of(tool->type);
	if (tool->kind == API_TOOL_SERVER)
		(void)is_server_tool(w, tool);
}

void api_walk_end_object(struct api_walk *w, const struct api_frame *object)
{
	switch (object->place) {
	case API_ARG_MESSAGE:
		end_message(w, object);
		break;
	case API_ARG_BLOCK:
		end_block(w, object);
		break;
	case API_ARG_SOURCE:
		end_source(w, object);
		break;
	case API_ARG_TOOL:
		end_tool(w, object);
		break;
	default:
		break;
	}
}

/* ---- acts ---- */

bool api_walk_enter(struct api_walk *w, enum json_kind kind, enum api_argument place, uint8_t field)
{
	const bool array = kind == JSON_ARRAY;
	const uint32_t begin = json_offset(&w->r);

	if (!(array ? json_enter_array(&w->r) : json_enter_object(&w->r)))
		return false;
	must(w->depth < COUNT_OF(w->frames));
	if (!array && place == API_ARG_CACHE)
		w->out->cached = true;
	if (!array && (place == API_ARG_TOOL || place == API_ARG_FUNCTION) && add_tool(w) == NULL)
		return false;
	w->frames[w->depth++] = (struct api_frame){ .place = (uint8_t)place,
						    .field = field,
						    .array = array,
						    .begin = begin,
						    .index = UINT32_MAX };
	return true;
}

/* All of a value: json_skip, but for what most are. */
static bool take(struct api_walk *w, enum json_kind kind, struct slice *text)
{
	if (kind != JSON_STRING)
		return kind == JSON_NUMBER ? json_number(&w->r, text) : json_skip(&w->r, text);
	if (!json_take_string(&w->r, text))
		return false;
	*text = slice_of(text->at - 1, text->len + 2);
	return true;
}

static bool enter(struct api_walk *w, const struct api_member *row, enum json_kind kind)
{
	struct slice unused;

	if (row->field != API_NONE)
		w->out->at[row->field].kind = kind;
	if (kind == JSON_OBJECT || kind == JSON_ARRAY)
		return api_walk_enter(w, kind, (enum api_argument)row->argument, row->field);
	return take(w, kind, row->field == API_NONE ? &unused : &w->out->at[row->field].text);
}

/* Too large for 63 bits is as large as can be. */
static bool take_count(struct api_walk *w, const struct api_member *row, struct slice number,
		       uint64_t *out)
{
	const int64_t least = row->kinds == API_KINDS_COUNT;
	int64_t value;

	if (!json_to_int64(number, &value))
		value = json_is_integer(number) && number.at[0] != '-' ? INT64_MAX : -1;
	if (value < least)
		return api_walk_fail(w, api_field_error(row->field), api_kinds_text(row->kinds));
	*out = (uint64_t)value;
	return true;
}

static bool keep(struct api_walk *w, const struct api_member *row, enum json_kind kind)
{
	struct api_value *value = &w->out->at[row->field];

	value->kind = kind;
	if (!take(w, kind, &value->text))
		return false;
	return kind != JSON_NUMBER || row->kinds == API_KINDS_ANY ||
	       take_count(w, row, value->text, &value->count);
}

static bool refuse(struct api_walk *w, const struct api_member *row)
{
	switch (row->argument) {
	case API_ARG_THREAD:
		return api_walk_fail(w, ERR_NOT_AVAILABLE, api_thread_refused);
	case API_ARG_ACCOUNT:
		return api_walk_fail(w, ERR_POLICY,
				     "Policy does not permit objects of the provider account");
	default:
		return api_walk_fail(w, ERR_POLICY,
				     "Policy does not permit members that choose a model, a host, "
				     "a key or a route");
	}
}

/* A string of its own; what is none counts as not said. */
static bool take_string(struct api_walk *w, enum json_kind kind, struct slice *out)
{
	return kind == JSON_STRING ? json_take_string(&w->r, out) : json_skip(&w->r, NULL);
}

/* A tool has two objects that can have it: readers would not agree on which one counts. */
static bool take_once(struct api_walk *w, struct slice value, struct slice *out)
{
	if (slice_absent(value))
		return true;
	if (!slice_absent(*out))
		return api_walk_fail(w, ERR_FIELD, "a tool has this once");
	*out = value;
	return true;
}

static bool take_name(struct api_walk *w, enum json_kind kind)
{
	struct slice name = { NULL, 0 };

	return take_string(w, kind, &name) && take_once(w, name, &last_tool(w)->name);
}

static bool take_schema(struct api_walk *w)
{
	struct slice schema = { NULL, 0 };

	return json_skip(&w->r, &schema) && take_once(w, schema, &last_tool(w)->schema);
}

static bool take_seal(struct api_walk *w)
{
	struct slice value;

	if (!json_skip(&w->r, &value))
		return false;
	w->out->sealed |= !slice_eq(value, SLICE("\"\""));
	return true;
}

static bool take_ttl(struct api_walk *w, enum json_kind kind)
{
	struct slice ttl = { NULL, 0 };

	if (!take_string(w, kind, &ttl))
		return false;
	w->out->cached_1h |= !slice_absent(ttl) && json_str_eq(ttl, SLICE("1h"));
	return true;
}

static bool take_uses(struct api_walk *w, const struct api_member *row)
{
	struct slice number;

	return json_skip(&w->r, &number) && take_count(w, row, number, &last_tool(w)->uses_max);
}

bool api_walk_act(struct api_walk *w, enum json_kind kind)
{
	struct api_frame *frame = api_top(w);
	const struct api_member *row = frame->row;

	if (kind == JSON_NULL && row->field == API_NONE)
		return json_skip(&w->r, NULL);
	switch ((enum api_act)row->act) {
	case API_ACT_KEEP:
		return keep(w, row, kind);
	case API_ACT_ENTER:
		return enter(w, row, kind);
	case API_ACT_REFUSE:
		return refuse(w, row);
	case API_ACT_EXTRA:
		return take_extra(w, row);
	case API_ACT_KIND:
		return take_string(w, kind, &frame->kind);
	case API_ACT_NAME:
		return take_name(w, kind);
	case API_ACT_SCHEMA:
		return take_schema(w);
	case API_ACT_USES:
		return take_uses(w, row);
	case API_ACT_TTL:
		return take_ttl(w, kind);
	case API_ACT_SEALED:
		return take_seal(w);
	case API_ACT_DATA:
	case API_ACT_URL:
	case API_ACT_DATA_OR_URL:
		return take_content(w, frame, kind, (enum api_act)row->act);
	case API_ACT_IMAGE:
		return take_source(w, frame, kind, API_MEDIA_IMAGE);
	case API_ACT_DOCUMENT:
		return take_source(w, frame, kind, API_MEDIA_DOCUMENT);
	case API_ACT_SOUND:
		return take_source(w, frame, kind, API_MEDIA_SOUND);
	}
	must(false);
	return false;
}
