/* settings_print.c - the table as a manual and as a JSON Schema. */
#include "gateway/settings/settings.h"

#include "codec/base/must.h"
#include "gateway/settings/settings_table.h"
#include "gateway/settings/settings_value.h"

#include <inttypes.h>

enum { WORDS_MAX = 256 };

static bool is_map(const struct setting *row)
{
	return row->form == FORM_SCOPE_MAP || row->form == FORM_LATE_MAP ||
	       row->form == FORM_VALUE_MAP;
}

static bool is_entries(const struct setting *row)
{
	return row->form == FORM_SCOPES || row->form == FORM_SCOPE_MAP ||
	       row->form == FORM_LATE_LIST || row->form == FORM_LATE_MAP;
}

/* ---- the manual ---- */

static void print_type(FILE *out, const struct setting *row)
{
	char words[WORDS_MAX];

	if (is_entries(row)) {
		(void)fprintf(out, "%s of %" PRIu64 " to %" PRIu64 " entries",
			      is_map(row) ? "a map of names" : "a list", row->minimum,
			      row->maximum);
		return;
	}
	setting_expects(row, words, sizeof(words));
	if (row->form == FORM_LIST || row->form == FORM_VALUE_MAP)
		(void)fprintf(out, "a %s of at most %" PRIu64 ", each %s",
			      row->form == FORM_LIST ? "list" : "map of names", row->maximum,
			      words);
	else
		(void)fprintf(out, "%s", words);
}

static void print_row(FILE *out, const struct setting *row)
{
	const char *scope = settings_scope_info(row->scope)->path;
	char preset[WORDS_MAX];

	setting_preset_text(row, preset, sizeof(preset));
	(void)fprintf(out, "\n%s%s%s\n\t", scope, scope[0] == '\0' ? "" : ".", row->key);
	print_type(out, row);
	if (row->preset == NULL)
		(void)fprintf(out, "; needed");
	else
		(void)fprintf(out, "; default %s", preset);
	(void)fprintf(out, "; a change needs a %s\n\t%s\n", row->restart ? "restart" : "reload",
		      row->meaning);
}

void settings_print_manual(FILE *out)
{
	(void)fprintf(out,
		      "Settings of the configuration file, which is YAML (or JSON). [] stands for "
		      "the entries of a list,\n* for names of your choice. Sizes have a unit (B, "
		      "KiB, MiB, GiB), and so have durations (ns, us, ms, s, m, h, d).\n"
		      "${NAME} is an environment variable, file:PATH a file's content without its "
		      "last newline; both only where the type says so.\n"
		      "Paths are relative to the file that names them.\n");
	for (size_t i = 0; i < settings_table_count; i++)
		if (settings_table[i].form != FORM_LATER)
			print_row(out, &settings_table[i]);
}

/* ---- the schema ---- */

struct json_out {
	FILE *file;
	int depth;
	bool first; /* nothing stands in the open object yet */
};

/* `text` is ours, or a key: no control characters. */
static void put_string(struct json_out *j, struct slice text)
{
	(void)fputc('"', j->file);
	for (size_t i = 0; i < text.len; i++) {
		if (text.at[i] == '"' || text.at[i] == '\\')
			(void)fputc('\\', j->file);
		(void)fputc(text.at[i], j->file);
	}
	(void)fputc('"', j->file);
}

static void put_key(struct json_out *j, struct slice key)
{
	(void)fprintf(j->file, "%s\n%*s", j->first ? "" : ",", j->depth * 2, "");
	put_string(j, key);
	(void)fputs(": ", j->file);
	j->first = false;
}

static void put_text(struct json_out *j, const char *key, const char *text)
{
	put_key(j, slice_str(key));
	put_string(j, slice_str(text));
}

/* `value` is JSON. */
static void put_raw(struct json_out *j, const char *key, const char *value)
{
	put_key(j, slice_str(key));
	(void)fputs(value, j->file);
}

static void put_number(struct json_out *j, const char *key, uint64_t value)
{
	put_key(j, slice_str(key));
	(void)fprintf(j->file, "%" PRIu64, value);
}

static void open_object(struct json_out *j, struct slice key)
{
	put_key(j, key);
	(void)fputc('{', j->file);
	j->depth++;
	j->first = true;
}

static void close_object(struct json_out *j)
{
	j->depth--;
	(void)fprintf(j->file, "\n%*s}", j->depth * 2, "");
	j->first = false;
}

static void put_ref(struct json_out *j, enum settings_scope scope)
{
	char ref[64];

	(void)snprintf(ref, sizeof(ref), "#/$defs/%s", settings_scope_info(scope)->name);
	put_text(j, "$ref", ref);
}

/* What JSON Schema says of each type beside bounds; members of an object. */
static const char *const type_schema[] = {
	[TYPE_BOOL] = "\"type\": \"boolean\"",
	[TYPE_COUNT] = "\"type\": \"integer\"",
	[TYPE_AUTO_COUNT] = "\"type\": [\"integer\", \"string\"], \"pattern\": \"^auto$\"",
	[TYPE_SIZE] = "\"type\": [\"integer\", \"string\"], "
		      "\"pattern\": \"^[0-9]+(B|KiB|MiB|GiB)?$\"",
	[TYPE_DURATION] = "\"type\": \"string\", \"pattern\": \"^[0-9]+(ns|us|ms|s|m|h|d)$\"",
	[TYPE_USD] = "\"type\": \"number\"",
	[TYPE_PRICE] = "\"type\": \"number\"",
	[TYPE_FRACTION] = "\"type\": \"number\"",
	[TYPE_AWAY_USD] = "\"anyOf\": [{\"const\": \"closed\"}, {\"type\": \"object\", "
			  "\"properties\": {\"local\": {\"type\": \"number\"}}, "
			  "\"required\": [\"local\"], \"additionalProperties\": false}]",
	[TYPE_RANGE] = "\"type\": [\"array\", \"null\"], \"minItems\": 2, \"maxItems\": 2",
	[TYPE_FACTOR] = "\"type\": \"number\", \"minimum\": 0, \"maximum\": 1000",
	[TYPE_ID] = "\"type\": \"string\", \"pattern\": \"^[!#-\\\\[\\\\]-~]+$\"",
	[TYPE_TEXT] = "\"type\": \"string\"",
	[TYPE_PROMPT] = "\"type\": \"string\"",
	[TYPE_DATE] = "\"type\": \"string\", \"pattern\": \"^[0-9]{4}-[0-9]{2}-[0-9]{2}$\"",
	[TYPE_GLOB] = "\"type\": \"string\", \"pattern\": \"^[!#-\\\\[\\\\]-~]+$\"",
	[TYPE_ORIGIN] = "\"type\": \"string\", \"pattern\": \"^(null|[^:/]+://[^/]+)$\"",
	[TYPE_ALGORITHM] = "\"enum\": [\"RS256\", \"ES256\", \"EdDSA\"]",
	[TYPE_PATH] = "\"type\": \"string\"",
	[TYPE_FRONT] = "\"enum\": [\"sampling\", \"mcp\", \"direct\"]",
	[TYPE_HEADER_NAME] = "\"type\": \"string\", "
			     "\"pattern\": \"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$\"",
	[TYPE_FILES] = "\"type\": \"string\"",
	[TYPE_SHA256] = "\"type\": \"string\", \"pattern\": \"^[0-9a-f]{64}$\"",
	[TYPE_ADDRESS] = "\"type\": \"string\"",
	[TYPE_URL] = "\"type\": \"string\"",
	[TYPE_SECRET] = "\"type\": \"string\"",
	[TYPE_HEADER_VALUE] = "\"type\": \"string\"",
};

static void put_choices(struct json_out *j, const struct setting *row)
{
	bool later, first = true;
	struct slice word;

	put_key(j, SLICE("enum"));
	(void)fputc('[', j->file);
	for (size_t i = 0; !slice_absent(word = setting_choice(row, i, &later)); i++) {
		if (later)
			continue;
		if (!first)
			(void)fputs(", ", j->file);
		put_string(j, word);
		first = false;
	}
	(void)fputc(']', j->file);
}

/* Bounds in the unit of the file, where JSON Schema has a word for them. */
static void put_bounds(struct json_out *j, const struct setting *row)
{
	enum setting_type unit = row->type == TYPE_SIZE ? TYPE_COUNT : row->type; /* bytes */
	char low[WORDS_MAX], high[WORDS_MAX];

	switch (row->type) {
	case TYPE_USD:
	case TYPE_PRICE:
	case TYPE_COUNT:
	case TYPE_AUTO_COUNT:
	case TYPE_SIZE:
	case TYPE_FRACTION:
		value_format(unit, row->minimum, low, sizeof(low));
		value_format(unit, row->maximum, high, sizeof(high));
		put_raw(j, "minimum", low);
		put_raw(j, "maximum", high);
		break;
	case TYPE_BOOL:
	case TYPE_AWAY_USD:
	case TYPE_ALGORITHM:
	case TYPE_FRONT:
	case TYPE_FACTOR:
		break;
	case TYPE_RANGE:
		put_key(j, SLICE("items"));
		(void)fprintf(j->file,
			      "{\"type\": \"number\", \"minimum\": %" PRIu64
			      ", \"maximum\": %" PRIu64 "}",
			      row->minimum, row->maximum);
		break;
	default:
		put_number(j, "minLength", 1);
		if (row->form == FORM_VALUE && row->maximum > 0 && row->type < TYPE_ADDRESS)
			put_number(j, "maxLength", row->maximum);
	}
}

/* The members that describe one value. */
static void put_value(struct json_out *j, const struct setting *row)
{
	if (row->type == TYPE_CHOICE) {
		put_choices(j, row);
		return;
	}
	(void)fprintf(j->file, "%s\n%*s%s", j->first ? "" : ",", j->depth * 2, "",
		      type_schema[row->type]);
	j->first = false;
	if (row->type != TYPE_DURATION)
		put_bounds(j, row);
}

static void put_default(struct json_out *j, const struct setting *row)
{
	char text[WORDS_MAX];
	bool bare = row->type == TYPE_BOOL || row->type == TYPE_COUNT || row->type == TYPE_USD ||
		    row->type == TYPE_PRICE || row->type == TYPE_FRACTION;

	if (settings_scope_info(row->scope)->instead != NULL) {
		return;
	} else if (row->form == FORM_LIST || row->form == FORM_VALUE_MAP) {
		put_raw(j, "default", row->preset);
	} else if (row->form == FORM_VALUE && setting_has_value(row)) {
		setting_preset_text(row, text, sizeof(text));
		if (bare)
			put_raw(j, "default", text);
		else
			put_text(j, "default", text);
	}
}

static void put_tenants_items(struct json_out *j)
{
	open_object(j, SLICE("items"));
	put_raw(j, "anyOf",
		"[{\"$ref\": \"#/$defs/tenant\"}, {\"$ref\": \"#/$defs/tenant_files\"}]");
	close_object(j);
}

static void put_row(struct json_out *j, struct slice name, const struct setting *row)
{
	open_object(j, name);
	put_text(j, "description", row->meaning);
	if (row->form == FORM_VALUE) {
		put_value(j, row);
	} else if (is_map(row)) {
		put_text(j, "type", "object");
		put_number(j, "minProperties", row->minimum);
		put_number(j, "maxProperties", row->maximum);
		open_object(j, SLICE("additionalProperties"));
		if (row->form == FORM_VALUE_MAP)
			put_value(j, row);
		else
			put_ref(j, row->entry);
		close_object(j);
	} else {
		put_text(j, "type", "array");
		if (row->minimum > 0)
			put_number(j, "minItems", row->minimum);
		put_number(j, "maxItems", row->maximum);
		if (row->form == FORM_LATE_LIST) {
			put_tenants_items(j);
		} else {
			open_object(j, SLICE("items"));
			if (row->form == FORM_LIST)
				put_value(j, row);
			else
				put_ref(j, row->entry);
			close_object(j);
		}
	}
	put_default(j, row);
	close_object(j);
}

/* The row's key below `prefix`, and in *group whether only its first part; absent when the row is not
 * to be printed there. */
static struct slice name_below(const struct setting *row, struct slice prefix, bool *group)
{
	struct slice key = slice_str(row->key);

	/* `files` makes a kind of entry of its own */
	if (row->form == FORM_LATER || row->type == TYPE_FILES || !slice_starts(key, prefix))
		return (struct slice){ NULL, 0 };
	struct slice rest = slice_of(key.at + prefix.len, key.len - prefix.len);
	struct slice name = slice_cut(&rest, '.');
	*group = !slice_absent(rest);
	return name;
}

static void put_object(struct json_out *j, enum settings_scope scope, struct slice prefix);

/* Rows of a group stand together, so a new name begins a new group. Recursion: one level a dot. */
static void put_properties(struct json_out *j, enum settings_scope scope, struct slice prefix)
{
	size_t count;
	const struct setting *rows = settings_rows(scope, &count);
	struct slice last = { NULL, 0 };
	bool group;

	for (size_t i = 0; i < count; i++) {
		struct slice name = name_below(&rows[i], prefix, &group);
		if (slice_absent(name) || (!slice_absent(last) && slice_eq(name, last)))
			continue;
		last = name;
		if (!group) {
			put_row(j, name, &rows[i]);
			continue;
		}
		open_object(j, name);
		put_object(j, scope, slice_of(rows[i].key, prefix.len + name.len + 1));
		close_object(j);
	}
	if (settings_scope_info(scope)->extends != SCOPE_MAIN && prefix.len == 0)
		put_properties(j, settings_scope_info(scope)->extends, prefix);
}

static void put_required(struct json_out *j, enum settings_scope scope, struct slice prefix)
{
	size_t count;
	const struct setting *rows = settings_rows(scope, &count);
	struct slice last = { NULL, 0 };
	char part[64];
	bool group;

	for (size_t i = 0; i < count; i++) {
		struct slice name = name_below(&rows[i], prefix, &group);
		bool needed = rows[i].preset == NULL ||
			      (prefix.len > 0 && setting_needed_with(&rows[i], part, sizeof(part)));
		if (!needed || slice_absent(name) || (!slice_absent(last) && slice_eq(name, last)))
			continue;
		if (slice_absent(last)) {
			put_key(j, SLICE("required"));
			(void)fputc('[', j->file);
		} else {
			(void)fputs(", ", j->file);
		}
		put_string(j, name);
		last = name;
	}
	if (!slice_absent(last))
		(void)fputc(']', j->file);
}

/* The members of an object's schema. */
static void put_object(struct json_out *j, enum settings_scope scope, struct slice prefix)
{
	put_text(j, "type", "object");
	put_raw(j, "additionalProperties", "false");
	put_required(j, scope, prefix);
	open_object(j, SLICE("properties"));
	put_properties(j, scope, prefix);
	close_object(j);
}

static void put_tenant_files(struct json_out *j)
{
	bool group;
	const struct setting *row = settings_row(SCOPE_TENANT, SLICE(""), SLICE("files"), &group);

	must(row != NULL);
	open_object(j, SLICE("tenant_files"));
	put_text(j, "type", "object");
	put_raw(j, "additionalProperties", "false");
	put_raw(j, "required", "[\"files\"]");
	open_object(j, SLICE("properties"));
	put_row(j, SLICE("files"), row);
	close_object(j);
	close_object(j);
}

void settings_print_schema(FILE *out)
{
	struct json_out json = { .file = out, .depth = 1, .first = true };
	struct json_out *j = &json;

	(void)fputc('{', out);
	put_text(j, "$schema", "https://json-schema.org/draft/2020-12/schema");
	put_text(j, "title", "Configuration of sluice");
	put_object(j, SCOPE_MAIN, SLICE(""));
	open_object(j, SLICE("$defs"));
	for (int scope = SCOPE_MAIN + 1; scope < SCOPE_COUNT; scope++) {
		open_object(j, slice_str(settings_scope_info((enum settings_scope)scope)->name));
		put_object(j, (enum settings_scope)scope, SLICE(""));
		close_object(j);
	}
	put_tenant_files(j);
	open_object(j, SLICE("tenant_file"));
	put_text(j, "description", "a file that tenants[].files names");
	put_text(j, "type", "array");
	open_object(j, SLICE("items"));
	put_ref(j, SCOPE_TENANT);
	close_object(j);
	close_object(j);
	close_object(j);
	(void)fputs("\n}\n", out);
}
