#include "codec/base/must.h"
#include "codec/dialect/dialect_native.h"
#include "codec/dialect/dialect_schema.h"
#include "codec/set.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ARENA_CAP = 64 * 1024 * 1024 };

struct rig {
	struct json_work *work;
	struct arena_pool pool;
	struct arena arena;
};

static int begin(void **state)
{
	static struct rig rig;

	rig = (struct rig){ .work = json_work_new(codec_set_best()) };
	must(rig.work != NULL);
	arena_init(&rig.arena, &rig.pool, ARENA_CAP);
	*state = &rig;
	return 0;
}

static int end(void **state)
{
	struct rig *rig = *state;

	arena_give(&rig->arena);
	arena_pool_fini(&rig->pool);
	json_work_free(rig->work);
	return 0;
}

/* A text of the test's, which must be JSON, as the caller promises. */
static struct slice valid(struct rig *rig, const char *schema)
{
	struct slice text = slice_str(schema);

	if (!json_valid(text, NULL, rig->work, NULL))
		fail_msg("the test's schema is not JSON: %s", schema);
	return text;
}

static const char *text_of(struct rig *rig, struct slice s)
{
	struct slice copy = arena_copy(&rig->arena, s);

	must(!slice_absent(copy));
	return copy.at;
}

/* ---- folding ---- */

/* What sampling_read sees of a schema's root. */
static uint8_t root_of(struct rig *rig, struct slice schema)
{
	static const char body[] =
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":"
		"\"sampling/createMessage\",\"params\":{\"maxTokens\":1,"
		"\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\","
		"\"text\":\"x\"}}],\"tools\":[{\"name\":\"t\",\"inputSchema\":%.*s}]}}";
	struct arena_pool pool = { 0 };
	struct arena arena;
	struct sampling_request request;
	struct jsonrpc rpc;
	struct fault fault;
	char *text = malloc(sizeof(body) + schema.len);

	must(text != NULL);
	size_t len = (size_t)sprintf(text, body, (int)schema.len, schema.at);
	arena_init(&arena, &pool, (size_t)1024 * 1024);
	assert_int_equal(sampling_read(slice_of(text, len), REVISION_2025_11_25, NULL, rig->work,
				       &arena, &rpc, &request, &fault),
			 ERR_OK);
	uint8_t root = request.tools[0].root;
	arena_give(&arena);
	arena_pool_fini(&pool);
	free(text);
	return root;
}

static const char *fold(struct rig *rig, const char *schema, bool want_properties, bool *folded)
{
	struct slice text = valid(rig, schema);
	size_t budget = SCHEMA_FOLD_BYTES_MAX;
	struct gather g;

	gather_init(&g, &rig->arena);
	assert_int_equal(schema_put_folded(&g, text, root_of(rig, text), want_properties, rig->work,
					   &rig->arena, &budget, folded),
			 ERR_OK);
	assert_int_equal(budget, SCHEMA_FOLD_BYTES_MAX - (*folded ? strlen(schema) : 0));
	struct slice flat = gather_flat(&g, &rig->arena);
	assert_true(json_valid(flat, NULL, rig->work, NULL));
	return text_of(rig, flat);
}

static void combinators_at_the_root_are_folded(void **state)
{
	static const struct {
		const char *name, *schema, *folded;
	} rows[] = {
		{ "properties of all branches, once where they are the same",
		  "{\"type\":\"object\",\"oneOf\":[{\"properties\":{\"k\":{\"const\":1},\"a\":{}}},"
		  "{\"properties\":{\"k\":{\"const\":2},\"a\":{ }}}]}",
		  "{\"type\":\"object\",\"properties\":{\"k\":{\"anyOf\":[{\"const\":1},{\"const\":"
		  "2}]},"
		  "\"a\":{}}}" },
		{ "the root's own properties come first",
		  "{\"anyOf\":[{\"properties\":{\"b\":{}}}],\"type\":\"object\",\"properties\":{"
		  "\"a\":{}}}",
		  "{\"type\":\"object\",\"properties\":{\"a\":{},\"b\":{}}}" },
		{ "only what every branch requires, and once",
		  "{\"type\":\"object\",\"required\":[\"r\"],\"anyOf\":[{\"required\":[\"a\",\"b\","
		  "\"a\"]},"
		  "{\"required\":[\"b\",\"c\"]},{\"required\":[\"b\",\"r\"]}]}",
		  "{\"type\":\"object\",\"required\":[\"r\",\"b\"]}" },
		{ "a branch that may be anything requires nothing",
		  "{\"type\":\"object\",\"anyOf\":[{\"required\":[\"a\"]},true]}",
		  "{\"type\":\"object\"}" },
		{ "a branch that refers elsewhere as well",
		  "{\"type\":\"object\",\"anyOf\":[{\"required\":[\"a\"]},{\"$ref\":\"http://x/"
		  "y\"}]}",
		  "{\"type\":\"object\"}" },
		{ "allOf requires everything",
		  "{\"type\":\"object\",\"allOf\":[{\"required\":[\"a\"]},{\"required\":[\"b\","
		  "\"a\"]}]}",
		  "{\"type\":\"object\",\"required\":[\"a\",\"b\"]}" },
		{ "allOf keeps both definitions in force",
		  "{\"type\":\"object\",\"properties\":{\"a\":{\"minimum\":1}},\"allOf\":[{"
		  "\"properties\":"
		  "{\"a\":{\"maximum\":2}}}]}",
		  "{\"type\":\"object\",\"properties\":{\"a\":{\"allOf\":[{\"minimum\":1},{"
		  "\"maximum\":2}]}}}" },
		{ "several combinators",
		  "{\"type\":\"object\",\"anyOf\":[{\"required\":[\"a\"]}],\"allOf\":[{"
		  "\"required\":[\"b\"]}],"
		  "\"title\":\"t\"}",
		  "{\"type\":\"object\",\"title\":\"t\",\"required\":[\"a\",\"b\"]}" },
		{ "references into the root",
		  "{\"type\":\"object\",\"$defs\":{\"A\":{\"properties\":{\"a\":{}},\"required\":["
		  "\"a\",\"x\"]},"
		  "\"B\":{\"$ref\":\"#/definitions/"
		  "C\"}},\"definitions\":{\"C\":{\"properties\":{\"c\":{}},"
		  "\"required\":[\"x\"]}},\"oneOf\":[{\"$ref\":\"#/$defs/A\"},{\"$ref\":\"#/$defs/"
		  "B\"}]}",
		  "{\"type\":\"object\",\"$defs\":{\"A\":{\"properties\":{\"a\":{}},\"required\":["
		  "\"a\",\"x\"]},"
		  "\"B\":{\"$ref\":\"#/definitions/"
		  "C\"}},\"definitions\":{\"C\":{\"properties\":{\"c\":{}},"
		  "\"required\":[\"x\"]}},\"properties\":{\"a\":{},\"c\":{}},\"required\":[\"x\"]"
		  "}" },
		{ "references in a circle",
		  "{\"type\":\"object\",\"$defs\":{\"A\":{\"$ref\":\"#/$defs/"
		  "A\"}},\"oneOf\":[{\"$ref\":"
		  "\"#/$defs/A\"}]}",
		  "{\"type\":\"object\",\"$defs\":{\"A\":{\"$ref\":\"#/$defs/A\"}}}" },
		{ "keys spelled with escapes",
		  "{\"type\":\"object\",\"\\u0061nyOf\":[{\"properties\":{\"\\u0061\":{}}},{"
		  "\"properties\":"
		  "{\"a\":{}}}]}",
		  "{\"type\":\"object\",\"properties\":{\"\\u0061\":{}}}" },
		{ "branches of wrong types",
		  "{\"type\":\"object\",\"anyOf\":[1,[],{\"properties\":[],\"required\":{}},{"
		  "\"required\":[1]}]}",
		  "{\"type\":\"object\"}" },
		{ "numbers keep their text",
		  "{\"type\":\"object\",\"minProperties\":1.0,\"anyOf\":[{\"properties\":{\"a\":{"
		  "\"const\":"
		  "12345678901234567890}}}]}",
		  "{\"type\":\"object\",\"minProperties\":1.0,\"properties\":{\"a\":{\"const\":"
		  "12345678901234567890}}}" },
	};
	bool folded;

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const char *have = fold(*state, rows[i].schema, false, &folded);
		if (strcmp(have, rows[i].folded) != 0)
			fail_msg("%s:\n have %s\n want %s", rows[i].name, have, rows[i].folded);
		assert_true(folded);
	}
}

static void everything_else_stays_as_it_is(void **state)
{
	static const char *const schemas[] = {
		"{\"type\":\"object\"}",
		"{ \"type\" : \"object\" , \"properties\" : { \"anyOf\" : { \"anyOf\" : [ ] } } }",
		"{\"type\":\"object\",\"properties\":{},\"anyOf\":{}}", /* no list: not ours to judge */
		"{\"type\":\"object\",\"properties\":{},\"description\":\"\\u0022anyOf\\u0022\"}",
	};
	bool folded;

	for (size_t i = 0; i < COUNT_OF(schemas); i++) {
		assert_string_equal(fold(*state, schemas[i], false, &folded), schemas[i]);
		assert_false(folded);
	}
	for (size_t i = 1; i < COUNT_OF(schemas); i++)
		assert_string_equal(fold(*state, schemas[i], true, &folded), schemas[i]);
}

static void missing_properties_are_added_where_wanted(void **state)
{
	bool folded;

	assert_string_equal(fold(*state, "{\"type\":\"object\"}", true, &folded),
			    "{\"type\":\"object\",\"properties\":{}}");
	assert_false(folded);
	assert_string_equal(fold(*state, "{\"type\":\"object\",\"anyOf\":[{\"required\":[\"a\"]}]}",
				 true, &folded),
			    "{\"type\":\"object\",\"properties\":{},\"required\":[\"a\"]}");
	assert_string_equal(
		fold(*state, "{\"type\":\"object\",\"items\":{\"properties\":{}}}", true, &folded),
		"{\"type\":\"object\",\"items\":{\"properties\":{}},\"properties\":{}}");
}

/* Steps are not counted, but bytes taken are: they grow with the schema, not with its square. */
static size_t bytes_for_branches(struct rig *rig, int branches)
{
	char *schema = malloc((size_t)branches * 64 + 256);
	bool folded;

	must(schema != NULL);
	size_t at =
		(size_t)sprintf(schema, "{\"type\":\"object\",\"$defs\":{\"D\":{\"properties\":{"
					"\"a\":{},\"b\":{}}}},\"oneOf\":[");
	for (int i = 0; i < branches; i++)
		at += (size_t)sprintf(
			schema + at,
			"%s{\"properties\":{\"a\":{\"const\":%d}}},{\"$ref\":\"#/$defs/D\"}",
			i == 0 ? "" : ",", i);
	(void)strcpy(schema + at, "]}");
	size_t before = rig->arena.used;
	struct gather g;
	gather_init(&g, &rig->arena);
	size_t budget = SIZE_MAX;
	assert_int_equal(schema_put_folded(&g, slice_str(schema), SCHEMA_ROOT_COMBINATORS, true,
					   rig->work, &rig->arena, &budget, &folded),
			 ERR_OK);
	assert_true(folded);
	free(schema);
	return rig->arena.used - before;
}

static void work_grows_with_the_schema_and_no_faster(void **state)
{
	size_t one = bytes_for_branches(*state, 2000), two = bytes_for_branches(*state, 4000);

	assert_true(two < one * 5 / 2);
}

static void folding_has_a_budget(void **state)
{
	static const char schema[] = "{\"type\":\"object\",\"anyOf\":[]}";
	struct rig *rig = *state;
	size_t budget = 2 * strlen(schema) - 1;
	struct gather g;
	bool folded;

	gather_init(&g, &rig->arena);
	assert_int_equal(schema_put_folded(&g, slice_str(schema), SCHEMA_ROOT_COMBINATORS, false,
					   rig->work, &rig->arena, &budget, &folded),
			 ERR_OK);
	assert_int_equal(schema_put_folded(&g, slice_str(schema), SCHEMA_ROOT_COMBINATORS, false,
					   rig->work, &rig->arena, &budget, &folded),
			 ERR_TOOL);
	assert_int_equal(budget, strlen(schema) - 1);
}

/* ---- structured output ---- */

typedef bool native_fn(struct slice schema, const struct json_work *work, struct arena *into,
		       struct slice *out, bool *moved);

/* The schema to send, or NULL when it does not fit. */
static const char *native(struct rig *rig, native_fn *fn, const char *schema, bool *moved)
{
	struct slice out;

	*moved = false;
	assert_true(fn(valid(rig, schema), rig->work, &rig->arena, &out, moved));
	if (slice_absent(out))
		return NULL;
	assert_true(json_valid(out, NULL, rig->work, NULL));
	return text_of(rig, out);
}

#define OBJECT(properties) "{\"type\":\"object\",\"properties\":{" properties "}}"
#define CLOSED(properties) \
	"{\"type\":\"object\",\"properties\":{" properties "},\"additionalProperties\":false}"

static void anthropic_takes_what_it_knows_and_the_rest_as_words(void **state)
{
	static const struct {
		const char *name, *schema, *sent;
		bool moved;
	} rows[] = {
		{ "closed as it stands", CLOSED("\"a\":{\"type\":\"string\"}"),
		  CLOSED("\"a\":{\"type\":\"string\"}"), false },
		{ "inner objects are closed too",
		  OBJECT("\"a\":" OBJECT("\"b\":{\"type\":\"null\"}")),
		  CLOSED("\"a\":" CLOSED("\"b\":{\"type\":\"null\"}")), false },
		{ "bounds behind a description",
		  OBJECT("\"a\":{\"type\":\"string\",\"description\":\"D\",\"pattern\":\"^\\\"$\","
			 "\"maxLength\":3}"),
		  CLOSED("\"a\":{\"type\":\"string\",\"description\":\"D\\n\\n{pattern: "
			 "\\\"^\\\\\\\"$\\\", "
			 "maxLength: 3}\"}"),
		  true },
		{ "an empty description is none",
		  OBJECT("\"a\":{\"description\":\"\",\"type\":\"integer\",\"minimum\":0}"),
		  CLOSED("\"a\":{\"description\":\"{minimum: 0}\",\"type\":\"integer\"}"), true },
		{ "formats: known ones stay",
		  OBJECT("\"a\":{\"type\":\"string\",\"format\":\"date-time\"},\"b\":{\"type\":"
			 "\"string\","
			 "\"format\":\"regex\"}"),
		  CLOSED("\"a\":{\"type\":\"string\",\"format\":\"date-time\"},\"b\":{\"type\":"
			 "\"string\","
			 "\"description\":\"{format: \\\"regex\\\"}\"}"),
		  true },
		{ "lists: one item at least is known, more is not",
		  OBJECT("\"a\":{\"type\":\"array\",\"items\":{\"type\":\"number\"},\"minItems\":1}"
			 ","
			 "\"b\":{\"type\":\"array\",\"items\":{\"type\":\"number\"},\"minItems\":"
			 "2}"),
		  CLOSED("\"a\":{\"type\":\"array\",\"items\":{\"type\":\"number\"},\"minItems\":1}"
			 ","
			 "\"b\":{\"type\":\"array\",\"items\":{\"type\":\"number\"},"
			 "\"description\":"
			 "\"{minItems: 2}\"}"),
		  true },
		{ "oneOf becomes anyOf",
		  OBJECT("\"a\":{\"oneOf\":[{\"type\":\"string\"},{\"type\":\"null\"}]}"),
		  CLOSED("\"a\":{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"null\"}]}"), false },
		{ "values say the type",
		  OBJECT("\"a\":{\"enum\":[\"x\",\"y\"]},\"b\":{\"const\":true},\"c\":{\"enum\":[1,"
			 "2.5]}"),
		  CLOSED("\"a\":{\"enum\":[\"x\",\"y\"],\"type\":\"string\"},\"b\":{\"const\":true,"
			 "\"type\":"
			 "\"boolean\"},\"c\":{\"enum\":[1,2.5],\"type\":\"number\"}"),
		  false },
		{ "definitions, under both names",
		  "{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#/$defs/"
		  "A\",\"title\":\"t\"}},\"$defs\":{"
		  "\"A\":{\"$ref\":\"#/definitions/"
		  "B\"}},\"definitions\":{\"B\":{\"type\":\"string\"}}}",
		  "{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#/$defs/A\"}},\"$defs\":{"
		  "\"A\":{\"$ref\":\"#/definitions/"
		  "B\"}},\"definitions\":{\"B\":{\"type\":\"string\"}},"
		  "\"additionalProperties\":false}",
		  false },
		{ "annotations that say nothing are dropped",
		  "{\"$schema\":\"x\",\"$id\":\"y\",\"$comment\":\"z\",\"type\":\"object\","
		  "\"properties\":{"
		  "\"a\":{\"type\":\"string\"}}}",
		  CLOSED("\"a\":{\"type\":\"string\"}"), false },
		{ "a property named like a keyword",
		  OBJECT("\"$ref\":{\"type\":\"string\"},\"oneOf\":{\"type\":\"null\"}"),
		  CLOSED("\"$ref\":{\"type\":\"string\"},\"oneOf\":{\"type\":\"null\"}"), false },
		{ "a closed object without properties",
		  OBJECT("\"a\":{\"type\":\"object\",\"additionalProperties\":false}"),
		  CLOSED("\"a\":{\"type\":\"object\",\"additionalProperties\":false}"), false },
		{ "type lists of scalars", OBJECT("\"a\":{\"type\":[\"string\",\"null\"]}"),
		  CLOSED("\"a\":{\"type\":[\"string\",\"null\"]}"), false },
	};
	bool moved;

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const char *have = native(*state, native_anthropic, rows[i].schema, &moved);
		if (have == NULL || strcmp(have, rows[i].sent) != 0)
			fail_msg("%s:\n have %s\n want %s", rows[i].name, have, rows[i].sent);
		assert_int_equal(moved, rows[i].moved);
	}
}

static void schemas_that_anthropic_cannot_guarantee_do_not_fit(void **state)
{
	static const struct {
		const char *name, *schema;
	} rows[] = {
		{ "an open object",
		  OBJECT("\"a\":{\"type\":\"object\",\"properties\":{\"b\":{\"type\":\"null\"}},"
			 "\"additionalProperties\":true}") },
		{ "a map", OBJECT("\"a\":{\"type\":\"object\",\"additionalProperties\":{\"type\":"
				  "\"null\"}}") },
		{ "an object of anything", OBJECT("\"a\":{\"type\":\"object\"}") },
		{ "a root of anything", "{\"type\":\"object\"}" },
		{ "pattern properties",
		  OBJECT("\"a\":{\"type\":\"object\",\"properties\":{\"b\":{\"type\":\"null\"}},"
			 "\"patternProperties\":{\"^x\":{}}}") },
		{ "anything", OBJECT("\"a\":{}") },
		{ "true", OBJECT("\"a\":true") },
		{ "a list of anything", OBJECT("\"a\":{\"type\":\"array\"}") },
		{ "a tuple", OBJECT("\"a\":{\"type\":\"array\",\"items\":[{\"type\":\"null\"}]}") },
		{ "a tuple, newer",
		  OBJECT("\"a\":{\"type\":\"array\",\"prefixItems\":[{\"type\":\"null\"}],"
			 "\"items\":{\"type\":\"null\"}}") },
		{ "recursion by the root", OBJECT("\"a\":{\"$ref\":\"#\"}") },
		{ "recursion by definitions",
		  "{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#/$defs/"
		  "A\"}},\"$defs\":{\"A\":"
		  "{\"anyOf\":[{\"type\":\"null\"},{\"$ref\":\"#/$defs/B\"}]},\"B\":" OBJECT(
			  "\"a\":{\"$ref\":\"#/$defs/A\"}") "}}" },
		{ "a definition that is not there", OBJECT("\"a\":{\"$ref\":\"#/$defs/A\"}") },
		{ "a reference elsewhere", OBJECT("\"a\":{\"$ref\":\"http://x/y\"}") },
		{ "a reference of a wrong type", OBJECT("\"a\":{\"$ref\":1}") },
		{ "allOf", OBJECT("\"a\":{\"allOf\":[" OBJECT("\"b\":{\"type\":\"null\"}") "]}") },
		{ "anyOf beside properties",
		  OBJECT("\"a\":{\"anyOf\":[{\"type\":\"null\"}],\"properties\":{}}") },
		{ "anyOf at the root", "{\"type\":\"object\",\"anyOf\":[{\"type\":\"object\"}]}" },
		{ "anyOf of nothing", OBJECT("\"a\":{\"anyOf\":[]}") },
		{ "values with shapes", OBJECT("\"a\":{\"enum\":[{}]}") },
		{ "values of several types, no type", OBJECT("\"a\":{\"enum\":[1,\"x\"]}") },
		{ "a type list with shapes", OBJECT("\"a\":{\"type\":[\"object\",\"null\"]}") },
		{ "a description of a wrong type",
		  OBJECT("\"a\":{\"type\":\"null\",\"description\":1}") },
		{ "properties of a wrong type", "{\"type\":\"object\",\"properties\":[]}" },
		{ "required of a wrong type", "{\"type\":\"object\",\"properties\":{\"a\":{"
					      "\"type\":\"null\"}},\"required\":1}" },
		{ "a root that is a list", "{\"type\":\"array\",\"items\":{\"type\":\"null\"}}" },
	};
	bool moved;

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const char *have = native(*state, native_anthropic, rows[i].schema, &moved);
		if (have != NULL)
			fail_msg("%s: fits as %s", rows[i].name, have);
	}
}

static void openai_takes_only_what_is_strict_already(void **state)
{
#define STRICT(properties, required)                                                   \
	"{\"type\":\"object\",\"properties\":{" properties "},\"required\":[" required \
	"],\"additionalProperties\":false}"
#define REFERS(to, more)                                                                 \
	"{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"" to "\"" more           \
	"}},\"required\":[\"a\"],\"additionalProperties\":false,"                        \
	"\"$defs\":{\"A\":{\"type\":\"string\"},\"b/c\":{\"type\":\"null\"},\"d%20e\":{" \
	"\"type\":\"null\"}},\"definitions\":{\"B\":{\"type\":\"null\"}}}"
	static const struct {
		const char *name, *schema;
		bool fits;
	} rows[] = {
		{ "strict", STRICT("\"a\":{\"type\":\"string\"}", "\"a\""), true },
		{ "any order, any spelling",
		  STRICT("\"a\":{\"type\":\"string\"},\"b\":{\"type\":[\"null\",\"string\"]}",
			 "\"b\",\"\\u0061\""),
		  true },
		{ "recursion",
		  STRICT("\"a\":{\"anyOf\":[{\"type\":\"null\"},{\"$ref\":\"#\"}]}", "\"a\""),
		  true },
		{ "bounds and formats",
		  STRICT("\"a\":{\"type\":\"number\",\"minimum\":1,\"multipleOf\":2},\"b\":{"
			 "\"type\":\"string\","
			 "\"format\":\"uuid\",\"pattern\":\"x\"}",
			 "\"a\",\"b\""),
		  true },
		{ "an optional property",
		  STRICT("\"a\":{\"type\":\"string\"},\"b\":{\"type\":\"null\"}", "\"a\""), false },
		{ "required twice",
		  STRICT("\"a\":{\"type\":\"null\"},\"b\":{\"type\":\"null\"}", "\"a\",\"a\""),
		  false },
		{ "something else required", STRICT("\"a\":{\"type\":\"null\"}", "\"x\""), false },
		{ "an open object", OBJECT("\"a\":{\"type\":\"string\"}"), false },
		{ "an open object inside", STRICT("\"a\":" OBJECT(""), "\"a\""), false },
		{ "a length", STRICT("\"a\":{\"type\":\"string\",\"maxLength\":1}", "\"a\""),
		  false },
		{ "oneOf", STRICT("\"a\":{\"oneOf\":[{\"type\":\"null\"}]}", "\"a\""), false },
		{ "a default", STRICT("\"a\":{\"type\":\"null\",\"default\":null}", "\"a\""),
		  false },
		{ "anything", STRICT("\"a\":{}", "\"a\""), false },
		{ "false", STRICT("\"a\":false", "\"a\""), false },
		{ "a list of anything", STRICT("\"a\":{\"type\":\"array\"}", "\"a\""), false },
		{ "an unknown format",
		  STRICT("\"a\":{\"type\":\"string\",\"format\":\"regex\"}", "\"a\""), false },
		{ "a definition", REFERS("#/$defs/A", ""), true },
		{ "a definition under the older name", REFERS("#/definitions/B", ""), true },
		{ "a definition, in another spelling", REFERS("#\\/$defs\\/\\u0041", ""), true },
		{ "a definition under the other name", REFERS("#/definitions/A", ""), false },
		{ "a definition that is not there", REFERS("#/$defs/Nope", ""), false },
		{ "no definitions at all", STRICT("\"a\":{\"$ref\":\"#/$defs/A\"}", "\"a\""),
		  false },
		{ "words beside a reference", REFERS("#/$defs/A", ",\"description\":\"d\""),
		  false },
		{ "a keyword of nobody's beside a reference", REFERS("#/$defs/A", ",\"x\":1"),
		  false },
		{ "a reference elsewhere", REFERS("http://x/y", ""), false },
		{ "a reference to a property", REFERS("#/properties/a", ""), false },
		{ "a reference into a definition", REFERS("#/$defs/A/type", ""), false },
		{ "a reference to all definitions", REFERS("#/$defs", ""), false },
		{ "a name with a pointer's escape", REFERS("#/$defs/b~1c", ""), false },
		{ "a name with a slash", REFERS("#/$defs/b/c", ""), false },
		{ "a name with a URL's escape", REFERS("#/$defs/d%20e", ""), false },
		{ "a reference of a wrong type", STRICT("\"a\":{\"$ref\":1}", "\"a\""), false },
		{ "anyOf of nothing", STRICT("\"a\":{\"anyOf\":[ ]}", "\"a\""), false },
		{ "anyOf at the root",
		  "{\"type\":\"object\",\"properties\":{},\"required\":[],\"additionalProperties\":"
		  "false,"
		  "\"anyOf\":[]}",
		  false },
	};
	bool moved;

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const char *have = native(*state, native_openai, rows[i].schema, &moved);
		if ((have != NULL) != rows[i].fits)
			fail_msg("%s: %s", rows[i].name, have == NULL ? "does not fit" : "fits");
		if (have != NULL)
			assert_string_equal(have, rows[i].schema); /* never rewritten */
	}
}

/* `levels` lists in each other. */
static const char *nested(struct rig *rig, int levels)
{
	char *schema = arena_take(&rig->arena, (size_t)levels * 40 + 300);

	must(schema != NULL);
	size_t at =
		(size_t)sprintf(schema, "{\"type\":\"object\",\"required\":[\"a\"],"
					"\"additionalProperties\":false,\"properties\":{\"a\":");
	for (int i = 0; i < levels; i++)
		at += (size_t)sprintf(schema + at, "{\"type\":\"array\",\"items\":");
	at += (size_t)sprintf(schema + at, "{\"type\":\"null\"}");
	memset(schema + at, '}', (size_t)levels + 2);
	schema[at + (size_t)levels + 2] = '\0';
	return schema;
}

/* `count` optional properties. */
static const char *wide(struct rig *rig, int count)
{
	char *schema = arena_take(&rig->arena, (size_t)count * 40 + 300);

	must(schema != NULL);
	size_t at = (size_t)sprintf(schema, "{\"type\":\"object\",\"properties\":{");
	for (int i = 0; i < count; i++)
		at += (size_t)sprintf(schema + at, "%s\"p%d\":{\"type\":\"null\"}",
				      i == 0 ? "" : ",", i);
	(void)strcpy(schema + at, "}}");
	return schema;
}

/* `count` properties, each a reference to a definition of its own. */
static const char *referring(struct rig *rig, int count)
{
	char *schema = arena_take(&rig->arena, (size_t)count * 80 + 300);

	must(schema != NULL);
	size_t at = (size_t)sprintf(
		schema, "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{");
	for (int i = 0; i < count; i++)
		at += (size_t)sprintf(schema + at, "%s\"%d\":{\"$ref\":\"#/$defs/%d\"}",
				      i == 0 ? "" : ",", i, i);
	at += (size_t)sprintf(schema + at, "},\"required\":[");
	for (int i = 0; i < count; i++)
		at += (size_t)sprintf(schema + at, "%s\"%d\"", i == 0 ? "" : ",", i);
	at += (size_t)sprintf(schema + at, "],\"$defs\":{");
	for (int i = 0; i < count; i++)
		at += (size_t)sprintf(schema + at, "%s\"%d\":{\"type\":\"null\"}",
				      i == 0 ? "" : ",", i);
	(void)strcpy(schema + at, "}}");
	return schema;
}

static void what_is_too_much_does_not_fit(void **state)
{
	struct rig *rig = *state;
	bool moved;

	assert_non_null(native(rig, native_anthropic, nested(rig, 15), &moved));
	assert_null(native(rig, native_anthropic, nested(rig, 16), &moved));
	assert_non_null(native(rig, native_openai, nested(rig, 9), &moved));
	assert_null(native(rig, native_openai, nested(rig, 10), &moved));
	assert_non_null(native(rig, native_openai, referring(rig, 800), &moved));
	assert_non_null(native(rig, native_anthropic, wide(rig, 24), &moved));
	assert_null(native(rig, native_anthropic, wide(rig, 25), &moved));
	assert_null(native(rig, native_anthropic, wide(rig, 4000), &moved)); /* over 64 KiB */
}

static void refused_memory_is_told_and_nothing_else_happens(void **state)
{
	static const char schema[] = "{\"type\":\"object\",\"$defs\":{\"\\u0041\":{\"type\":"
				     "\"string\",\"maxLength\":1}},"
				     "\"properties\":{\"a\":{\"$ref\":\"#/$defs/"
				     "A\"},\"b\":{\"anyOf\":[{\"type\":\"null\"}]}},"
				     "\"anyOf\":[{\"properties\":{\"c\":{}},\"required\":[\"a\"]},{"
				     "\"$ref\":\"#/$defs/A\"}]}";
	struct rig *rig = *state;
	const char *three = referring(rig, 3);
	struct slice text = valid(rig, schema), out;
	size_t failures = 0, budget = SIZE_MAX;
	struct gather g;
	bool flag, done = false;

	for (size_t room = 0; !done; room += 8) {
		rig->arena.cap = rig->arena.used + room;
		gather_init(&g, &rig->arena);
		done = schema_put_folded(&g, text, root_of(rig, text), true, rig->work, &rig->arena,
					 &budget, &flag) == ERR_OK &&
		       gather_done(&g) == ERR_OK;
		failures += !done;
	}
	assert_true(failures > 20);
	text = valid(rig,
		     "{\"type\":\"object\",\"$defs\":{\"\\u0041\":{\"type\":\"string\","
		     "\"maxLength\":1}},"
		     "\"properties\":{\"a\":{\"$ref\":\"#/$defs/A\"}},\"required\":[\"\\u0061\"]}");
	done = false;
	for (size_t room = 0; !done; room += 8) {
		rig->arena.cap = rig->arena.used + room;
		done = native_openai(valid(rig, three), rig->work, &rig->arena, &out, &flag);
		assert_true(done || slice_absent(out));
	}
	assert_false(slice_absent(out));
	done = false;
	for (size_t room = 0; !done; room += 8) {
		rig->arena.cap = rig->arena.used + room;
		done = native_anthropic(text, rig->work, &rig->arena, &out, &flag);
		assert_true(done || slice_absent(out));
	}
	assert_false(slice_absent(out));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(combinators_at_the_root_are_folded),
		TEST(everything_else_stays_as_it_is),
		TEST(missing_properties_are_added_where_wanted),
		TEST(work_grows_with_the_schema_and_no_faster),
		TEST(folding_has_a_budget),
		TEST(anthropic_takes_what_it_knows_and_the_rest_as_words),
		TEST(schemas_that_anthropic_cannot_guarantee_do_not_fit),
		TEST(openai_takes_only_what_is_strict_already),
		TEST(what_is_too_much_does_not_fit),
		TEST(refused_memory_is_told_and_nothing_else_happens),
	};
	return cmocka_run_group_tests_name("dialect_schema", tests, NULL, NULL);
}
