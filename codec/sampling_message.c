/* sampling_message.c - messages and their blocks (contract/mcp.md 2.2, 2.3, 3.1).
 *
 * Members may come in any order, so a block's are kept until its end, where `type` says which of them
 * count. Only the content of a tool result is decoded where it stands: it may be most of the body. */
#include "codec/sampling_decode.h"

#include "codec/base/must.h"
#include "codec/json_names.h"

/* Beside each other what follows each other. */
enum member {
	MEMBER_TYPE,
	MEMBER_TEXT,
	MEMBER_ID,
	MEMBER_NAME,
	MEMBER_INPUT,
	MEMBER_TOOL_USE_ID, /* three spellings, the first that is there counts */
	MEMBER_CONTENT,
	MEMBER_IS_ERROR,
	MEMBER_DATA,
	MEMBER_MIME,
	MEMBER_STRUCTURED,
	MEMBER_TOOL_USE_ID_SNAKE,
	MEMBER_TOOL_CALL_ID,
	MEMBER_URI,
	MEMBER_RESOURCE,
	MEMBER_BLOB, /* only in a resource's own object */
	MEMBER_COUNT
};
static const struct json_name member_names[] = {
	[MEMBER_TYPE] = JSON_NAME("type"),
	[MEMBER_TEXT] = JSON_NAME("text"),
	[MEMBER_ID] = JSON_NAME("id"),
	[MEMBER_NAME] = JSON_NAME("name"),
	[MEMBER_INPUT] = JSON_NAME("input"),
	[MEMBER_TOOL_USE_ID] = JSON_NAME("toolUseId"),
	[MEMBER_CONTENT] = JSON_NAME("content"),
	[MEMBER_IS_ERROR] = JSON_NAME("isError"),
	[MEMBER_DATA] = JSON_NAME("data"),
	[MEMBER_MIME] = JSON_NAME("mimeType"),
	[MEMBER_STRUCTURED] = JSON_NAME("structuredContent"),
	[MEMBER_TOOL_USE_ID_SNAKE] = JSON_NAME("tool_use_id"),
	[MEMBER_TOOL_CALL_ID] = JSON_NAME("tool_call_id"),
	[MEMBER_URI] = JSON_NAME("uri"),
	[MEMBER_RESOURCE] = JSON_NAME("resource"),
	[MEMBER_BLOB] = JSON_NAME("blob"),
};

/* The same for paths. */
static const char *const member_paths[MEMBER_COUNT] = {
	[MEMBER_TYPE] = "type",
	[MEMBER_TEXT] = "text",
	[MEMBER_ID] = "id",
	[MEMBER_NAME] = "name",
	[MEMBER_INPUT] = "input",
	[MEMBER_TOOL_USE_ID] = "toolUseId",
	[MEMBER_CONTENT] = "content",
	[MEMBER_IS_ERROR] = "isError",
	[MEMBER_DATA] = "data",
	[MEMBER_MIME] = "mimeType",
	[MEMBER_STRUCTURED] = "structuredContent",
	[MEMBER_TOOL_USE_ID_SNAKE] = "tool_use_id",
	[MEMBER_TOOL_CALL_ID] = "tool_call_id",
	[MEMBER_URI] = "uri",
	[MEMBER_RESOURCE] = "resource",
	[MEMBER_BLOB] = "blob",
};

enum { TYPE_COUNT = BLOCK_RESOURCE + 1 };
static const struct slice type_names[TYPE_COUNT] = {
	[BLOCK_TEXT] = SLICE_INIT("text"),
	[BLOCK_IMAGE] = SLICE_INIT("image"),
	[BLOCK_AUDIO] = SLICE_INIT("audio"),
	[BLOCK_TOOL_USE] = SLICE_INIT("tool_use"),
	[BLOCK_TOOL_RESULT] = SLICE_INIT("tool_result"),
	[BLOCK_RESOURCE_LINK] = SLICE_INIT("resource_link"),
	[BLOCK_RESOURCE] = SLICE_INIT("resource"),
};

struct members {
	const char *at; /* the block's brace */
	bool inside;    /* a tool result's content */
	size_t type;    /* TYPE_COUNT until a known one was seen */
	uint32_t seen;  /* one bit per member of `fields` that is there and not null */
	struct field fields[MEMBER_COUNT]; /* not cleared */
	const char *clean;                 /* data or blob is base64's alphabet up to there */

	/* a tool result's content, once decoded */
	bool content_done;
	uint32_t first;
	struct slice implied; /* a content that is an object is structured content as well */
};

static bool has(const struct members *m, enum member member)
{
	return (m->seen >> member & 1) != 0;
}

static bool wrong(struct decode *d, enum err err, const char *at, const char *detail,
		  enum member member)
{
	(void)decode_refuse(d, err, at, detail);
	return decode_in_member(d, member_paths[member]);
}

/* The member as a string, which it must be; missing is wrong too. */
static bool need_string(struct decode *d, const struct members *m, enum member member, enum err err,
			const char *detail, struct slice *out)
{
	if (!has(m, member))
		return wrong(d, err, m->at, detail, member);
	if (m->fields[member].kind != JSON_STRING)
		return wrong(d, err, field_at(&m->fields[member]), detail, member);
	*out = m->fields[member].raw;
	return true;
}

/* The JSON text of the member, absent when it is missing. */
static struct slice json_of(const struct members *m, enum member member)
{
	const struct field *field = &m->fields[member];

	if (!has(m, member))
		return (struct slice){ NULL, 0 };
	return slice_of(field_at(field), field->raw.len + 2 * (size_t)(field->kind == JSON_STRING));
}

/* ---- blocks by type: from members to a block ---- */

static bool build_text(struct decode *d, const struct members *m, struct block *block)
{
	return need_string(d, m, MEMBER_TEXT, ERR_CONTENT, "a text block needs a string text",
			   &block->text.text);
}

static bool build_media(struct decode *d, const struct members *m, struct block *block)
{
	struct slice data, mime;

	if (!need_string(d, m, MEMBER_DATA, ERR_MEDIA, "data must be a base64 string", &data) ||
	    !need_string(d, m, MEMBER_MIME, ERR_MEDIA, "mimeType must be a string", &mime))
		return false;
	if (!decode_base64(d, data, m->clean, &block->media.data))
		return wrong(d, ERR_MEDIA, data.at - 1, "data is not valid base64", MEMBER_DATA);
	if (!decode_media_type(d, mime, &block->media.mime))
		return wrong(d, ERR_MEDIA, mime.at - 1, "mimeType is not a media type",
			     MEMBER_MIME);
	return true;
}

/* An object; or, leniently, a string that holds one (V20). */
static bool build_input(struct decode *d, const struct members *m, struct slice *out)
{
	const struct field *input = &m->fields[MEMBER_INPUT];
	struct slice text;

	if (!has(m, MEMBER_INPUT))
		return wrong(d, ERR_TOOL_INPUT, m->at, NULL, MEMBER_INPUT);
	if (input->kind == JSON_OBJECT) {
		*out = input->raw;
		return true;
	}
	if (input->kind != JSON_STRING)
		return wrong(d, ERR_TOOL_INPUT, field_at(input), NULL, MEMBER_INPUT);
	text = json_str_plain(input->raw, d->into);
	if (slice_absent(text))
		return decode_busy(d);
	struct json_reader sub;
	bool is_object = json_valid(text, &d->limits->json, d->work, NULL);
	if (is_object) {
		json_open(&sub, text, &d->limits->json, NULL);
		is_object = json_peek(&sub) == JSON_OBJECT && json_skip(&sub, out);
	}
	return is_object ||
	       wrong(d, ERR_TOOL_INPUT, field_at(input),
		     "tool_use.input is a string that holds no JSON object", MEMBER_INPUT);
}

static bool build_use(struct decode *d, const struct members *m, struct block *block)
{
	return need_string(d, m, MEMBER_ID, ERR_CONTENT, "tool_use needs a string id",
			   &block->use.id) &&
	       need_string(d, m, MEMBER_NAME, ERR_CONTENT, "tool_use needs a string name",
			   &block->use.name) &&
	       build_input(d, m, &block->use.input);
}

static bool build_link(struct decode *d, const struct members *m, struct block *block)
{
	block->link.mime = (struct slice){ NULL, 0 };
	if (!need_string(d, m, MEMBER_URI, ERR_CONTENT, "resource_link needs a string uri",
			 &block->link.uri) ||
	    !need_string(d, m, MEMBER_NAME, ERR_CONTENT, "resource_link needs a string name",
			 &block->link.name))
		return false;
	if (has(m, MEMBER_MIME) &&
	    (m->fields[MEMBER_MIME].kind != JSON_STRING ||
	     !decode_media_type(d, m->fields[MEMBER_MIME].raw, &block->link.mime)))
		return wrong(d, ERR_CONTENT, field_at(&m->fields[MEMBER_MIME]),
			     "mimeType is not a media type", MEMBER_MIME);
	return true;
}

static bool read_members(struct decode *d, struct members *m);

/* The object inside a resource block: uri, and text or blob. */
static bool build_resource_parts(struct decode *d, const struct members *m, struct block *block)
{
	struct slice none = { NULL, 0 };

	block->resource.mime = block->resource.text = block->resource.blob = none;
	if (!need_string(d, m, MEMBER_URI, ERR_CONTENT, "a resource needs a string uri",
			 &block->resource.uri))
		return false;
	if (has(m, MEMBER_MIME) &&
	    (m->fields[MEMBER_MIME].kind != JSON_STRING ||
	     !decode_media_type(d, m->fields[MEMBER_MIME].raw, &block->resource.mime)))
		return wrong(d, ERR_CONTENT, field_at(&m->fields[MEMBER_MIME]),
			     "mimeType is not a media type", MEMBER_MIME);
	if (has(m, MEMBER_TEXT) || !has(m, MEMBER_BLOB))
		return need_string(d, m, MEMBER_TEXT, ERR_CONTENT,
				   "a resource needs a string text or blob", &block->resource.text);
	struct slice blob;
	if (!need_string(d, m, MEMBER_BLOB, ERR_CONTENT, "blob must be a base64 string", &blob))
		return false;
	return decode_base64(d, blob, m->clean, &block->resource.blob) ||
	       wrong(d, ERR_MEDIA, blob.at - 1, "blob is not valid base64", MEMBER_BLOB);
}

static bool build_resource(struct decode *d, const struct members *m, struct block *block)
{
	const struct field *resource = &m->fields[MEMBER_RESOURCE];
	struct json_reader sub;
	struct members parts;

	if (!has(m, MEMBER_RESOURCE) || resource->kind != JSON_OBJECT)
		return wrong(d, ERR_CONTENT, has(m, MEMBER_RESOURCE) ? field_at(resource) : m->at,
			     "a resource block needs an object resource", MEMBER_RESOURCE);
	struct json_reader *outer = decode_sub_open(d, &sub, resource->raw);
	parts.inside = true;
	bool fine = read_members(d, &parts) && build_resource_parts(d, &parts, block);
	decode_sub_close(d, outer);
	return fine || decode_in_member(d, "resource");
}

static bool read_result_content(struct decode *d, struct members *m);

static bool build_result(struct decode *d, struct members *m, struct block *block)
{
	enum member id = has(m, MEMBER_TOOL_USE_ID)         ? MEMBER_TOOL_USE_ID
			 : has(m, MEMBER_TOOL_USE_ID_SNAKE) ? MEMBER_TOOL_USE_ID_SNAKE
			 : has(m, MEMBER_TOOL_CALL_ID)      ? MEMBER_TOOL_CALL_ID
							    : MEMBER_TOOL_USE_ID;
	const struct field *is_error = &m->fields[MEMBER_IS_ERROR];
	struct json_reader sub;

	if (!need_string(d, m, id, ERR_CONTENT, "tool_result needs a string toolUseId",
			 &block->result.id))
		return false;
	if (has(m, MEMBER_IS_ERROR)) {
		if (is_error->kind != JSON_TRUE && is_error->kind != JSON_FALSE)
			return wrong(d, ERR_CONTENT, field_at(is_error),
				     "isError must be a boolean", MEMBER_IS_ERROR);
		block->is_error = is_error->kind == JSON_TRUE;
	}
	if (!m->content_done && has(m, MEMBER_CONTENT)) { /* it came before `type` */
		struct json_reader *outer = decode_sub_open(d, &sub, json_of(m, MEMBER_CONTENT));
		bool fine = read_result_content(d, m);
		decode_sub_close(d, outer);
		if (!fine)
			return false;
	}
	block->result.first = m->content_done ? m->first : d->inner.count;
	block->result.count = d->inner.count - block->result.first;
	block->result.structured =
		has(m, MEMBER_STRUCTURED) ? json_of(m, MEMBER_STRUCTURED) : m->implied;
	return true;
}

static bool build(struct decode *d, struct members *m, struct block *block)
{
	block->type = (uint8_t)m->type;
	block->is_error = false;
	switch (block->type) {
	case BLOCK_TEXT:
		return build_text(d, m, block);
	case BLOCK_IMAGE:
	case BLOCK_AUDIO:
		return build_media(d, m, block);
	case BLOCK_TOOL_USE:
		return build_use(d, m, block);
	case BLOCK_TOOL_RESULT:
		return build_result(d, m, block);
	case BLOCK_RESOURCE_LINK:
		return build_link(d, m, block);
	default:
		return build_resource(d, m, block);
	}
}

/* ---- reading ---- */

static bool type_allowed(struct decode *d, const struct members *m)
{
	static const char tools_inside[] = "tool_use and tool_result cannot be in a tool_result";
	static const char resources_outside[] =
		"resource and resource_link can only be in a tool_result";

	if (m->type == TYPE_COUNT) {
		bool there = has(m, MEMBER_TYPE);
		return wrong(d, ERR_CONTENT, there ? field_at(&m->fields[MEMBER_TYPE]) : m->at,
			     there ? "unknown type of content block"
				   : "a content block needs a type",
			     MEMBER_TYPE);
	}
	bool tool = m->type == BLOCK_TOOL_USE || m->type == BLOCK_TOOL_RESULT;
	bool resource = m->type == BLOCK_RESOURCE || m->type == BLOCK_RESOURCE_LINK;
	if (m->inside ? !tool : !resource)
		return true;
	return wrong(d, ERR_CONTENT, m->at, m->inside ? tools_inside : resources_outside,
		     MEMBER_TYPE);
}

/* Notes a member that is there and not null. */
static inline void note(struct members *m, uint32_t member, struct field field)
{
	m->seen |= (uint32_t)1 << member;
	m->fields[member] = field;
}

/* Notes the type, which tells what is likely to come next. */
static inline void note_type(struct members *m, struct json_fields *fields, struct field field)
{
	static const uint8_t nexts[TYPE_COUNT + 1] = {
		[BLOCK_TEXT] = MEMBER_TEXT,
		[BLOCK_IMAGE] = MEMBER_DATA,
		[BLOCK_AUDIO] = MEMBER_DATA,
		[BLOCK_TOOL_USE] = MEMBER_ID,
		[BLOCK_TOOL_RESULT] = MEMBER_TOOL_USE_ID,
		[BLOCK_RESOURCE_LINK] = MEMBER_NAME,
		[BLOCK_RESOURCE] = MEMBER_RESOURCE,
	};

	note(m, MEMBER_TYPE, field);
	if (field.kind == JSON_STRING)
		m->type = names_find(type_names, TYPE_COUNT, field.raw);
	fields->next = nexts[m->type];
}

/* Reads the value of a member. */
static inline bool read_member(struct decode *d, struct members *m, struct json_fields *fields,
			       uint32_t member)
{
	struct field field = { .kind = JSON_STRING };

	if (member == MEMBER_CONTENT && m->type == BLOCK_TOOL_RESULT && !m->inside)
		return read_result_content(d, m);
	if ((member == MEMBER_DATA || member == MEMBER_BLOB) && d->r->at < d->r->end &&
	    *d->r->at == '"') {
		if (!decode_base64_string(d, &field.raw, &m->clean))
			return false;
	} else if (!decode_field(d, &field)) {
		return false;
	}
	if (member == FIELD_OTHER || field.kind == JSON_BAD)
		return true;
	if (member == MEMBER_TYPE)
		note_type(m, fields, field);
	else
		note(m, member, field);
	return true;
}

/* json_next_field of a block. */
static inline uint32_t next_member(struct json_reader *r, struct json_fields *fields,
				   struct slice *other)
{
	const char *name = json_guess_name(r);

#define MEMBER(member, text)                                           \
	if (json_guess_member(r, fields, MEMBER_##member, name, text)) \
	return MEMBER_##member
	if (name != NULL)
		switch (json_letters(name)) {
		case JSON_LETTERS('t', 'y', 'p', 'e'):
			MEMBER(TYPE, "type");
			break;
		case JSON_LETTERS('t', 'e', 'x', 't'):
			MEMBER(TEXT, "text");
			break;
		case JSON_LETTERS('i', 'd', '"', ':'):
			MEMBER(ID, "id");
			break;
		case JSON_LETTERS('n', 'a', 'm', 'e'):
			MEMBER(NAME, "name");
			break;
		case JSON_LETTERS('i', 'n', 'p', 'u'):
			MEMBER(INPUT, "input");
			break;
		case JSON_LETTERS('t', 'o', 'o', 'l'):
			MEMBER(TOOL_USE_ID, "toolUseId");
			break;
		case JSON_LETTERS('c', 'o', 'n', 't'):
			MEMBER(CONTENT, "content");
			break;
		case JSON_LETTERS('i', 's', 'E', 'r'):
			MEMBER(IS_ERROR, "isError");
			break;
		case JSON_LETTERS('d', 'a', 't', 'a'):
			MEMBER(DATA, "data");
			break;
		case JSON_LETTERS('m', 'i', 'm', 'e'):
			MEMBER(MIME, "mimeType");
			break;
		}
#undef MEMBER
	return json_unguessed_field(r, fields, other);
}

/* Reads the members that are left of the object that was entered. */
static bool read_rest(struct decode *d, struct members *m, struct json_fields *fields)
{
	struct slice key;
	uint32_t member;

	while ((member = next_member(d->r, fields, &key)) != FIELD_END)
		if (!read_member(d, m, fields, member))
			return false;
	return decode_good(d);
}

static inline void members_init(struct members *m, const char *at)
{
	m->at = at;
	m->type = TYPE_COUNT;
	m->seen = 0;
	m->clean = NULL;
	m->content_done = false;
	m->implied = (struct slice){ NULL, 0 };
}

/* Reads an object's members; m->inside is set by the caller. */
static bool read_members(struct decode *d, struct members *m)
{
	struct json_fields fields = JSON_FIELDS(member_names);

	members_init(m, d->r->at);
	(void)json_begin(d->r);
	return read_rest(d, m, &fields);
}

static struct block *block_new(struct decode *d, struct list *list)
{
	if (d->blocks.count + d->inner.count >= d->limits->blocks_max) {
		(void)decode_refuse_here(d, ERR_CONTENT,
					 "the messages have too many content blocks");
		return NULL;
	}
	return decode_push(d, list, sizeof(struct block));
}

/* The block that m describes. */
static bool add_block(struct decode *d, struct members *m)
{
	if (!type_allowed(d, m))
		return false;
	struct block *block = block_new(d, m->inside ? &d->inner : &d->blocks);
	if (block == NULL || !build(d, m, block))
		return false;
	if (m->inside)
		return true;
	d->types |= (uint32_t)1 << block->type;
	d->out->images += block->type == BLOCK_IMAGE;
	d->out->audios += block->type == BLOCK_AUDIO;
	return true;
}

/* Goes on with an object that was guessed up to here: what is in *m, and maybe more. */
static bool resume_block(struct decode *d, struct members *m)
{
	struct json_fields fields = JSON_FIELDS(member_names);

	fields.seen = m->seen;
	if (m->content_done)
		fields.seen |= 1u << MEMBER_CONTENT;
	return read_rest(d, m, &fields) && add_block(d, m);
}

static inline void note_string(struct members *m, enum member member, struct slice raw)
{
	note(m, member, (struct field){ JSON_STRING, raw });
}

/* Goes on with the object at `brace`, which began with "type" and this "text". */
static SCAN_RARE bool resume_text(struct decode *d, bool inside, const char *brace,
				  struct slice text)
{
	struct members m;

	if (!json_resume_object(d->r, brace))
		return false;
	members_init(&m, brace);
	m.inside = inside;
	m.type = BLOCK_TEXT;
	note_string(&m, MEMBER_TYPE, type_names[BLOCK_TEXT]);
	note_string(&m, MEMBER_TEXT, text);
	return resume_block(d, &m);
}

static bool add_text(struct decode *d, bool inside, struct slice text)
{
	struct block *block = block_new(d, inside ? &d->inner : &d->blocks);

	if (block == NULL)
		return false;
	block->type = BLOCK_TEXT;
	block->is_error = false;
	block->text.text = text;
	if (!inside)
		d->types |= (uint32_t)1 << BLOCK_TEXT;
	return true;
}

/* Behind {"type":"text","text": at `brace`: mostly that is all, but for a string. */
static bool read_text_block(struct decode *d, bool inside, const char *brace)
{
	struct json_reader *r = d->r;
	struct slice text;

	if (!json_take_string(r, &text))
		return false;
	if (r->at == r->end || *r->at != '}')
		return resume_text(d, inside, brace, text);
	r->at++;
	return add_text(d, inside, text);
}

/* Reads a call whose members come in the usual order. *fine: how that went. False: it is another block,
 * nothing happened, or the reader has failed. */
static bool guess_use(struct decode *d, bool *fine)
{
	struct json_reader *r = d->r;
	const char *brace = r->at;
	struct slice id, name, input;
	struct members m;

	if (!json_guess_string_lit(r, "{\"type\":\"tool_use\",\"id\":\"", &id) ||
	    !json_guess_string_lit(r, ",\"name\":\"", &name) || !json_guess_lit(r, ",\"input\":") ||
	    json_here(r) != JSON_OBJECT) {
		if (r->fault.err == ERR_OK)
			r->at = brace;
		return false;
	}
	*fine = json_resume_object(r, brace) && json_skip(r, &input);
	if (!*fine)
		return true;
	if (json_guess_end(r)) {
		struct block *block = block_new(d, &d->blocks);
		*fine = block != NULL;
		if (block == NULL)
			return true;
		block->type = BLOCK_TOOL_USE;
		block->is_error = false;
		block->use.id = id;
		block->use.name = name;
		block->use.input = input;
		d->types |= 1u << BLOCK_TOOL_USE;
		return true;
	}
	members_init(&m, brace);
	m.inside = false;
	m.type = BLOCK_TOOL_USE;
	note_string(&m, MEMBER_TYPE, type_names[BLOCK_TOOL_USE]);
	note_string(&m, MEMBER_ID, id);
	note_string(&m, MEMBER_NAME, name);
	note(&m, MEMBER_INPUT, (struct field){ JSON_OBJECT, input });
	*fine = resume_block(d, &m);
	return true;
}

/* The same for a tool's result. */
static bool guess_result(struct decode *d, bool *fine)
{
	struct json_reader *r = d->r;
	const char *brace = r->at;
	struct members m;
	struct slice id;

	if (!json_guess_string_lit(r, "{\"type\":\"tool_result\",\"toolUseId\":\"", &id) ||
	    !json_guess_lit(r, ",\"content\":") || json_here(r) != JSON_ARRAY) {
		if (r->fault.err == ERR_OK)
			r->at = brace;
		return false;
	}
	members_init(&m, brace);
	m.inside = false;
	m.type = BLOCK_TOOL_RESULT;
	note_string(&m, MEMBER_TYPE, type_names[BLOCK_TOOL_RESULT]);
	note_string(&m, MEMBER_TOOL_USE_ID, id);
	*fine = json_resume_object(r, brace) && read_result_content(d, &m);
	if (!*fine)
		return true;
	if (json_guess_lit(r, ",\"isError\":false"))
		note(&m, MEMBER_IS_ERROR, (struct field){ JSON_FALSE, { r->at - 5, 5 } });
	*fine = json_guess_end(r) ? add_block(d, &m) : resume_block(d, &m);
	return true;
}

/* Reads one block. The recursion through read_result_content ends at `inside`. */
static bool read_block(struct decode *d, bool inside)
{
	static const struct slice text = SLICE_INIT("{\"type\":\"text\",\"text\":");
	const size_t tool = sizeof("{\"type\":\"tool_") - 1; /* tool_use or tool_result */
	struct json_reader *r = d->r;
	struct members m;
	bool fine;

	/* one byte more: the string's quote */
	if (r->depth < r->limits.depth_max && (size_t)(r->end - r->at) > text.len &&
	    r->at[text.len] == '"' && json_guess(r, text.at, text.len))
		return read_text_block(d, inside, r->at - text.len);
	if (!inside && json_may_guess(r) && (size_t)(r->end - r->at) > tool) {
		const char kind = r->at[tool]; /* before a guess that fails cuts the text off */
		if (kind == 'u' && guess_use(d, &fine))
			return fine;
		if (kind == 'r' && guess_result(d, &fine))
			return fine;
	}
	if (json_here(d->r) != JSON_OBJECT)
		return decode_refuse_here(d, ERR_CONTENT, "a content block must be an object");
	m.inside = inside;
	return read_members(d, &m) && add_block(d, &m);
}

/* Free text, or an object's compact JSON, as the one text block of a tool result. */
static bool read_result_text(struct decode *d, struct members *m)
{
	struct block *block = block_new(d, &d->inner);

	if (block == NULL)
		return false;
	block->type = BLOCK_TEXT;
	block->is_error = false;
	if (json_here(d->r) == JSON_STRING)
		return json_take_string(d->r, &block->text.text);
	struct gather g;
	if (!json_skip(d->r, &m->implied))
		return false;
	gather_init(&g, d->into);
	gather_json_escaped(&g, m->implied);
	block->text.text = gather_flat(&g, d->into);
	return !slice_absent(block->text.text) || decode_busy(d);
}

static bool read_result_content(struct decode *d, struct members *m)
{
	uint32_t i = 0;

	m->content_done = true;
	m->first = d->inner.count;
	switch (json_here(d->r)) {
	case JSON_NULL:
		return json_null(d->r);
	case JSON_STRING:
	case JSON_OBJECT:
		return read_result_text(d, m) || decode_in_member(d, "content");
	case JSON_ARRAY:
		break;
	default:
		(void)decode_refuse_here(d, ERR_CONTENT,
					 "content of a tool_result must be an array of blocks");
		return decode_in_member(d, "content");
	}
	(void)json_begin(d->r);
	for (; json_next(d->r); i++)
		if (!read_block(d, true)) {
			(void)decode_in_item(d, i);
			return decode_in_member(d, "content");
		}
	return decode_good(d);
}

static bool read_content(struct decode *d)
{
	uint32_t i = 0;

	switch (json_here(d->r)) {
	case JSON_OBJECT:
		return read_block(d, false);
	case JSON_ARRAY:
		break;
	default:
		return decode_refuse_here(d, ERR_CONTENT, NULL);
	}
	(void)json_begin(d->r);
	for (; json_next(d->r); i++)
		if (!read_block(d, false))
			return decode_in_item(d, i);
	return decode_good(d);
}

static bool read_role(struct decode *d, bool *assistant)
{
	static const struct slice roles[] = { SLICE_INIT("user"), SLICE_INIT("assistant") };
	struct slice raw;

	if (json_here(d->r) != JSON_STRING)
		return decode_refuse_here(d, ERR_ROLE, NULL);
	const char *at = d->r->at;
	if (!json_take_string(d->r, &raw))
		return false;
	size_t role = names_find(roles, COUNT_OF(roles), raw);
	if (role == COUNT_OF(roles))
		return decode_refuse(d, ERR_ROLE, at, NULL);
	*assistant = role == 1;
	return true;
}

enum message_member { MESSAGE_ROLE, MESSAGE_CONTENT, MESSAGE_MEMBERS };

/* Enters the message and reads its beginning, if that is the usual one; returns the members read. */
static uint32_t guess_message(struct decode *d, struct message *message)
{
	const char *brace = d->r->at;

	if (json_guess_lit(d->r, "{\"role\":\"user\",\"content\":"))
		message->assistant = false;
	else if (json_guess_lit(d->r, "{\"role\":\"assistant\",\"content\":"))
		message->assistant = true;
	else
		return json_begin(d->r), 0;
	return json_resume_object(d->r, brace) ? 1u << MESSAGE_ROLE : 0;
}

static const struct json_name message_names[] = {
	[MESSAGE_ROLE] = JSON_NAME("role"),
	[MESSAGE_CONTENT] = JSON_NAME("content"),
};

/* json_next_field of a message. */
static inline uint32_t next_message_member(struct json_reader *r, struct json_fields *fields,
					   struct slice *other)
{
	const char *name = json_guess_name(r);

	if (name != NULL)
		switch (json_letters(name)) {
		case JSON_LETTERS('r', 'o', 'l', 'e'):
			if (json_guess_member(r, fields, MESSAGE_ROLE, name, "role"))
				return MESSAGE_ROLE;
			break;
		case JSON_LETTERS('c', 'o', 'n', 't'):
			if (json_guess_member(r, fields, MESSAGE_CONTENT, name, "content"))
				return MESSAGE_CONTENT;
			break;
		}
	return json_unguessed_field(r, fields, other);
}

static bool read_message_members(struct decode *d, struct message *message)
{
	struct json_fields fields = JSON_FIELDS(message_names);
	const char *at = d->r->at;
	struct slice key;
	uint32_t name;

	fields.seen = guess_message(d, message);
	if (fields.seen != 0) {
		if (!read_content(d))
			return decode_in_member(d, "content");
		fields.seen |= 1u << MESSAGE_CONTENT;
		if (json_guess_end(d->r))
			return true;
	}
	while ((name = next_message_member(d->r, &fields, &key)) != FIELD_END) {
		if (name == MESSAGE_ROLE && !read_role(d, &message->assistant))
			return decode_in_member(d, "role");
		if (name == MESSAGE_CONTENT && !read_content(d))
			return decode_in_member(d, "content");
		if (name == FIELD_OTHER && !json_skip(d->r, NULL))
			return false;
	}
	if (!decode_good(d) || fields.seen == (1u << MESSAGE_MEMBERS) - 1)
		return decode_good(d);
	bool role = (fields.seen >> MESSAGE_ROLE & 1) != 0;
	(void)decode_refuse(d, role ? ERR_CONTENT : ERR_ROLE, at,
			    role ? "content is missing" : "role is missing");
	return decode_in_member(d, role ? "content" : "role");
}

static bool add_message(struct decode *d, struct message message)
{
	struct message *place = decode_push(d, &d->messages, sizeof(*place));

	if (place == NULL)
		return false;
	message.count = d->blocks.count - message.first;
	*place = message;
	return true;
}

/* The inside of the string in a message that is nothing but a role and a text, as most are: then
 * r->at is behind it. Absent: it is another one, nothing happened, or the reader has failed. */
static inline struct slice guess_text_message(struct decode *d, bool *assistant)
{
	static const char user[] = "{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"";
	static const char other[] =
		"{\"role\":\"assistant\",\"content\":{\"type\":\"text\",\"text\":\"";
	const struct slice none = { NULL, 0 };
	struct json_reader *r = d->r;
	const char *from = r->at;

	if (r->end - from < (ptrdiff_t)sizeof(other) || !json_may_guess(r) ||
	    r->depth + 2 > r->limits.depth_max)
		return none;
	if (memcmp(from, user, sizeof(user) - 1) == 0) {
		*assistant = false;
		from += sizeof(user) - 1;
	} else if (memcmp(from, other, sizeof(other) - 1) == 0) {
		*assistant = true;
		from += sizeof(other) - 1;
	} else {
		return none;
	}
	const char *quote = reader_string_end(r, from);
	if (quote == NULL || r->end - quote < 3 || quote[1] != '}' || quote[2] != '}')
		return none;
	r->at = quote + 3;
	return slice_of(from, (size_t)(quote - from));
}

static bool read_message(struct decode *d)
{
	struct message message = { .first = d->blocks.count };

	if (d->messages.count >= d->limits->messages_max)
		return decode_refuse_here(d, ERR_MESSAGES, "messages has too many entries");
	struct slice text = guess_text_message(d, &message.assistant);
	if (!slice_absent(text))
		return add_text(d, false, text) && add_message(d, message);
	if (json_here(d->r) != JSON_OBJECT)
		return decode_refuse_here(d, ERR_MESSAGES, "a message must be an object");
	return read_message_members(d, &message) && add_message(d, message);
}

bool decode_messages(struct decode *d)
{
	if (json_here(d->r) != JSON_ARRAY)
		return decode_refuse_here(d, ERR_MESSAGES, NULL);
	const char *at = d->r->at;
	(void)json_begin(d->r);
	while (json_next(d->r))
		if (!read_message(d))
			return decode_in_item(d, d->messages.count);
	if (!decode_good(d))
		return false;
	return d->messages.count != 0 || decode_refuse(d, ERR_MESSAGES_EMPTY, at, NULL);
}
