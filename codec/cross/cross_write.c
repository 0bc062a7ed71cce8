/* cross_write.c - the pieces of a sampling/createMessage. */
#include "codec/cross/cross_parts.h"

#include <stdio.h>

/* ---- faults ---- */

enum { PATH_ROOM = 160 };

static size_t put_item(char *to, size_t room, const char *list, uint32_t item, bool brackets)
{
	const int len = item == CROSS_NO_ITEM ? snprintf(to, room, "%s", list)
			: brackets            ? snprintf(to, room, "%s[%u]", list, item)
					      : snprintf(to, room, "%s.%u", list, item);

	return (size_t)len < room ? (size_t)len : room - 1;
}

static struct slice path_of(const struct cross *c, const struct cross_at *at)
{
	const bool brackets = !api_is_anthropic(c->q->api);
	char *text = arena_take(c->into, PATH_ROOM);

	if (text == NULL)
		return slice_of(NULL, 0);
	size_t len = put_item(text, PATH_ROOM, at->list, at->item, brackets);
	if (at->inner != NULL && len + 1 < PATH_ROOM) {
		text[len++] = '.';
		len += put_item(text + len, PATH_ROOM - len, at->inner, at->inner_item, brackets);
	}
	return slice_of(text, len);
}

bool cross_refuse(struct cross *c, const struct cross_at *at, const char *detail)
{
	if (c->fault->err == ERR_OK)
		*c->fault = (struct fault){ .err = ERR_FIELD,
					    .offset = FAULT_NO_OFFSET,
					    .path = path_of(c, at),
					    .detail = detail };
	return false;
}

bool cross_busy(struct cross *c)
{
	if (c->fault->err == ERR_OK)
		*c->fault = (struct fault){ .err = ERR_BUSY, .offset = FAULT_NO_OFFSET };
	return false;
}

bool cross_open(struct cross *c, struct json_loose_walk *walk, struct slice array,
		const struct cross_at *at)
{
	const enum json_loose_kind kind = json_loose_kind(array);

	json_loose_open(walk, kind == JSON_LOOSE_ARRAY ? array : SLICE("[]"));
	return kind == JSON_LOOSE_ARRAY || kind == JSON_LOOSE_NULL || kind == JSON_LOOSE_NONE ||
	       cross_refuse(c, at, "must be an array");
}

void cross_members(struct slice object, const char *const *names, size_t count, struct slice *out)
{
	struct json_loose_walk walk;

	for (size_t i = 0; i < count; i++)
		out[i] = slice_of(NULL, 0);
	json_loose_open(&walk, object);
	while (json_loose_next(&walk))
		for (size_t i = 0; i < count; i++)
			if (json_loose_is(walk.name, names[i]) &&
			    !cross_is(walk.value, JSON_LOOSE_NULL))
				out[i] = walk.value;
}

/* ---- messages and blocks ---- */

void cross_open_message(struct cross *c, bool assistant)
{
	if (c->comma)
		gather_lit(&c->g, ",");
	c->comma = true;
	if (assistant)
		gather_lit(&c->g, "{\"role\":\"assistant\",\"content\":[");
	else
		gather_lit(&c->g, "{\"role\":\"user\",\"content\":[");
}

void cross_close_message(struct cross *c)
{
	gather_lit(&c->g, "]}");
}

static void begin_block(struct cross *c, bool *first)
{
	if (!*first)
		gather_lit(&c->g, ",");
	*first = false;
}

void cross_put_text(struct cross *c, bool *first, struct slice string)
{
	begin_block(c, first);
	gather_lit(&c->g, "{\"type\":\"text\",\"text\":");
	gather_raw(&c->g, string);
	gather_lit(&c->g, "}");
}

void cross_put_media(struct cross *c, bool *first, const char *type, struct slice data,
		     struct slice mime)
{
	begin_block(c, first);
	gather_lit(&c->g, "{\"type\":\"");
	gather_raw(&c->g, slice_str(type));
	gather_lit(&c->g, "\",\"data\":");
	gather_raw(&c->g, data);
	gather_lit(&c->g, ",\"mimeType\":");
	gather_str(&c->g, mime);
	gather_lit(&c->g, "}");
}

void cross_put_use(struct cross *c, bool *first, struct slice id, struct slice name,
		   struct slice input)
{
	begin_block(c, first);
	gather_lit(&c->g, "{\"type\":\"tool_use\",\"id\":");
	gather_raw(&c->g, id);
	gather_lit(&c->g, ",\"name\":");
	gather_raw(&c->g, name);
	gather_lit(&c->g, ",\"input\":");
	gather_raw(&c->g, input);
	gather_lit(&c->g, "}");
}

void cross_open_result(struct cross *c, bool *first, struct slice id)
{
	begin_block(c, first);
	gather_lit(&c->g, "{\"type\":\"tool_result\",\"toolUseId\":");
	gather_raw(&c->g, id);
	gather_lit(&c->g, ",\"content\":[");
}

void cross_close_result(struct cross *c, bool is_error)
{
	if (is_error)
		gather_lit(&c->g, "],\"isError\":true}");
	else
		gather_lit(&c->g, "]}");
}
