#include "codec/set.h"
#include "tests/unit/gateway/settings/settings_rig.h"

#include "codec/json/json_read.h"

#include <stdio.h>
#include <string.h>

/* ---- the example that is delivered, the table and the manual agree ---- */

struct example {
	char *text;
	struct problems problems;
	struct arena_pool pool;
	struct arena arena;
	struct tree *tree;
	const struct node *root;
};

static void example_open(struct example *e)
{
	const char *source = getenv("SLUICE_SOURCE");
	char path[1024];

	*e = (struct example){ .problems.out = stderr };
	(void)snprintf(path, sizeof(path), "%s/deploy/sluice.yaml.example",
		       source == NULL ? "." : source);
	e->text = rig_slurp(path);
	arena_init(&e->arena, &e->pool, 1 << 20);
	e->tree = tree_new(&e->problems, "example", slice_str(e->text));
	assert_non_null(e->tree);
	e->root = tree_document(e->tree, &e->arena);
	assert_non_null(e->root);
}

static void example_close(struct example *e)
{
	tree_free(&e->tree);
	arena_give(&e->arena);
	arena_pool_fini(&e->pool);
	free(e->text);
}

/* The row's place in the file: "models[].price.input". */
static void full_path(const struct setting *row, char *out, size_t room)
{
	const char *scope = settings_scope_info(row->scope)->path;

	(void)snprintf(out, room, "%s%s%s", scope, scope[0] == '\0' ? "" : ".", row->key);
}

/* The node at a table's path, by the first entry of each list and map. */
static const struct node *first_at(const struct node *node, const char *path)
{
	struct slice rest = slice_str(path);

	while (node != NULL && !slice_absent(rest)) {
		char key[64];
		struct slice part = slice_cut(&rest, '.');
		bool list = part.len > 2 && part.at[part.len - 1] == ']';
		if (slice_eq(part, SLICE("*"))) {
			node = node->first;
			continue;
		}
		(void)snprintf(key, sizeof(key), "%.*s", (int)part.len - (list ? 2 : 0), part.at);
		node = node_find(node, key);
		if (list && node != NULL)
			node = node->first;
	}
	return node;
}

/* Whether some line of comment shows `key` with a value. */
static bool is_shown_in_a_comment(const char *text, const char *key)
{
	struct slice rest = slice_str(text);
	char wanted[300];

	(void)snprintf(wanted, sizeof(wanted), "%s: ", key);
	while (!slice_absent(rest)) {
		struct slice line = slice_trim(slice_cut(&rest, '\n'));
		if (line.len > 2 && line.at[0] == '#' && slice_has_nocase(line, slice_str(wanted)))
			return true;
	}
	return false;
}

static void the_example_loads(void **state)
{
	struct example e;
	struct rig rig;
	(void)state;
	assert_int_equal(setenv("ANTHROPIC_API_KEY", "a", 1), 0);
	assert_int_equal(setenv("OPENAI_API_KEY", "b", 1), 0);
	example_open(&e);
	rig_load_good(&rig, e.text);
	rig_fini(&rig);
	example_close(&e);
}

static void the_example_shows_every_setting_with_its_default(void **state)
{
	struct example e;
	char path[256], preset[256];
	(void)state;
	example_open(&e);
	for (size_t i = 0; i < settings_table_count; i++) {
		const struct setting *row = &settings_table[i];
		/* keys that stand over others are shown where those are */
		if (row->form == FORM_LATER || settings_scope_info(row->scope)->instead != NULL)
			continue;
		full_path(row, path, sizeof(path));
		const struct node *node = first_at(e.root, path);
		const char *dot = strrchr(path, '.');
		if (node == NULL && !is_shown_in_a_comment(e.text, dot == NULL ? path : dot + 1))
			fail_msg("deploy/sluice.yaml.example does not show %s", path);
		setting_preset_text(row, preset, sizeof(preset));
		if (node == NULL && row->form == FORM_VALUE && setting_has_value(row))
			fail_msg("%s has a default, but is a comment only", path);
		if (node == NULL || !setting_has_value(row) || row->form != FORM_VALUE)
			continue;
		if (!slice_eq(node->text, slice_str(preset)))
			fail_msg("%s is %.*s in the example, its default is %s", path,
				 (int)node->text.len, node->text.at, preset);
	}
	example_close(&e);
}

static void the_plan_of_defaults_in_the_example_is_that_of_a_tenant_without_a_plan(void **state)
{
	struct example e;
	struct rig rig;
	char text[16384];
	(void)state;
	assert_int_equal(setenv("ANTHROPIC_API_KEY", "a", 1), 0);
	assert_int_equal(setenv("OPENAI_API_KEY", "b", 1), 0);
	example_open(&e);
	int len = snprintf(text, sizeof(text), "%s  - {id: x, plan: defaults}\n  - {id: y}\n",
			   e.text);
	assert_true(len > 0 && (size_t)len < sizeof(text));
	rig_load_good(&rig, text);
	const struct plan *x = tenants_by_id(&rig.config->tenants, SLICE("x"))->plan;
	const struct plan *y = tenants_by_id(&rig.config->tenants, SLICE("y"))->plan;
	assert_ptr_not_equal(x, y);
	assert_memory_equal(&x->limits.requests, &y->limits.requests, sizeof(x->limits.requests));
	assert_memory_equal(&x->limits.tokens, &y->limits.tokens, sizeof(x->limits.tokens));
	assert_int_equal(x->limits.concurrent, y->limits.concurrent);
	assert_int_equal(x->limits.max_tokens, y->limits.max_tokens);
	assert_int_equal(x->limits.max_tokens_refuse, y->limits.max_tokens_refuse);
	assert_int_equal(x->limits.tool_rounds, y->limits.tool_rounds);
	assert_int_equal(x->limits.tool_rounds_refuse, y->limits.tool_rounds_refuse);
	assert_int_equal(x->limits.loop_tokens, y->limits.loop_tokens);
	assert_int_equal(x->limits.loop_usd, y->limits.loop_usd);
	assert_int_equal(x->limits.unknown_calls_refuse, y->limits.unknown_calls_refuse);
	assert_int_equal(x->limits.usd_per_day, y->limits.usd_per_day);
	assert_int_equal(x->limits.usd_per_month, y->limits.usd_per_month);
	assert_int_equal(x->limits.deadline, y->limits.deadline);
	assert_int_equal(x->limits.deadline_progress, y->limits.deadline_progress);
	assert_memory_equal(&x->models, &y->models, sizeof(x->models));
	assert_int_equal(x->default_model, y->default_model);
	assert_memory_equal(&x->capabilities, &y->capabilities, sizeof(x->capabilities));
	assert_int_equal(x->fronts, y->fronts);
	assert_int_equal(x->mcp_allow_count + x->mcp_deny_count, 0);
	assert_int_equal(y->mcp_allow_count + y->mcp_deny_count, 0);
	assert_int_equal(x->mcp_messages_per_minute, y->mcp_messages_per_minute);
	assert_int_equal(x->mcp_sessions, y->mcp_sessions);
	rig_fini(&rig);
	example_close(&e);
}

/* ---- the manual ---- */

static char *printed(void (*print)(FILE *out))
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	print(out);
	assert_int_equal(fclose(out), 0);
	return text;
}

static void the_manual_has_every_setting_with_bounds_default_and_meaning(void **state)
{
	char *manual = printed(settings_print_manual), path[256], line[300], preset[256];
	(void)state;
	for (size_t i = 0; i < settings_table_count; i++) {
		const struct setting *row = &settings_table[i];
		full_path(row, path, sizeof(path));
		(void)snprintf(line, sizeof(line), "\n%s\n", path);
		const char *found = strstr(manual, line);
		assert_int_equal(found != NULL, row->form != FORM_LATER);
		if (found == NULL)
			continue;
		const char *end = strstr(found + 1, "\n\n"); /* of its entry */
		struct slice entry =
			end == NULL ? slice_str(found) : slice_of(found, (size_t)(end - found));
		setting_preset_text(row, preset, sizeof(preset));
		(void)snprintf(line, sizeof(line), "default %s", preset);
		assert_true(slice_has_nocase(entry, row->preset == NULL ? SLICE("; needed")
									: slice_str(line)));
		assert_true(slice_has_nocase(entry, row->restart ? SLICE("a restart")
								 : SLICE("a reload")));
		assert_true(slice_has_nocase(entry, slice_str(row->meaning)));
	}
	free(manual);
}

/* Known values, so that not only the table is compared with itself. */
static void the_manual_prints_units(void **state)
{
	static const char *const lines[] = {
		"\nlimits.body_bytes\n\ta size such as 16MiB from 1KiB to 1GiB; default 16MiB;",
		"\nplans.*.limits.deadline\n\ta duration such as 55s from 1ms to 1h; default 55s;",
		"\nplans.*.limits.usd_per_day\n\tan amount in USD from 0 to 10000000; default 5;",
		"\nplans.*.limits.usd_per_month\n\tan amount in USD from 0 to 10000000; default "
		"(no limit);",
		"\nplans.*.limits.requests_burst\n\ta whole number from 1 to 60000000000; default "
		"(from the rate);",
		"\nproviders.*.dialect\n\tanthropic or openai or openai-responses; needed;",
		"\nmcp_servers.*.headers\n\ta map of names of at most 64, each a header's value, "
		"${NAME} or file:PATH; default {};",
		"\nlisten[].fronts\n\ta list of at most 3, each sampling, mcp or direct; default",
		"\nmcp_servers.*.timeouts.idle\n\ta duration such as 55s from 1ms to 1d; default "
		"10m;",
		"\nplans.*.capabilities.context\n\ttrue or false; default false;",
	};
	char *manual = printed(settings_print_manual);
	(void)state;
	for (size_t i = 0; i < COUNT_OF(lines); i++) {
		if (strstr(manual, lines[i]) == NULL)
			print_error("not in the manual: %s\n", lines[i]);
		assert_non_null(strstr(manual, lines[i]));
	}
	free(manual);
}

/* ---- the schema ---- */

/* The raw value of a member, absent when there is none. `object` must be valid JSON. */
static struct slice member(struct slice object, struct slice key)
{
	struct json_reader r;
	struct slice name, raw;

	json_open(&r, object, NULL, NULL);
	if (!json_enter_object(&r))
		return (struct slice){ NULL, 0 };
	while (json_next_key(&r, &name)) {
		assert_true(json_skip(&r, &raw));
		if (json_str_eq(name, key))
			return raw;
	}
	return (struct slice){ NULL, 0 };
}

/* The schema of a row: the scope's object, then properties by properties along the key. */
static struct slice schema_of(struct slice schema, const struct setting *row)
{
	struct slice at = schema, rest = slice_str(row->key);

	if (row->scope != SCOPE_MAIN) {
		const char *name = row->type == TYPE_FILES ? "tenant_files"
							   : settings_scope_info(row->scope)->name;
		at = member(member(schema, SLICE("$defs")), slice_str(name));
	}
	while (!slice_absent(rest) && !slice_absent(at)) {
		struct slice part = slice_cut(&rest, '.');
		assert_true(slice_eq(member(at, SLICE("additionalProperties")), SLICE("false")));
		at = member(member(at, SLICE("properties")), part);
	}
	return at;
}

static void the_schema_is_json_and_has_exactly_the_available_settings(void **state)
{
	char *text = printed(settings_print_schema);
	struct json_work *work = json_work_new(codec_set_best());
	struct json_reader r;
	(void)state;
	assert_non_null(work);
	json_open(&r, slice_str(text), NULL, work);
	assert_true(json_skip(&r, NULL) && json_finish(&r));
	assert_true(slice_eq(member(slice_str(text), SLICE("$schema")),
			     SLICE("\"https://json-schema.org/draft/2020-12/schema\"")));
	for (size_t i = 0; i < settings_table_count; i++) {
		const struct setting *row = &settings_table[i];
		struct slice found = schema_of(slice_str(text), row);
		assert_int_equal(slice_absent(found), row->form == FORM_LATER);
		if (row->form == FORM_VALUE && setting_has_value(row))
			assert_false(slice_absent(member(found, SLICE("default"))));
	}
	json_work_free(work);
	free(text);
}

static void the_schema_bounds_what_the_reader_bounds(void **state)
{
	static const struct {
		enum settings_scope scope;
		const char *key, *member, *value;
	} rows[] = {
		{ SCOPE_MAIN, "limits.connections", "maximum", "1000000" },
		{ SCOPE_MAIN, "limits.body_bytes", "maximum", "1073741824" },
		{ SCOPE_MAIN, "store.kind", "enum", "[\"memory\", \"redis\"]" },
		{ SCOPE_MODEL, "price.input", "maximum", "1000000" },
		{ SCOPE_MODEL, "speed", "maximum", "1" },
		{ SCOPE_PLAN, "capabilities.context", "default", "false" },
		{ SCOPE_MODEL, "id", "maxLength", "128" },
		{ SCOPE_PLAN, "limits.usd_per_day", "default", "5" },
		{ SCOPE_PLAN, "limits.requests_per_minute", "minimum", "1" },
		{ SCOPE_PLAN, "limits.max_tokens_mode", "enum", "[\"clamp\", \"refuse\"]" },
		{ SCOPE_MCP_SERVER, "headers", "type", "\"object\"" },
		{ SCOPE_MCP_SERVER, "headers", "maxProperties", "64" },
		{ SCOPE_MCP_SERVER, "headers", "default", "{}" },
		{ SCOPE_MCP_SERVER, "sampling", "default", "\"backfill\"" },
		{ SCOPE_MAIN, "identity.certificates.san", "enum", "[\"uri\", \"dns\"]" },
	};
	char *text = printed(settings_print_schema);
	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		bool group;
		struct setting row = { .scope = rows[i].scope, .key = rows[i].key };
		assert_true(settings_row(row.scope, SLICE(""), slice_str(row.key), &group) != NULL);
		struct slice value =
			member(schema_of(slice_str(text), &row), slice_str(rows[i].member));
		assert_slice(value, rows[i].value);
	}
	free(text);
}

/* A group that may be absent as a whole, but not in parts. */
static void what_a_group_needs_is_required_in_the_group_alone(void **state)
{
	char *text = printed(settings_print_schema), *manual = printed(settings_print_manual);
	struct slice listen = member(member(slice_str(text), SLICE("$defs")), SLICE("listen"));
	(void)state;
	assert_slice(member(listen, SLICE("required")), "[\"address\"]");
	assert_slice(member(member(member(listen, SLICE("properties")), SLICE("tls")),
			    SLICE("required")),
		     "[\"cert\", \"key\"]");
	assert_non_null(strstr(manual, "\nlisten[].tls.cert\n\ta path, relative to this file or "
				       "absolute; default (needed in tls);"));
	free(manual);
	free(text);
}

static void a_tenant_may_have_every_key_of_a_plan_in_the_schema(void **state)
{
	char *text = printed(settings_print_schema);
	size_t count;
	const struct setting *rows = settings_rows(SCOPE_PLAN, &count);
	(void)state;
	for (size_t i = 0; i < count; i++) {
		struct setting row = rows[i];
		row.scope = SCOPE_TENANT;
		assert_int_equal(slice_absent(schema_of(slice_str(text), &row)),
				 row.form == FORM_LATER);
	}
	free(text);
}

/* ---- the table itself ---- */

static void no_key_stands_twice_and_scopes_stand_together(void **state)
{
	size_t seen = 0, count;
	bool group;
	(void)state;
	for (int scope = 0; scope < SCOPE_COUNT; scope++) {
		const struct setting *rows = settings_rows((enum settings_scope)scope, &count);
		seen += count;
		for (size_t i = 0; i < count; i++) /* the first of that key is this one */
			assert_ptr_equal(settings_row((enum settings_scope)scope, SLICE(""),
						      slice_str(rows[i].key), &group),
					 &rows[i]);
	}
	assert_int_equal(seen, settings_table_count);
}

static void a_mistyped_key_is_answered_with_the_nearest(void **state)
{
	static const struct {
		enum settings_scope scope;
		const char *prefix, *key, *nearest;
	} rows[] = {
		{ SCOPE_MAIN, "", "provider", "providers" },
		{ SCOPE_MAIN, "", "lisen", "listen" },
		{ SCOPE_MAIN, "", "Models", "models" },
		{ SCOPE_MAIN, "limits.", "body_byte", "body_bytes" },
		{ SCOPE_PLAN, "limits.", "request_per_minute", "requests_per_minute" },
		{ SCOPE_PLAN, "limits.", "max_token", "max_tokens" },
		{ SCOPE_PLAN, "limits.", "loop_token", "loop_tokens" },
		{ SCOPE_MAIN, "", "entirely-different", NULL },
		{ SCOPE_MAIN, "", "x", NULL },
		{ SCOPE_PROVIDER, "", "cb", NULL },
		{ SCOPE_MAIN, "", "a-key-that-is-longer-than-every-key-there-is", NULL },
	};
	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct slice nearest = settings_nearest(rows[i].scope, slice_str(rows[i].prefix),
							slice_str(rows[i].key));
		if (rows[i].nearest == NULL)
			assert_null(nearest.at);
		else
			assert_slice(nearest, rows[i].nearest);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_example_loads),
		cmocka_unit_test(the_example_shows_every_setting_with_its_default),
		cmocka_unit_test(
			the_plan_of_defaults_in_the_example_is_that_of_a_tenant_without_a_plan),
		cmocka_unit_test(the_manual_has_every_setting_with_bounds_default_and_meaning),
		cmocka_unit_test(the_manual_prints_units),
		cmocka_unit_test(the_schema_is_json_and_has_exactly_the_available_settings),
		cmocka_unit_test(the_schema_bounds_what_the_reader_bounds),
		cmocka_unit_test(what_a_group_needs_is_required_in_the_group_alone),
		cmocka_unit_test(a_tenant_may_have_every_key_of_a_plan_in_the_schema),
		cmocka_unit_test(no_key_stands_twice_and_scopes_stand_together),
		cmocka_unit_test(a_mistyped_key_is_answered_with_the_nearest),
	};
	return cmocka_run_group_tests_name("settings_print", tests, NULL, NULL);
}
