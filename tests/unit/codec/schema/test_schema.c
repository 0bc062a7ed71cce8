/* test_schema.c - what a schema says of a value, and where it says so. */
#include "tests/unit/codec/schema/schema_rig.h"

/* ---- every keyword --------------------------------------------------------------------------- */

static const struct {
	const char *name, *schema, *value;
	enum schema_verdict verdict;
} rows[] = {
	{ "no keyword", "{}", "[1,{\"a\":null}]", YES },
	{ "annotations say nothing", "{\"title\":1,\"description\":[],\"default\":3,\"x-y\":{}}",
	  "\"a\"", YES },

	{ "type object", "{\"type\":\"object\"}", "{}", YES },
	{ "type object of an array", "{\"type\":\"object\"}", "[]", NO },
	{ "type array", "{\"type\":\"array\"}", "[]", YES },
	{ "type string", "{\"type\":\"string\"}", "\"\"", YES },
	{ "type string of a number", "{\"type\":\"string\"}", "1", NO },
	{ "type boolean: true", "{\"type\":\"boolean\"}", "true", YES },
	{ "type boolean: false", "{\"type\":\"boolean\"}", "false", YES },
	{ "type boolean of null", "{\"type\":\"boolean\"}", "null", NO },
	{ "type null", "{\"type\":\"null\"}", "null", YES },
	{ "type null of false", "{\"type\":\"null\"}", "false", NO },
	{ "type number", "{\"type\":\"number\"}", "1.5", YES },
	{ "type integer", "{\"type\":\"integer\"}", "-7", YES },
	{ "type integer: no fraction", "{\"type\":\"integer\"}", "1.0", YES },
	{ "type integer: an exponent", "{\"type\":\"integer\"}", "1.5e1", YES },
	{ "type integer: zero", "{\"type\":\"integer\"}", "-0.0", YES },
	{ "type integer: large", "{\"type\":\"integer\"}", "123456789012345678901234567890", YES },
	{ "type integer: a fraction", "{\"type\":\"integer\"}", "1.5", NO },
	{ "type integer: a fraction far behind", "{\"type\":\"integer\"}",
	  "100000000000000000000.1", NO },
	{ "type integer: a negative exponent", "{\"type\":\"integer\"}", "1e-1", NO },
	{ "type integer of a string", "{\"type\":\"integer\"}", "\"1\"", NO },
	{ "type is one of several", "{\"type\":[\"string\",\"null\"]}", "null", YES },
	{ "type is none of several", "{\"type\":[\"string\",\"null\"]}", "0", NO },
	{ "a type that nobody knows", "{\"type\":\"date\"}", "0", PART },
	{ "a type that nobody knows, and one that is it", "{\"type\":[\"date\",\"number\"]}", "0",
	  YES },
	{ "escaped keywords and names", "{\"t\\u0079pe\":\"str\\u0069ng\"}", "1", NO },
	{ "a key with a backslash is no keyword", "{\"\\\\u0074ype\":\"string\"}", "1", YES },

	{ "enum has it", "{\"enum\":[1,\"a\",null]}", "\"a\"", YES },
	{ "enum has it not", "{\"enum\":[1,\"a\",null]}", "\"b\"", NO },
	{ "an empty enum", "{\"enum\":[]}", "1", NO },
	{ "enum is no list", "{\"enum\":1}", "1", PART },
	{ "1 is 1.0", "{\"enum\":[1]}", "1.0", YES },
	{ "1 is 10e-1", "{\"const\":1}", "10e-1", YES },
	{ "0 is -0.0", "{\"const\":0}", "-0.0", YES },
	{ "1 is not true", "{\"const\":1}", "true", NO },
	{ "1 is not \"1\"", "{\"const\":1}", "\"1\"", NO },
	{ "false is not null", "{\"const\":false}", "null", NO },
	{ "large integers are told apart", "{\"const\":9007199254740993}", "9007199254740992", NO },
	{ "larger ones, too", "{\"const\":123456789012345678901234567890}",
	  "123456789012345678901234567891", NO },
	{ "strings by their meaning", "{\"const\":\"\\u00e9\\n\"}", "\"\xc3\xa9\\u000a\"", YES },
	{ "pairs of surrogates", "{\"const\":\"\\ud83d\\ude00\"}", "\"\xf0\x9f\x98\x80\"", YES },
	{ "objects in any order", "{\"const\":{\"a\":[1,{}],\"b\":\"x\"}}",
	  "{\"b\":\"x\",\"a\":[1.0,{}]}", YES },
	{ "objects with a member more", "{\"const\":{\"a\":1}}", "{\"a\":1,\"b\":2}", NO },
	{ "objects with another key", "{\"const\":{\"a\":1}}", "{\"b\":1}", NO },
	{ "arrays in order", "{\"const\":[1,2]}", "[2,1]", NO },
	{ "an array is no object", "{\"const\":[]}", "{}", NO },

	{ "properties hold", "{\"properties\":{\"a\":{\"type\":\"string\"}}}", "{\"a\":\"x\"}",
	  YES },
	{ "a property does not", "{\"properties\":{\"a\":{\"type\":\"string\"}}}", "{\"a\":1}",
	  NO },
	{ "a property need not be there", "{\"properties\":{\"a\":false}}", "{\"b\":1}", YES },
	{ "a property that may not be there", "{\"properties\":{\"a\":false}}", "{\"a\":1}", NO },
	{ "properties in another order",
	  "{\"properties\":{\"a\":{\"const\":1},\"b\":{\"const\":2},\"c\":{\"const\":3}}}",
	  "{\"c\":3,\"a\":1,\"b\":2}", YES },
	{ "properties by the meaning of their names",
	  "{\"properties\":{\"\\u0061\":{\"const\":1}}}", "{\"a\":2}", NO },
	{ "properties of what is no object", "{\"properties\":{\"a\":false}}", "[1]", YES },
	{ "properties that are no object", "{\"properties\":[]}", "{\"a\":1}", PART },
	{ "required is there", "{\"required\":[\"a\"]}", "{\"a\":null}", YES },
	{ "required is not there", "{\"required\":[\"a\",\"b\"]}", "{\"a\":null}", NO },
	{ "required by its meaning", "{\"required\":[\"\\u0061\"]}", "{\"a\":null}", YES },
	{ "required of an array", "{\"required\":[\"a\"]}", "[]", YES },
	{ "required as in draft 3", "{\"required\":true}", "{}", PART },
	{ "additional ones are forbidden",
	  "{\"properties\":{\"a\":{}},\"additionalProperties\":false}", "{\"a\":1,\"b\":1}", NO },
	{ "no additional ones", "{\"properties\":{\"a\":{}},\"additionalProperties\":false}",
	  "{\"a\":1}", YES },
	{ "additional ones by a schema",
	  "{\"properties\":{\"a\":{}},\"additionalProperties\":{\"type\":\"integer\"}}",
	  "{\"a\":\"x\",\"b\":1,\"c\":2}", YES },
	{ "an additional one is wrong",
	  "{\"additionalProperties\":{\"type\":\"integer\"},\"properties\":{\"a\":{}}}",
	  "{\"a\":\"x\",\"b\":1,\"c\":\"y\"}", NO },
	{ "no properties at all", "{\"additionalProperties\":false}", "{\"a\":1}", NO },
	{ "additional ones are allowed", "{\"additionalProperties\":true}", "{\"a\":1}", YES },
	{ "which of them patterns are for is not known",
	  "{\"patternProperties\":{\"^x\":{}},\"additionalProperties\":false}", "{\"x\":1}", PART },
	{ "too few members", "{\"minProperties\":2}", "{\"a\":1}", NO },
	{ "enough members", "{\"minProperties\":1}", "{\"a\":1}", YES },
	{ "too many members", "{\"maxProperties\":0}", "{\"a\":1}", NO },

	{ "items hold", "{\"items\":{\"type\":\"integer\"}}", "[1,2,3]", YES },
	{ "an item does not", "{\"items\":{\"type\":\"integer\"}}", "[1,2,\"3\"]", NO },
	{ "items of nothing", "{\"items\":false}", "[]", YES },
	{ "no items", "{\"items\":false}", "[1]", NO },
	{ "items of an object", "{\"items\":false}", "{\"a\":1}", YES },
	{ "the first items by their own",
	  "{\"prefixItems\":[{\"const\":1},{\"const\":2}],\"items\":{\"const\":3}}", "[1,2,3,3]",
	  YES },
	{ "one of the first is wrong", "{\"prefixItems\":[{\"const\":1},{\"const\":2}]}", "[1,1]",
	  NO },
	{ "one behind them is wrong", "{\"items\":{\"const\":3},\"prefixItems\":[{\"const\":1}]}",
	  "[1,3,4]", NO },
	{ "fewer than the first", "{\"prefixItems\":[{\"const\":1},{\"const\":2}],\"items\":false}",
	  "[1]", YES },
	{ "none behind the first", "{\"prefixItems\":[{}],\"items\":false}", "[1,2]", NO },
	{ "a list as in draft 7", "{\"items\":[{\"const\":1}],\"additionalItems\":{\"const\":2}}",
	  "[1,2,2]", YES },
	{ "a list as in draft 7, wrong", "{\"items\":[{\"const\":1}]}", "[2]", NO },
	{ "behind a list as in draft 7", "{\"items\":[{\"const\":1}],\"additionalItems\":false}",
	  "[1,2]", NO },
	{ "additionalItems without a list", "{\"items\":{},\"additionalItems\":false}", "[1]",
	  YES },
	{ "enough items", "{\"minItems\":2,\"maxItems\":2}", "[1,1]", YES },
	{ "too few items", "{\"minItems\":2}", "[1]", NO },
	{ "too many items", "{\"maxItems\":2.0}", "[1,1,1]", NO },
	{ "unique items", "{\"uniqueItems\":true}", "[1,\"1\",[1],{\"a\":1},true,null]", YES },
	{ "items that are the same", "{\"uniqueItems\":true}", "[1,2,1.0]", NO },
	{ "objects that are the same", "{\"uniqueItems\":true}",
	  "[{\"a\":1,\"b\":2},{\"b\":2,\"a\":1}]", NO },
	{ "items that may be the same", "{\"uniqueItems\":false}", "[1,1]", YES },
	{ "uniqueItems is no boolean", "{\"uniqueItems\":1}", "[1,1]", PART },

	{ "at the minimum", "{\"minimum\":1}", "1.0", YES },
	{ "below the minimum", "{\"minimum\":1}", "0.9999999999999999999999", NO },
	{ "below a negative minimum", "{\"minimum\":-1.5}", "-1.50000000000000000001", NO },
	{ "above a negative minimum", "{\"minimum\":-1.5}", "-1.4", YES },
	{ "at the maximum", "{\"maximum\":1e2}", "100", YES },
	{ "above the maximum", "{\"maximum\":100}", "1.00000000000000000000001e2", NO },
	{ "a large integer above", "{\"maximum\":9007199254740992}", "9007199254740993", NO },
	{ "beyond any double", "{\"maximum\":1e400}", "1e399", YES },
	{ "beyond any double, above", "{\"maximum\":1e400}", "1e401", NO },
	{ "smaller than any double", "{\"exclusiveMinimum\":0}", "1e-400", YES },
	{ "at the exclusive minimum", "{\"exclusiveMinimum\":0}", "-0.0", NO },
	{ "at the exclusive maximum", "{\"exclusiveMaximum\":2}", "2.0", NO },
	{ "below the exclusive maximum", "{\"exclusiveMaximum\":2}", "1.9", YES },
	{ "exclusive as in draft 4", "{\"minimum\":1,\"exclusiveMinimum\":true}", "1", PART },
	{ "bounds of a string", "{\"minimum\":1}", "\"0\"", YES },
	{ "a multiple", "{\"multipleOf\":3}", "9", YES },
	{ "no multiple", "{\"multipleOf\":3}", "10", NO },
	{ "a multiple of a fraction", "{\"multipleOf\":0.1}", "0.3", YES },
	{ "a multiple of 0.01", "{\"multipleOf\":0.01}", "19.99", YES },
	{ "no multiple of 0.01", "{\"multipleOf\":0.01}", "19.995", NO },
	{ "a large multiple", "{\"multipleOf\":7}", "700000000000000000000000000000000000007",
	  YES },
	{ "a multiple with a large exponent", "{\"multipleOf\":7}", "14e300", YES },
	{ "no multiple with a large exponent", "{\"multipleOf\":7}", "1e300", NO },
	{ "zero is a multiple", "{\"multipleOf\":7}", "0", YES },
	{ "a negative multiple", "{\"multipleOf\":7}", "-14", YES },
	{ "a multiple of 1e-8", "{\"multipleOf\":1e-8}", "12391239123", YES },
	{ "a multiple of nothing", "{\"multipleOf\":0}", "1", PART },
	{ "a multiple of too many digits", "{\"multipleOf\":1.234567890123456789}", "1", PART },

	{ "long enough", "{\"minLength\":2,\"maxLength\":2}", "\"ab\"", YES },
	{ "too short", "{\"minLength\":3}", "\"ab\"", NO },
	{ "too long", "{\"maxLength\":1}", "\"ab\"", NO },
	{ "length counts code points", "{\"minLength\":2,\"maxLength\":2}",
	  "\"\xf0\x9f\x98\x80\\ud83d\\ude00\"", YES },
	{ "length counts an escape once", "{\"maxLength\":1}", "\"\\n\"", YES },
	{ "length is a fraction", "{\"minLength\":1.5}", "\"a\"", NO },
	{ "length is far away", "{\"maxLength\":1e99}", "\"a\"", YES },
	{ "pattern", "{\"pattern\":\"^a\"}", "\"b\"", PART },
	{ "pattern of a number", "{\"pattern\":\"^a\"}", "1", YES },
	{ "format", "{\"format\":\"date\"}", "\"b\"", PART },
	{ "what is wrong is wrong beside a pattern", "{\"pattern\":\"^a\",\"minLength\":2}",
	  "\"b\"", NO },

	{ "all hold", "{\"allOf\":[{\"minimum\":1},{\"maximum\":3}]}", "2", YES },
	{ "not all hold", "{\"allOf\":[{\"minimum\":1},{\"maximum\":3}]}", "4", NO },
	{ "any holds", "{\"anyOf\":[{\"type\":\"string\"},{\"minimum\":3}]}", "4", YES },
	{ "none holds", "{\"anyOf\":[{\"type\":\"string\"},{\"minimum\":3}]}", "2", NO },
	{ "any of none", "{\"anyOf\":[]}", "2", PART },
	{ "one holds", "{\"oneOf\":[{\"minimum\":3},{\"maximum\":1}]}", "4", YES },
	{ "two hold", "{\"oneOf\":[{\"minimum\":3},{\"maximum\":5}]}", "4", NO },
	{ "not one holds", "{\"oneOf\":[{\"minimum\":5},{\"maximum\":3}]}", "4", NO },
	{ "not", "{\"not\":{\"type\":\"string\"}}", "4", YES },
	{ "not, but is", "{\"not\":{\"type\":\"string\"}}", "\"\"", NO },
	{ "not not", "{\"not\":{\"not\":{\"type\":\"string\"}}}", "1", NO },
	{ "not anything", "{\"not\":true}", "1", NO },
	{ "not nothing", "{\"not\":false}", "1", YES },
	{ "a branch that is sure, beside a pattern",
	  "{\"anyOf\":[{\"pattern\":\"a\"},{\"type\":\"string\"}]}", "\"x\"", YES },
	{ "no branch that is sure", "{\"anyOf\":[{\"pattern\":\"a\"},{\"type\":\"null\"}]}",
	  "\"x\"", PART },
	{ "one, and perhaps another", "{\"oneOf\":[{\"pattern\":\"a\"},{\"type\":\"string\"}]}",
	  "\"x\"", PART },
	{ "two, and perhaps a third",
	  "{\"oneOf\":[{\"pattern\":\"a\"},{\"type\":\"string\"},{\"minLength\":1}]}", "\"x\"",
	  NO },
	{ "not what cannot be checked", "{\"not\":{\"pattern\":\"a\"}}", "\"x\"", PART },
	{ "a pattern deep inside", "{\"properties\":{\"a\":{\"items\":{\"format\":\"uri\"}}}}",
	  "{\"a\":[\"x\"]}", PART },
	{ "a pattern that nothing is there for",
	  "{\"properties\":{\"a\":{\"items\":{\"format\":\"uri\"}}}}", "{\"a\":[]}", YES },
	{ "if", "{\"if\":{},\"then\":false}", "1", PART },
	{ "contains", "{\"contains\":{\"const\":1}}", "[2]", PART },
	{ "propertyNames", "{\"propertyNames\":{\"maxLength\":1}}", "{\"ab\":1}", PART },
	{ "dependentRequired", "{\"dependentRequired\":{\"a\":[\"b\"]}}", "{\"a\":1}", PART },
	{ "unevaluatedProperties", "{\"unevaluatedProperties\":false}", "{\"a\":1}", PART },
	{ "a schema that is none", "{\"properties\":{\"a\":7}}", "{\"a\":1}", PART },

	{ "a definition", "{\"$defs\":{\"n\":{\"type\":\"null\"}},\"$ref\":\"#/$defs/n\"}", "1",
	  NO },
	{ "a definition, held", "{\"$defs\":{\"n\":{\"type\":\"null\"}},\"$ref\":\"#/$defs/n\"}",
	  "null", YES },
	{ "what stands beside a reference counts",
	  "{\"$defs\":{\"n\":{}},\"$ref\":\"#/$defs/n\",\"type\":\"null\"}", "1", NO },
	{ "any pointer",
	  "{\"properties\":{\"a\":{\"items\":[{\"type\":\"null\"}]},\"b\":{\"$ref\":"
	  "\"#/properties/a/items/0\"}}}",
	  "{\"b\":1}", NO },
	{ "an escaped pointer",
	  "{\"$defs\":{\"a/b~c d\":{\"type\":\"null\"}},\"$ref\":\"#/$defs/a~1b~0c%20d\"}", "1",
	  NO },
	{ "the whole schema",
	  "{\"type\":\"object\",\"properties\":{\"next\":{\"$ref\":\"#\"}},"
	  "\"additionalProperties\":false}",
	  "{\"next\":{\"next\":{\"next\":{\"last\":1}}}}", NO },
	{ "a tree",
	  "{\"$defs\":{\"node\":{\"type\":\"object\",\"required\":[\"v\"],\"properties\":{\"v\":{"
	  "\"type\":\"integer\"},\"in\":{\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/"
	  "node\"}}}}},\"$ref\":\"#/$defs/node\"}",
	  "{\"v\":1,\"in\":[{\"v\":2},{\"v\":3,\"in\":[{\"v\":4}]}]}", YES },
	{ "a reference that leads nowhere", "{\"$ref\":\"#/$defs/n\"}", "1", PART },
	{ "a reference to another text", "{\"$ref\":\"https://example.com/s.json\"}", "1", PART },
	{ "a reference to a name", "{\"$defs\":{\"n\":{\"$anchor\":\"n\"}},\"$ref\":\"#n\"}", "1",
	  PART },
	{ "a reference that is written wrong", "{\"$ref\":\"#/%zz\"}", "1", PART },
	{ "a reference that is no string", "{\"$ref\":1}", "1", PART },

	{ "round and round", "{\"$ref\":\"#\"}", "1", MUCH },
	{ "round and round by branches", "{\"anyOf\":[{\"$ref\":\"#\"},{\"$ref\":\"#\"}]}", "1",
	  MUCH },
	{ "each the other",
	  "{\"$defs\":{\"a\":{\"$ref\":\"#/$defs/b\"},\"b\":{\"$ref\":\"#/$defs/a\"}},\"$ref\":"
	  "\"#/$defs/a\"}",
	  "1", MUCH },
	{ "16 levels of the value", "{\"items\":{\"$ref\":\"#\"}}",
	  "[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]", YES },
	{ "17 levels of the value", "{\"items\":{\"$ref\":\"#\"}}",
	  "[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]", MUCH },
	{ "levels that the schema does not look at", "{\"type\":\"array\"}",
	  "[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]", YES },
};

static void each_keyword_says_what_the_specification_says(void **state)
{
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const struct schema_finding found = check(*state, rows[i].schema, rows[i].value);
		if (found.verdict != rows[i].verdict)
			fail_msg("%s: %s, not %s", rows[i].name, name_of(found.verdict),
				 name_of(rows[i].verdict));
		assert_int_equal(found.keyword != NULL, rows[i].verdict == NO);
	}
}

/* ---- what is said of it ---------------------------------------------------------------------- */

static const struct {
	const char *name, *schema, *value;
	const char *keyword, *path, *schema_path, *wanted, *member;
} places[] = {
	{ "the root", "{\"type\":\"object\"}", "1", "type", "$", "#/type", "object", NULL },
	{ "a property", "{\"properties\":{\"age\":{\"minimum\":0}}}", "{\"age\":-1}", "minimum",
	  "$.age", "#/properties/age/minimum", "0", NULL },
	{ "an element's property",
	  "{\"properties\":{\"lines\":{\"items\":{\"properties\":{\"price\":{\"type\":\"number\"}}}"
	  "}}"
	  "}",
	  "{\"lines\":[{\"price\":1},{\"price\":\"x\"}]}", "type", "$.lines[1].price",
	  "#/properties/lines/items/properties/price/type", "number", NULL },
	{ "a name with spaces", "{\"properties\":{\"a b\":{\"properties\":{\"c/d~\":false}}}}",
	  "{\"a b\":{\"c/d~\":1}}", "properties", "$[\"a b\"]", "#/properties/a b/properties",
	  "{\"c/d~\":false}", NULL },
	{ "a pointer's escapes", "{\"properties\":{\"c/d~\":{\"type\":\"null\"}}}", "{\"c/d~\":1}",
	  "type", "$[\"c/d~\"]", "#/properties/c~1d~0/type", "null", NULL },
	{ "what is missing", "{\"required\":[\"a\",\"b\"]}", "{\"a\":1}", "required", "$",
	  "#/required", "[\"a\",\"b\"]", "b" },
	{ "what is too much", "{\"properties\":{\"a\":{\"additionalProperties\":false}}}",
	  "{\"a\":{\"secret\":1}}", "additionalProperties", "$.a",
	  "#/properties/a/additionalProperties", "false", "secret" },
	{ "a key that the schema does not name", "{\"additionalProperties\":{\"type\":\"null\"}}",
	  "{\"secret\":1}", "type", "$.*", "#/additionalProperties/type", "null", NULL },
	{ "by way of a reference",
	  "{\"$defs\":{\"n\":{\"allOf\":[{},{\"minimum\":3}]}},\"properties\":{\"a\":{\"$ref\":"
	  "\"#/$defs/n\"}}}",
	  "{\"a\":2}", "minimum", "$.a", "#/properties/a/$ref/allOf/1/minimum", "3", NULL },
	{ "a branch is not to blame, its keyword is",
	  "{\"properties\":{\"a\":{\"anyOf\":[{\"type\":\"null\"},{\"minimum\":3}]}}}", "{\"a\":2}",
	  "anyOf", "$.a", "#/properties/a/anyOf", "[{\"type\":\"null\"},{\"minimum\":3}]", NULL },
	{ "not", "{\"not\":{\"required\":[\"a\"]}}", "{\"a\":1}", "not", "$", "#/not",
	  "{\"required\":[\"a\"]}", NULL },
	{ "the first of several", "{\"maximum\":1,\"minimum\":5}", "3", "maximum", "$", "#/maximum",
	  "1", NULL },
	{ "an element of the first", "{\"prefixItems\":[{},{\"const\":1}]}", "[0,2]", "const",
	  "$[1]", "#/prefixItems/1/const", "1", NULL },
};

static void assert_text(const char *name, struct slice have, const char *want)
{
	if (want == NULL ? !slice_absent(have) : !slice_eq(have, slice_str(want)))
		fail_msg("%s: \"%.*s\", not \"%s\"", name, (int)have.len, have.at,
			 want == NULL ? "absent" : want);
}

static void the_first_fault_is_named_with_both_its_places(void **state)
{
	for (size_t i = 0; i < COUNT_OF(places); i++) {
		const struct schema_finding found =
			check(*state, places[i].schema, places[i].value);
		assert_int_equal(found.verdict, SCHEMA_VIOLATED);
		assert_text(places[i].name, slice_str(found.keyword), places[i].keyword);
		assert_text(places[i].name, found.path, places[i].path);
		assert_text(places[i].name, found.schema_path, places[i].schema_path);
		assert_text(places[i].name, found.wanted, places[i].wanted);
		assert_text(places[i].name, found.member, places[i].member);
	}
}

static void long_paths_are_cut_at_a_step(void **state)
{
	struct rig *rig = *state;
	const char *name = repeat(rig, "", "n%u", 150, "");
	char schema[2000], value[2000];

	(void)snprintf(schema, sizeof(schema),
		       "{\"properties\":{\"%s\":{\"properties\":{\"%s\":{\"type\":\"null\"}}}}}",
		       name, name);
	(void)snprintf(value, sizeof(value), "{\"%s\":{\"%s\":1}}", name, name);
	const struct schema_finding found = check(rig, schema, value);
	assert_int_equal(found.verdict, SCHEMA_VIOLATED);
	assert_true(found.path.len <= SCHEMA_PATH_MAX && found.path.len > strlen(name));
	assert_true(found.schema_path.len <= SCHEMA_PATH_MAX);
}

/* Fails the n-th take of memory until there is none left to fail. */
static void without_memory_it_says_so(void **state)
{
	struct rig *rig = *state;
	static const char text[] =
		"{\"properties\":{\"a\":{\"anyOf\":[{\"const\":\"\\n\"},{\"$ref\":\"#/$defs/x\"}]},"
		"\"l\":{\"uniqueItems\":true}},\"$defs\":{\"x\":{\"minimum\":5}}}";
	static const char value[] = "{\"l\":[1,2,3],\"a\":\"\\n\\n\"}";
	enum err err = ERR_BUSY;
	struct schema_finding found = { .verdict = SCHEMA_HOLDS };

	for (size_t cap = 0; err == ERR_BUSY; cap += 64) {
		struct schema schema;
		struct arena small;
		assert_true(cap < 65536);
		arena_init(&small, &rig->pool, cap);
		err = schema_read(slice_str(text), rig->work, &small, &schema);
		if (err == ERR_OK)
			err = schema_check(&schema, slice_str(value), &small, &found);
		arena_give(&small);
	}
	assert_int_equal(err, ERR_OK);
	assert_int_equal(found.verdict, SCHEMA_HOLDS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(each_keyword_says_what_the_specification_says,
						begin, end),
		cmocka_unit_test_setup_teardown(the_first_fault_is_named_with_both_its_places,
						begin, end),
		cmocka_unit_test_setup_teardown(long_paths_are_cut_at_a_step, begin, end),
		cmocka_unit_test_setup_teardown(without_memory_it_says_so, begin, end),
	};
	return cmocka_run_group_tests_name("schema", tests, NULL, NULL);
}
