/* sampling_block_build.c - from a block's members to the block: what each type needs (contract/mcp.md 2.3,
 * 3.1) and where it may be. */
#include "codec/mcp/sampling_block.h"

/* The names, for paths. */
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

static bool wrong(struct decode *d, enum err err, const char *at, const char *detail,
		  enum block_member member)
{
	(void)decode_refuse(d, err, at, detail);
	return decode_in_member(d, member_paths[member]);
}

/* The member as a string, which it must be; missing is wrong too. */
static bool need_string(struct decode *d, const struct block_members *m, enum block_member member,
			enum err err, const char *detail, struct slice *out)
{
	if (!block_has(m, member))
		return wrong(d, err, m->at, detail, member);
	if (m->fields[member].kind != JSON_STRING)
		return wrong(d, err, field_at(&m->fields[member]), detail, member);
	*out = m->fields[member].raw;
	return true;
}

/* The JSON text of the member, absent when it is missing. */
static struct slice json_of(const struct block_members *m, enum block_member member)
{
	const struct field *field = &m->fields[member];

	if (!block_has(m, member))
		return (struct slice){ NULL, 0 };
	return slice_of(field_at(field), field->raw.len + 2 * (size_t)(field->kind == JSON_STRING));
}

/* ---- blocks by type: from members to a block ---- */

static bool build_text(struct decode *d, const struct block_members *m, struct block *block)
{
	return need_string(d, m, MEMBER_TEXT, ERR_CONTENT, "a text block needs a string text",
			   &block->text.text);
}

static bool build_media(struct decode *d, const struct block_members *m, struct block *block)
{
	struct slice data, mime;

	if (!need_string(d, m, MEMBER_DATA, ERR_MEDIA, "data must be a base64 string", &data) ||
	    !need_string(d, m, MEMBER_MIME, ERR_MEDIA, "mimeType must be a string", &mime))
		return false;
	if (!decode_base64(d, data, m->data_clean, &block->media.data) ||
	    block->media.data.len == 0)
		return wrong(d, ERR_MEDIA, data.at - 1, "data is not valid base64", MEMBER_DATA);
	if (!decode_media_type(d, mime, &block->media.mime))
		return wrong(d, ERR_MEDIA, mime.at - 1, "mimeType is not a media type",
			     MEMBER_MIME);
	if (block->type == BLOCK_IMAGE && decode_image_type(block->media.data, &block->media.mime))
		d->out->adjustments |= ADJUST_BIT(ADJUST_IMAGE_TYPE_CORRECTED);
	return true;
}

/* An object; or, leniently, a string that holds one (V20). */
static bool build_input(struct decode *d, const struct block_members *m, struct slice *out)
{
	const struct field *input = &m->fields[MEMBER_INPUT];
	struct slice text;

	if (!block_has(m, MEMBER_INPUT))
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

static bool build_use(struct decode *d, const struct block_members *m, struct block *block)
{
	return need_string(d, m, MEMBER_ID, ERR_CONTENT, "tool_use needs a string id",
			   &block->use.id) &&
	       need_string(d, m, MEMBER_NAME, ERR_CONTENT, "tool_use needs a string name",
			   &block->use.name) &&
	       build_input(d, m, &block->use.input);
}

/* Of a resource, where it may be absent, and any string (contract/mcp.md 2.3): one that is no media type
 * says nothing, and would not be the inside of a JSON string in a placeholder. */
static bool build_mime(struct decode *d, const struct block_members *m, struct slice *mime)
{
	const struct field *field = &m->fields[MEMBER_MIME];

	*mime = (struct slice){ NULL, 0 };
	if (!block_has(m, MEMBER_MIME))
		return true;
	if (field->kind != JSON_STRING)
		return wrong(d, ERR_CONTENT, field_at(field), "mimeType must be a string",
			     MEMBER_MIME);
	return decode_media_type(d, field->raw, mime) || d->fault.err == ERR_OK;
}

static bool build_link(struct decode *d, const struct block_members *m, struct block *block)
{
	if (!need_string(d, m, MEMBER_URI, ERR_CONTENT, "resource_link needs a string uri",
			 &block->link.uri) ||
	    !need_string(d, m, MEMBER_NAME, ERR_CONTENT, "resource_link needs a string name",
			 &block->link.name))
		return false;
	return build_mime(d, m, &block->link.mime);
}

/* The object inside a resource block: uri, and text or blob. */
static bool build_resource_parts(struct decode *d, const struct block_members *m,
				 struct block *block)
{
	struct slice none = { NULL, 0 };

	block->resource.text = block->resource.blob = none;
	if (!need_string(d, m, MEMBER_URI, ERR_CONTENT, "a resource needs a string uri",
			 &block->resource.uri))
		return false;
	if (!build_mime(d, m, &block->resource.mime))
		return false;
	if (block_has(m, MEMBER_TEXT) || !block_has(m, MEMBER_BLOB))
		return need_string(d, m, MEMBER_TEXT, ERR_CONTENT,
				   "a resource needs a string text or blob", &block->resource.text);
	struct slice blob;
	if (!need_string(d, m, MEMBER_BLOB, ERR_CONTENT, "blob must be a base64 string", &blob))
		return false;
	return decode_base64(d, blob, m->blob_clean, &block->resource.blob) ||
	       wrong(d, ERR_MEDIA, blob.at - 1, "blob is not valid base64", MEMBER_BLOB);
}

static bool build_resource(struct decode *d, const struct block_members *m, struct block *block)
{
	const struct field *resource = &m->fields[MEMBER_RESOURCE];
	struct json_reader sub;
	struct block_members parts;

	if (!block_has(m, MEMBER_RESOURCE) || resource->kind != JSON_OBJECT)
		return wrong(d, ERR_CONTENT,
			     block_has(m, MEMBER_RESOURCE) ? field_at(resource) : m->at,
			     "a resource block needs an object resource", MEMBER_RESOURCE);
	struct json_reader *outer = decode_sub_open(d, &sub, resource->raw);
	parts.inside = true;
	bool fine = block_read_members(d, &parts) && build_resource_parts(d, &parts, block);
	decode_sub_close(d, outer);
	return fine || decode_in_member(d, "resource");
}

static bool build_result(struct decode *d, struct block_members *m, struct block *block)
{
	enum block_member id = block_has(m, MEMBER_TOOL_USE_ID)         ? MEMBER_TOOL_USE_ID
			       : block_has(m, MEMBER_TOOL_USE_ID_SNAKE) ? MEMBER_TOOL_USE_ID_SNAKE
			       : block_has(m, MEMBER_TOOL_CALL_ID)      ? MEMBER_TOOL_CALL_ID
									: MEMBER_TOOL_USE_ID;
	const struct field *is_error = &m->fields[MEMBER_IS_ERROR];
	struct json_reader sub;

	if (!need_string(d, m, id, ERR_CONTENT, "tool_result needs a string toolUseId",
			 &block->result.id))
		return false;
	if (block_has(m, MEMBER_IS_ERROR)) {
		if (is_error->kind != JSON_TRUE && is_error->kind != JSON_FALSE)
			return wrong(d, ERR_CONTENT, field_at(is_error),
				     "isError must be a boolean", MEMBER_IS_ERROR);
		block->is_error = is_error->kind == JSON_TRUE;
	}
	if (!m->content_done && block_has(m, MEMBER_CONTENT)) { /* it came before `type` */
		struct json_reader *outer = decode_sub_open(d, &sub, json_of(m, MEMBER_CONTENT));
		bool fine = block_read_content(d, m);
		decode_sub_close(d, outer);
		if (!fine)
			return false;
	}
	block->result.first = m->content_done ? m->first : d->inner.count;
	block->result.count = d->inner.count - block->result.first;
	block->result.structured =
		block_has(m, MEMBER_STRUCTURED) ? json_of(m, MEMBER_STRUCTURED) : m->implied;
	return true;
}

static bool build(struct decode *d, struct block_members *m, struct block *block)
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

static bool type_allowed(struct decode *d, const struct block_members *m)
{
	static const char tools_inside[] = "tool_use and tool_result cannot be in a tool_result";
	static const char resources_outside[] =
		"resource and resource_link can only be in a tool_result";

	if (m->type == BLOCK_TYPES) {
		bool there = block_has(m, MEMBER_TYPE);
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

bool block_add(struct decode *d, struct block_members *m)
{
	if (!type_allowed(d, m))
		return false;
	struct block *block = block_new(d, m->inside);
	if (block == NULL || !build(d, m, block))
		return false;
	if (m->inside)
		return true;
	d->types |= (uint32_t)1 << block->type;
	d->out->images += block->type == BLOCK_IMAGE;
	d->out->audios += block->type == BLOCK_AUDIO;
	return true;
}
