/* sampling_block.c - reading content blocks (contract/mcp.md 2.3, 3.1): first as SDKs write them, by
 * comparing, then member by member. */
#include "codec/mcp/sampling_block.h"

#include "codec/json/json_names.h"

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

static const struct slice type_names[BLOCK_TYPES] = {
	[BLOCK_TEXT] = SLICE_INIT("text"),
	[BLOCK_IMAGE] = SLICE_INIT("image"),
	[BLOCK_AUDIO] = SLICE_INIT("audio"),
	[BLOCK_TOOL_USE] = SLICE_INIT("tool_use"),
	[BLOCK_TOOL_RESULT] = SLICE_INIT("tool_result"),
	[BLOCK_RESOURCE_LINK] = SLICE_INIT("resource_link"),
	[BLOCK_RESOURCE] = SLICE_INIT("resource"),
};

/* Notes a member that is there and not null. */
static inline void note(struct block_members *m, uint32_t member, struct field field)
{
	m->seen |= (uint32_t)1 << member;
	m->fields[member] = field;
}

/* Notes the type, which tells what is likely to come next. */
static inline void note_type(struct block_members *m, struct json_fields *fields,
			     struct field field)
{
	static const uint8_t nexts[BLOCK_TYPES + 1] = {
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
		m->type = names_find(type_names, BLOCK_TYPES, field.raw);
	fields->next = nexts[m->type];
}

/* Reads the value of a member. */
static inline bool read_member(struct decode *d, struct block_members *m,
			       struct json_fields *fields, uint32_t member)
{
	struct field field = { .kind = JSON_STRING };

	if (member == MEMBER_CONTENT && m->type == BLOCK_TOOL_RESULT && !m->inside)
		return block_read_content(d, m);
	if ((member == MEMBER_DATA || member == MEMBER_BLOB) && d->r->at < d->r->end &&
	    *d->r->at == '"') {
		if (!decode_base64_string(d, &field.raw,
					  member == MEMBER_DATA ? &m->data_clean : &m->blob_clean))
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
static bool read_rest(struct decode *d, struct block_members *m, struct json_fields *fields)
{
	struct slice key;
	uint32_t member;

	while ((member = next_member(d->r, fields, &key)) != FIELD_END)
		if (!read_member(d, m, fields, member))
			return false;
	return decode_good(d);
}

static inline void members_init(struct block_members *m, const char *at)
{
	m->at = at;
	m->type = BLOCK_TYPES;
	m->seen = 0;
	m->data_clean = NULL;
	m->blob_clean = NULL;
	m->content_done = false;
	m->implied = (struct slice){ NULL, 0 };
}

bool block_read_members(struct decode *d, struct block_members *m)
{
	struct json_fields fields = JSON_FIELDS(member_names);

	members_init(m, d->r->at);
	(void)json_begin(d->r);
	return read_rest(d, m, &fields);
}

/* Goes on with an object that was guessed up to here: what is in *m, and maybe more. */
static bool resume_block(struct decode *d, struct block_members *m)
{
	struct json_fields fields = JSON_FIELDS(member_names);

	fields.seen = m->seen;
	if (m->content_done)
		fields.seen |= 1u << MEMBER_CONTENT;
	return read_rest(d, m, &fields) && block_add(d, m);
}

static inline void note_string(struct block_members *m, enum block_member member, struct slice raw)
{
	note(m, member, (struct field){ JSON_STRING, raw });
}

/* Goes on with the object at `brace`, which began with "type" and this "text". */
static SCAN_RARE bool resume_text(struct decode *d, bool inside, const char *brace,
				  struct slice text)
{
	struct block_members m;

	if (!json_resume_object(d->r, brace))
		return false;
	members_init(&m, brace);
	m.inside = inside;
	m.type = BLOCK_TEXT;
	note_string(&m, MEMBER_TYPE, type_names[BLOCK_TEXT]);
	note_string(&m, MEMBER_TEXT, text);
	return resume_block(d, &m);
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
	return block_add_text(d, inside, text);
}

/* Reads a call whose members come in the usual order. *fine: how that went. False: it is another block,
 * nothing happened, or the reader has failed. */
static bool guess_use(struct decode *d, bool *fine)
{
	struct json_reader *r = d->r;
	const char *brace = r->at;
	struct slice id, name, input;
	struct block_members m;

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
		struct block *block = block_new(d, false);
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
	struct block_members m;
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
	*fine = json_resume_object(r, brace) && block_read_content(d, &m);
	if (!*fine)
		return true;
	if (json_guess_lit(r, ",\"isError\":false"))
		note(&m, MEMBER_IS_ERROR, (struct field){ JSON_FALSE, { r->at - 5, 5 } });
	*fine = json_guess_end(r) ? block_add(d, &m) : resume_block(d, &m);
	return true;
}

bool decode_block(struct decode *d, bool inside)
{
	static const struct slice text = SLICE_INIT("{\"type\":\"text\",\"text\":");
	const size_t tool = sizeof("{\"type\":\"tool_") - 1; /* tool_use or tool_result */
	struct json_reader *r = d->r;
	struct block_members m;
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
	return block_read_members(d, &m) && block_add(d, &m);
}

/* Free text, or an object's compact JSON, as the one text block of a tool result. */
static bool read_result_text(struct decode *d, struct block_members *m)
{
	struct block *block = block_new(d, true);

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

bool block_read_content(struct decode *d, struct block_members *m)
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
		if (!decode_block(d, true)) {
			(void)decode_in_item(d, i);
			return decode_in_member(d, "content");
		}
	return decode_good(d);
}
