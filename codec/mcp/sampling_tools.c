/* sampling_tools.c - tools and toolChoice (contract/mcp.md 2.4, 3.1). */
#include "codec/mcp/sampling_decode.h"

#include "codec/json/json_names.h"

static bool wrong(struct decode *d, const char *at, const char *detail, const char *member)
{
	(void)decode_refuse(d, ERR_TOOL, at, detail);
	return decode_in_member(d, member);
}

/* Members of a schema's root; those at the end mean nothing here, but are often there. */
enum root {
	ROOT_TYPE,
	ROOT_PROPERTIES,
	ROOT_REQUIRED,
	ROOT_ADDITIONAL,
	ROOT_ANY_OF,
	ROOT_ONE_OF,
	ROOT_ALL_OF,
	ROOT_NOT,
	ROOT_ENUM,
	ROOT_SCHEMA,
};
static const struct json_name root_names[] = {
	[ROOT_TYPE] = JSON_NAME("type"),
	[ROOT_PROPERTIES] = JSON_NAME("properties"),
	[ROOT_REQUIRED] = JSON_NAME("required"),
	[ROOT_ADDITIONAL] = JSON_NAME("additionalProperties"),
	[ROOT_ANY_OF] = JSON_NAME("anyOf"),
	[ROOT_ONE_OF] = JSON_NAME("oneOf"),
	[ROOT_ALL_OF] = JSON_NAME("allOf"),
	[ROOT_NOT] = JSON_NAME("not"),
	[ROOT_ENUM] = JSON_NAME("enum"),
	[ROOT_SCHEMA] = JSON_NAME("$schema"),
};

/* json_next_field of a schema's root. */
static inline uint32_t next_root(struct json_reader *r, struct json_fields *fields,
				 struct slice *other)
{
	const char *name = json_guess_name(r);

	if (name != NULL)
		switch (json_letters(name)) {
		case JSON_LETTERS('t', 'y', 'p', 'e'):
			if (json_guess_member(r, fields, ROOT_TYPE, name, "type"))
				return ROOT_TYPE;
			break;
		case JSON_LETTERS('p', 'r', 'o', 'p'):
			if (json_guess_member(r, fields, ROOT_PROPERTIES, name, "properties"))
				return ROOT_PROPERTIES;
			break;
		case JSON_LETTERS('r', 'e', 'q', 'u'):
			if (json_guess_member(r, fields, ROOT_REQUIRED, name, "required"))
				return ROOT_REQUIRED;
			break;
		case JSON_LETTERS('a', 'd', 'd', 'i'):
			if (json_guess_member(r, fields, ROOT_ADDITIONAL, name,
					      "additionalProperties"))
				return ROOT_ADDITIONAL;
			break;
		}
	return json_unguessed_field(r, fields, other);
}

/* The bit of tool.root that a member of a schema sets. */
static uint8_t root_bit(struct decode *d, uint32_t name)
{
	switch (name) {
	case ROOT_PROPERTIES:
		return SCHEMA_ROOT_PROPERTIES;
	case ROOT_REQUIRED:
		return SCHEMA_ROOT_REQUIRED;
	case ROOT_ANY_OF:
	case ROOT_ONE_OF:
	case ROOT_ALL_OF:
		return json_here(d->r) == JSON_ARRAY ? SCHEMA_ROOT_COMBINATORS : 0;
	case ROOT_NOT:
	case ROOT_ENUM:
		return SCHEMA_ROOT_COMBINATORS;
	default:
		return 0;
	}
}

/* Reads the member of a schema's root whose value is next. */
static inline bool read_root(struct decode *d, uint32_t name, struct tool *tool, bool *is_object)
{
	struct field value;

	tool->root |= root_bit(d, name);
	if (name == ROOT_ADDITIONAL && json_guess_lit(d->r, "false"))
		return true;
	if (name == ROOT_SCHEMA || (name == ROOT_REQUIRED && json_here(d->r) == JSON_ARRAY))
		return json_pass(d->r);
	if (name != ROOT_TYPE)
		return json_skip_schema(d->r, name == ROOT_PROPERTIES);
	if (json_guess_lit(d->r, "\"object\"")) {
		*is_object = true;
		return true;
	}
	if (!decode_field(d, &value))
		return false;
	*is_object = value.kind == JSON_STRING && json_str_eq(value.raw, SLICE("object"));
	return true;
}

/* Enters a schema and reads the members that are there in the usual order, as far as that goes. False
 * after failing. */
static bool read_usual_roots(struct decode *d, struct json_fields *fields, struct tool *tool,
			     bool *is_object)
{
	struct json_reader *const r = d->r;
	const char *brace = r->at;

	if (!json_may_guess(r) || !json_guess_lit(r, "{\"type\":\"object\""))
		return json_begin(r);
	*is_object = true;
	fields->seen = 1u << ROOT_TYPE;
	if (!json_resume_object(r, brace))
		return false;
	if (json_expect_lit(r, fields, ROOT_PROPERTIES, ",\"properties\":") &&
	    !read_root(d, ROOT_PROPERTIES, tool, is_object))
		return false;
	if (json_expect_lit(r, fields, ROOT_REQUIRED, ",\"required\":") &&
	    !read_root(d, ROOT_REQUIRED, tool, is_object))
		return false;
	return !json_expect_lit(r, fields, ROOT_ADDITIONAL, ",\"additionalProperties\":") ||
	       read_root(d, ROOT_ADDITIONAL, tool, is_object);
}

/* An object whose member `type` is "object"; everything else in it is opaque. */
static bool read_schema(struct decode *d, struct tool *tool)
{
	static const char detail[] = "inputSchema must be an object whose type is \"object\"";
	struct json_fields fields = JSON_FIELDS(root_names);
	struct slice key;
	bool is_object = false;
	uint32_t name;

	if (json_here(d->r) != JSON_OBJECT)
		return wrong(d, d->r->at, detail, "inputSchema");
	const char *at = d->r->at;
	d->r->odd = 0;
	if (!read_usual_roots(d, &fields, tool, &is_object))
		return false;
	while ((name = next_root(d->r, &fields, &key)) != FIELD_END)
		if (!read_root(d, name, tool, &is_object))
			return false;
	if (!decode_good(d))
		return false;
	if (!is_object)
		return wrong(d, at, detail, "inputSchema");
	tool->schema = slice_of(at, (size_t)(d->r->at - at));
	tool->odd = d->r->odd;
	return true;
}

static bool read_name(struct decode *d, struct slice *out)
{
	if (json_here(d->r) != JSON_STRING)
		return wrong(d, d->r->at, "a tool name must be a string", "name");
	const char *at = d->r->at;
	if (!json_take_string(d->r, out))
		return false;
	return out->len != 0 || wrong(d, at, "a tool name must not be empty", "name");
}

static bool read_description(struct decode *d, struct slice *out)
{
	struct field value;

	if (d->r->at != d->r->end && *d->r->at == '"')
		return json_take_string(d->r, out);
	if (!decode_field(d, &value))
		return false;
	if (value.kind == JSON_STRING) /* behind white space */
		*out = value.raw;
	else if (value.kind != JSON_BAD)
		return wrong(d, field_at(&value), "a tool description must be a string",
			     "description");
	return true;
}

enum { NAME, TITLE, DESCRIPTION, INPUT_SCHEMA, ANNOTATIONS };
static const struct json_name names[] = {
	[NAME] = JSON_NAME("name"),
	[TITLE] = JSON_NAME("title"),
	[DESCRIPTION] = JSON_NAME("description"),
	[INPUT_SCHEMA] = JSON_NAME("inputSchema"),
	[ANNOTATIONS] = JSON_NAME("annotations"),
};

/* json_next_field of a tool. */
static inline uint32_t next_member(struct json_reader *r, struct json_fields *fields,
				   struct slice *other)
{
	const char *name = json_guess_name(r);

	if (name != NULL)
		switch (json_letters(name)) {
		case JSON_LETTERS('n', 'a', 'm', 'e'):
			if (json_guess_member(r, fields, NAME, name, "name"))
				return NAME;
			break;
		case JSON_LETTERS('t', 'i', 't', 'l'):
			if (json_guess_member(r, fields, TITLE, name, "title"))
				return TITLE;
			break;
		case JSON_LETTERS('d', 'e', 's', 'c'):
			if (json_guess_member(r, fields, DESCRIPTION, name, "description"))
				return DESCRIPTION;
			break;
		case JSON_LETTERS('i', 'n', 'p', 'u'):
			if (json_guess_member(r, fields, INPUT_SCHEMA, name, "inputSchema"))
				return INPUT_SCHEMA;
			break;
		}
	return json_unguessed_field(r, fields, other);
}

/* Reads the member of a tool whose value is next. */
static inline bool read_member(struct decode *d, uint32_t name, struct tool *tool)
{
	switch (name) {
	case NAME:
		return read_name(d, &tool->name);
	case DESCRIPTION:
		return read_description(d, &tool->description);
	case INPUT_SCHEMA:
		return read_schema(d, tool);
	default:
		return json_pass(d->r);
	}
}

/* Enters a tool and reads the members that are there in the order of the schema, as far as that goes.
 * False after failing. */
static bool read_usual_members(struct decode *d, struct json_fields *fields, struct tool *tool)
{
	struct json_reader *const r = d->r;
	const char *brace = r->at;

	if (!json_may_guess(r) || !json_guess_lit(r, "{\"name\":"))
		return json_begin(r);
	fields->seen = 1u << NAME;
	if (!json_resume_object(r, brace) || !read_member(d, NAME, tool))
		return false;
	if (json_expect_lit(r, fields, TITLE, ",\"title\":") && !read_member(d, TITLE, tool))
		return false;
	if (json_expect_lit(r, fields, DESCRIPTION, ",\"description\":") &&
	    !read_member(d, DESCRIPTION, tool))
		return false;
	if (json_expect_lit(r, fields, INPUT_SCHEMA, ",\"inputSchema\":") &&
	    !read_member(d, INPUT_SCHEMA, tool))
		return false;
	return !json_expect_lit(r, fields, ANNOTATIONS, ",\"annotations\":") ||
	       read_member(d, ANNOTATIONS, tool);
}

/* Reads a tool into *tool, which is cleared. */
static bool read_tool_into(struct decode *d, struct tool *tool)
{
	struct json_fields fields = JSON_FIELDS(names);
	struct slice key;
	uint32_t name;

	if (json_here(d->r) != JSON_OBJECT)
		return decode_refuse_here(d, ERR_TOOL, "a tool must be an object");
	const char *at = d->r->at;
	if (!read_usual_members(d, &fields, tool))
		return false;
	while ((name = next_member(d->r, &fields, &key)) != FIELD_END)
		if (!read_member(d, name, tool))
			return false;
	if (!decode_good(d))
		return false;
	if (slice_absent(tool->name))
		return wrong(d, at, "a tool name is missing", "name");
	if (slice_absent(tool->schema))
		return wrong(d, at, "inputSchema is missing", "inputSchema");
	if (d->tools.count == d->limits->tools_max)
		return decode_refuse(d, ERR_TOOL, at, "tools has too many entries");
	return true;
}

/* In its place, which counts only once the tool is found to be good. */
static bool read_tool(struct decode *d)
{
	struct tool *tool = decode_push(d, &d->tools, sizeof(*tool));

	if (tool == NULL)
		return false;
	*tool = (struct tool){ .root = 0 };
	d->tools.count--;
	if (!read_tool_into(d, tool))
		return false;
	d->tools.count++;
	return true;
}

bool decode_tools(struct decode *d)
{
	if (json_here(d->r) != JSON_ARRAY)
		return decode_refuse_here(d, ERR_TOOL, "tools must be an array");
	d->out->tools_present = true;
	(void)json_begin(d->r);
	while (json_next(d->r))
		if (!read_tool(d))
			return decode_in_item(d, d->tools.count);
	return decode_good(d);
}

/* "any" is what Anthropic's API calls "required". */
static bool choice_mode(struct decode *d, const struct field *mode)
{
	static const struct {
		struct slice name;
		enum tool_mode mode;
	} modes[] = {
		{ SLICE_INIT("auto"), TOOL_MODE_AUTO },
		{ SLICE_INIT("required"), TOOL_MODE_REQUIRED },
		{ SLICE_INIT("none"), TOOL_MODE_NONE },
		{ SLICE_INIT("any"), TOOL_MODE_REQUIRED },
	};

	if (mode->kind == JSON_STRING)
		for (size_t i = 0; i < COUNT_OF(modes); i++)
			if (json_str_eq(mode->raw, modes[i].name)) {
				d->out->tool_mode = modes[i].mode;
				return true;
			}
	return decode_refuse(d, ERR_TOOL_CHOICE, field_at(mode), NULL);
}

/* The members of the choice object that d->r is at. */
static bool choice_members(struct decode *d, struct field *mode, struct field *serial)
{
	static const struct slice choices[] = { SLICE_INIT("mode"),
						SLICE_INIT("disable_parallel_tool_use") };
	struct field ignored, *const fields[] = { mode, serial, &ignored };
	struct slice key;

	(void)json_begin(d->r);
	while (json_next_key(d->r, &key))
		if (!decode_field(d, fields[names_find(choices, COUNT_OF(choices), key)]))
			return false;
	return decode_good(d);
}

bool decode_choice(struct decode *d, const struct field *choice, bool mode_wanted)
{
	struct json_reader sub;
	struct field mode = { 0 }, serial = { 0 };

	if (choice->kind == JSON_STRING)
		return !mode_wanted || choice_mode(d, choice);
	if (choice->kind != JSON_OBJECT)
		return decode_refuse(d, ERR_TOOL_CHOICE, field_at(choice),
				     "toolChoice must be an object or a string");
	struct json_reader *outer = decode_sub_open(d, &sub, choice->raw);
	bool fine = choice_members(d, &mode, &serial);
	if (fine && mode_wanted) {
		d->out->tool_mode = TOOL_MODE_AUTO;
		fine = mode.kind == JSON_BAD || choice_mode(d, &mode) ||
		       decode_in_member(d, "mode");
	}
	if (fine && serial.kind == JSON_TRUE)
		d->out->no_parallel = true;
	decode_sub_close(d, outer);
	return fine;
}
