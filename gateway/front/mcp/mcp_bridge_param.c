#include "gateway/front/mcp/mcp_bridge_param.h"

#include "gateway/base/header_text.h"
#include "gateway/front/mcp/mcp_bridge_text.h"

#include <math.h>
#include <stdio.h>

enum { PARAM_MAX = 8 << 10 };        /* of a value; servers refuse a head that is much longer */
#define EXACT_MAX 9007199254740991.0 /* of whole numbers that a double tells apart */

struct slice mcp_param_schema(const struct mcp_message *listed, struct slice name,
			      struct slice *cursor)
{
	const struct slice next = json_loose_member(listed->result, "nextCursor");
	struct json_loose_walk walk;

	*cursor = json_loose_kind(next) == JSON_LOOSE_STRING ? next : slice_of(NULL, 0);
	json_loose_open(&walk, json_loose_member(listed->result, "tools"));
	while (json_loose_next(&walk))
		if (json_loose_same_id(json_loose_member(walk.value, "name"), name))
			return json_loose_member(walk.value, "inputSchema");
	return slice_of(NULL, 0);
}

/* The member that has the same name, written in whatever way. */
static struct slice member_named(struct slice object, struct slice name)
{
	struct slice found = { NULL, 0 };
	struct json_loose_walk walk;

	if (json_loose_kind(object) != JSON_LOOSE_OBJECT)
		return found;
	json_loose_open(&walk, object);
	while (json_loose_next(&walk))
		if (json_loose_same_id(walk.name, name))
			found = walk.value;
	return found;
}

static bool is_decimal(struct slice number)
{
	for (size_t i = 0; i < number.len; i++)
		if (number.at[i] == 'e' || number.at[i] == 'E')
			return false;
	return true;
}

/* As decimals; absent: there is none that says the same. `room` has 32 bytes. */
static struct slice number_text(struct slice number, char *room)
{
	double value;

	if (is_decimal(number))
		return number;
	if (!json_loose_number(number, &value) || floor(value) != value || fabs(value) > EXACT_MAX)
		return slice_of(NULL, 0);
	return slice_of(room, (size_t)snprintf(room, 32, "%.0f", value));
}

static void put_line(struct slice header, struct slice value, struct arena *into,
		     struct gather *head)
{
	const struct slice token = mcp_bridge_meaning(header, into);
	char room[32], name[64 + 16];
	struct slice text = slice_of(NULL, 0);

	switch (json_loose_kind(value)) {
	case JSON_LOOSE_STRING:
		text = mcp_bridge_meaning(value, into);
		break;
	case JSON_LOOSE_NUMBER:
		text = number_text(value, room);
		break;
	case JSON_LOOSE_OTHER:
		text = value; /* true or false */
		break;
	default:
		break;
	}
	if (slice_absent(text) || text.len > PARAM_MAX || slice_absent(token) || token.len > 64 ||
	    !header_text_is_name(token))
		return; /* the server says what it lacks */
	const int len = snprintf(name, sizeof(name), "mcp-param-%.*s", (int)token.len, token.at);
	mcp_bridge_line(head, slice_of(name, (size_t)len), text);
}

void mcp_param_lines(struct slice schema, struct slice arguments, struct arena *into,
		     struct gather *head)
{
	struct level {
		struct json_loose_walk properties;
		struct slice arguments;
	} levels[MCP_PARAM_DEPTH], *level = levels;

	json_loose_open(&level->properties, json_loose_member(schema, "properties"));
	level->arguments = arguments;
	for (;;) {
		if (!json_loose_next(&level->properties)) {
			if (level-- == levels)
				return;
			continue;
		}
		const struct slice property = level->properties.value;
		const struct slice value = member_named(level->arguments, level->properties.name);
		const struct slice header = json_loose_member(property, "x-mcp-header");
		if (json_loose_kind(header) == JSON_LOOSE_STRING)
			put_line(header, value, into, head);
		if (json_loose_kind(value) != JSON_LOOSE_OBJECT ||
		    level == levels + MCP_PARAM_DEPTH - 1)
			continue;
		level++;
		json_loose_open(&level->properties, json_loose_member(property, "properties"));
		level->arguments = value;
	}
}
