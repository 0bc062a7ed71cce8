/* cross_tools.c - tools and the choice among them as MCP's. */
#include "codec/cross/cross_parts.h"

struct tool_text {
	struct slice name, description, schema;
};

/* ---- one tool ---- */

static bool read_chat(struct cross *c, struct slice tool, const struct cross_at *at,
		      struct tool_text *out)
{
	static const char *const names[] = { "name", "description", "parameters" };
	const struct slice function = json_loose_member(tool, "function");
	struct slice m[3];

	if (!json_loose_is(json_loose_member(tool, "type"), "function") ||
	    !cross_is(function, JSON_LOOSE_OBJECT))
		return cross_refuse(c, at, "only functions can go to this model's provider");
	cross_members(function, names, 3, m);
	*out = (struct tool_text){ m[0], m[1], m[2] };
	return true;
}

static bool read_messages(struct cross *c, struct slice tool, const struct cross_at *at,
			  struct tool_text *out)
{
	static const char *const names[] = { "name", "description", "input_schema", "type" };
	struct slice m[4];

	cross_members(tool, names, 4, m);
	if (!slice_absent(m[3]) && !json_loose_is(m[3], "custom"))
		return cross_refuse(c, at,
				    "only tools of one's own can go to this model's provider");
	*out = (struct tool_text){ m[0], m[1], m[2] };
	return true;
}

static bool read_tool(struct cross *c, struct slice tool, const struct cross_at *at,
		      struct tool_text *out)
{
	if (!(api_is_anthropic(c->q->api) ? read_messages(c, tool, at, out)
					  : read_chat(c, tool, at, out)))
		return false;
	if (!cross_is(out->name, JSON_LOOSE_STRING))
		return cross_refuse(c, at, "a tool needs a string name");
	if (!slice_absent(out->schema) && !cross_is(out->schema, JSON_LOOSE_OBJECT))
		return cross_refuse(c, at, "the schema of a tool must be an object");
	return true;
}

/* MCP wants to read that arguments are an object; here it goes without saying. */
static void put_schema(struct cross *c, struct slice schema)
{
	struct json_loose_walk walk;

	json_loose_open(&walk, schema);
	if (slice_absent(schema) || !json_loose_next(&walk)) {
		gather_lit(&c->g, "{\"type\":\"object\",\"properties\":{}}");
	} else if (!slice_absent(json_loose_member(schema, "type"))) {
		gather_raw(&c->g, schema);
	} else {
		gather_lit(&c->g, "{\"type\":\"object\",");
		gather_raw(&c->g, slice_of(schema.at + 1, schema.len - 1));
	}
}

static void put_tool(struct cross *c, bool *first, const struct tool_text *tool)
{
	if (!*first)
		gather_lit(&c->g, ",");
	*first = false;
	gather_lit(&c->g, "{\"name\":");
	gather_raw(&c->g, tool->name);
	if (!slice_absent(tool->description)) {
		gather_lit(&c->g, ",\"description\":");
		gather_raw(&c->g, tool->description);
	}
	gather_lit(&c->g, ",\"inputSchema\":");
	put_schema(c, tool->schema);
	gather_lit(&c->g, "}");
}

/* ---- the choice ---- */

struct choice {
	const char *mode;  /* NULL: none was made */
	struct slice name; /* JSON text: this tool and no other; absent: any */
	bool serial;       /* one call at a time */
};

static const char *mode_of(struct slice word)
{
	static const char *const modes[][2] = { { "auto", "auto" },
						{ "none", "none" },
						{ "any", "required" },
						{ "required", "required" } };

	for (size_t i = 0; i < COUNT_OF(modes); i++)
		if (json_loose_is(word, modes[i][0]))
			return modes[i][1];
	return NULL;
}

/* {"type":"tool","name":…} or {"type":"function","function":{"name":…}} */
static struct slice named_by(struct slice choice, struct slice type)
{
	if (json_loose_is(type, "tool"))
		return json_loose_member(choice, "name");
	if (json_loose_is(type, "function"))
		return json_loose_member(json_loose_member(choice, "function"), "name");
	return slice_of(NULL, 0);
}

static bool read_choice(struct cross *c, struct slice value, struct slice parallel,
			struct choice *out)
{
	static const struct cross_at at = { "tool_choice", CROSS_NO_ITEM, NULL, 0 };
	const bool object = cross_is(value, JSON_LOOSE_OBJECT);
	const struct slice word = object ? json_loose_member(value, "type") : value;

	*out = (struct choice){ .mode = mode_of(word) };
	out->serial = slice_eq(parallel, SLICE("false")) ||
		      (object && slice_eq(json_loose_member(value, "disable_parallel_tool_use"),
					  SLICE("true")));
	if (out->mode != NULL || slice_absent(value) || cross_is(value, JSON_LOOSE_NULL))
		return true;
	out->name = named_by(value, word);
	if (!cross_is(out->name, JSON_LOOSE_STRING))
		return cross_refuse(c, &at, "this choice cannot go to this model's provider");
	out->mode = "required";
	return true;
}

static void put_choice(struct cross *c, const struct choice *choice)
{
	if (choice->mode == NULL && !choice->serial)
		return;
	gather_lit(&c->g, ",\"toolChoice\":{\"mode\":\"");
	gather_raw(&c->g, slice_str(choice->mode == NULL ? "auto" : choice->mode));
	gather_lit(&c->g, "\"");
	if (choice->serial)
		gather_lit(&c->g, ",\"disable_parallel_tool_use\":true");
	gather_lit(&c->g, "}");
}

/* ---- both ---- */

static void put_schema_tool(struct cross *c, struct slice schema)
{
	gather_lit(&c->g, ",\"tools\":[{\"name\":\"" SCHEMA_TOOL_NAME "\",\"inputSchema\":");
	put_schema(c, schema);
	gather_lit(&c->g, "}],\"toolChoice\":{\"mode\":\"required\"}");
	c->schema = true;
}

static bool is_chosen(const struct choice *choice, const struct tool_text *tool)
{
	return slice_absent(choice->name) || json_loose_same_id(choice->name, tool->name);
}

static bool put_tools(struct cross *c, struct slice tools, const struct choice *choice)
{
	static const struct cross_at choice_at = { "tool_choice", CROSS_NO_ITEM, NULL, 0 };
	struct cross_at at = { "tools", 0, NULL, 0 };
	struct json_loose_walk walk;
	struct tool_text tool;
	bool first = true;

	gather_lit(&c->g, ",\"tools\":[");
	json_loose_open(&walk, tools);
	for (; json_loose_next(&walk); at.item++) {
		if (!read_tool(c, walk.value, &at, &tool))
			return false;
		if (is_chosen(choice, &tool))
			put_tool(c, &first, &tool);
	}
	gather_lit(&c->g, "]");
	return !first || slice_absent(choice->name) ||
	       cross_refuse(c, &choice_at, "there is no tool of that name");
}

bool cross_tools(struct cross *c, struct slice tools, struct slice choice, struct slice parallel,
		 struct slice schema)
{
	struct json_loose_walk walk;
	struct choice chosen;

	json_loose_open(&walk, tools);
	const bool any = json_loose_next(&walk);
	if (!slice_absent(schema)) {
		const struct cross_at at = { api_is_anthropic(c->q->api) ? "output_config"
									 : "response_format",
					     CROSS_NO_ITEM, NULL, 0 };
		if (any)
			return cross_refuse(c, &at,
					    "a schema of the answer cannot go together with tools "
					    "to this model's provider");
		put_schema_tool(c, schema);
		return true;
	}
	if (!any)
		return true;
	if (!read_choice(c, choice, parallel, &chosen) || !put_tools(c, tools, &chosen))
		return false;
	put_choice(c, &chosen);
	return true;
}
