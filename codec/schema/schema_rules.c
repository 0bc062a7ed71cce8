/* schema_rules.c - what each keyword says, and the ones that need no subschema. */
#include "codec/schema/schema_parts.h"

#include "codec/json/json_scan.h"
#include "codec/schema/schema_number.h"

enum {
	KIND_STRING = 1 << JSON_STRING,
	KIND_NUMBER = 1 << JSON_NUMBER,
	KIND_ARRAY = 1 << JSON_ARRAY,
	KIND_OBJECT = 1 << JSON_OBJECT,
	KIND_ANY = KIND_STRING | KIND_NUMBER | KIND_ARRAY | KIND_OBJECT | 1 << JSON_NULL |
		   1 << JSON_FALSE | 1 << JSON_TRUE,
};

/* What may be long is paid for by its length. */
enum { ENTRIES_A_LOOK = 64, BYTES_A_LOOK = 256, DIGITS_A_LOOK = 32, DIVIDED_A_LOOK = 4 };

static enum truth truth_of(bool holds)
{
	return holds ? TRUTH_YES : TRUTH_NO;
}

/* ---- type, enum, const ---- */

/* What reading a number takes, which may be long. False: nothing is left. */
static bool charge_number(struct check *c, const struct tree_value *number, size_t digits_a_look)
{
	return tree_charge(&c->looks, number->text.len / digits_a_look);
}

static enum truth is_of_type(struct check *c, const struct tree_value *name,
			     const struct tree_value *value)
{
	static const struct {
		struct slice name;
		uint16_t kinds;
	} types[] = {
		{ SLICE_INIT("object"), KIND_OBJECT },
		{ SLICE_INIT("array"), KIND_ARRAY },
		{ SLICE_INIT("string"), KIND_STRING },
		{ SLICE_INIT("number"), KIND_NUMBER },
		{ SLICE_INIT("boolean"), 1 << JSON_FALSE | 1 << JSON_TRUE },
		{ SLICE_INIT("null"), 1 << JSON_NULL },
	};

	if (name->kind != JSON_STRING)
		return TRUTH_UNKNOWN;
	for (size_t i = 0; i < COUNT_OF(types); i++)
		if (slice_eq(name->text, types[i].name))
			return truth_of(types[i].kinds >> value->kind & 1);
	if (!slice_eq(name->text, SLICE("integer")))
		return TRUTH_UNKNOWN;
	if (value->kind != JSON_NUMBER)
		return TRUTH_NO;
	return charge_number(c, value, DIGITS_A_LOOK) ? truth_of(number_is_whole(value->text))
						      : TRUTH_UNKNOWN;
}

static enum truth test_type(struct check *c, const struct tree_value *keyword,
			    const struct tree_value *value)
{
	enum truth most = TRUTH_NO;

	if (keyword->kind != JSON_ARRAY)
		return is_of_type(c, keyword, value);
	for (uint32_t i = 0; i < keyword->count && tree_charge(&c->looks, 1); i++) {
		enum truth truth = is_of_type(c, &keyword->members[i], value);
		most = truth > most ? truth : most;
	}
	return most;
}

static enum truth test_enum(struct check *c, const struct tree_value *keyword,
			    const struct tree_value *value)
{
	if (keyword->kind != JSON_ARRAY)
		return TRUTH_UNKNOWN;
	for (uint32_t i = 0; i < keyword->count && c->looks != 0; i++) {
		const struct tree_value *entry = &keyword->members[i];
		if (i % ENTRIES_A_LOOK == 0 && !tree_charge(&c->looks, 1))
			break;
		if (entry->hash == value->hash && tree_same(entry, value, &c->looks))
			return TRUTH_YES;
	}
	return TRUTH_NO;
}

static enum truth test_const(struct check *c, const struct tree_value *keyword,
			     const struct tree_value *value)
{
	return truth_of(tree_same(keyword, value, &c->looks));
}

/* ---- objects ---- */

static enum truth test_required(struct check *c, const struct tree_value *keyword,
				const struct tree_value *value)
{
	enum truth least = keyword->kind == JSON_ARRAY ? TRUTH_YES : TRUTH_UNKNOWN;
	uint32_t near = 0;

	for (uint32_t i = 0; keyword->kind == JSON_ARRAY && i < keyword->count; i++) {
		const struct tree_value *name = &keyword->members[i];
		if (name->kind != JSON_STRING) {
			least = TRUTH_UNKNOWN;
			continue;
		}
		const bool there =
			tree_find(value, name->text, name->text_hash, &near, &c->looks) != NULL;
		if (c->looks == 0 || !tree_charge(&c->looks, 1))
			return TRUTH_UNKNOWN;
		if (there)
			continue;
		schema_note(c, name->text);
		return TRUTH_NO;
	}
	return least;
}

/* ---- bounds ---- */

/* A bound that is no number bounds nothing that can be checked. */
static enum truth test_number(struct check *c, const struct tree_value *keyword,
			      const struct tree_value *value)
{
	if (keyword->kind != JSON_NUMBER || !charge_number(c, keyword, DIGITS_A_LOOK) ||
	    !charge_number(c, value, DIGITS_A_LOOK))
		return TRUTH_UNKNOWN;
	const int order = number_order(value->text, keyword->text);
	switch (keyword->keyword) {
	case KEY_MINIMUM:
		return truth_of(order >= 0);
	case KEY_MAXIMUM:
		return truth_of(order <= 0);
	case KEY_EXCLUSIVE_MINIMUM:
		return truth_of(order > 0);
	default:
		return truth_of(order < 0);
	}
}

static enum truth test_multiple(struct check *c, const struct tree_value *keyword,
				const struct tree_value *value)
{
	if (keyword->kind != JSON_NUMBER || !charge_number(c, keyword, DIGITS_A_LOOK) ||
	    !charge_number(c, value, DIVIDED_A_LOOK))
		return TRUTH_UNKNOWN;
	switch (number_multiple_of(value->text, keyword->text)) {
	case NUMBER_MULTIPLE:
		return TRUTH_YES;
	case NUMBER_NO_MULTIPLE:
		return TRUTH_NO;
	case NUMBER_NOT_TOLD:
		break;
	}
	return TRUTH_UNKNOWN;
}

/* Bytes that begin one: all but 10xxxxxx, eight at a time. */
static size_t code_points(struct slice plain)
{
	const uint64_t ones = UINT64_C(0x0101010101010101);
	size_t count = plain.len, i = 0;

	for (; i + 8 <= plain.len; i += 8) {
		const uint64_t word = scan_load8(plain.at + i);
		count -= (size_t)__builtin_popcountll(word >> 7 & ~word >> 6 & ones);
	}
	for (; i < plain.len; i++)
		count -= ((unsigned char)plain.at[i] & 0xc0) == 0x80;
	return count;
}

static enum truth count_against(struct check *c, const struct tree_value *keyword, size_t count,
				bool least)
{
	if (keyword->kind != JSON_NUMBER || !charge_number(c, keyword, DIGITS_A_LOOK))
		return TRUTH_UNKNOWN;
	const int order = number_order_count(keyword->text, count);
	return truth_of(least ? order <= 0 : order >= 0);
}

static enum truth test_length(struct check *c, const struct tree_value *keyword,
			      const struct tree_value *value)
{
	if (!tree_charge(&c->looks, value->text.len / BYTES_A_LOOK))
		return TRUTH_UNKNOWN;
	return count_against(c, keyword, code_points(value->text),
			     keyword->keyword == KEY_MIN_LENGTH);
}

static enum truth test_count(struct check *c, const struct tree_value *keyword,
			     const struct tree_value *value)
{
	return count_against(c, keyword, value->count,
			     keyword->keyword == KEY_MIN_ITEMS ||
				     keyword->keyword == KEY_MIN_PROPERTIES);
}

/* Elements in a table by their hashes: all are looked at once, whatever they are. The table is paid for, too,
 * of which an answer that is no takes but the beginning. */
static enum truth all_differ(struct check *c, const struct tree_value *array)
{
	uint32_t slots = 8;

	if (!tree_charge(&c->looks, array->count))
		return TRUTH_UNKNOWN;
	while (slots < 2 * array->count)
		slots *= 2;
	uint32_t *table = arena_zero(c->into, slots * sizeof(*table));
	c->failed = table == NULL;
	for (uint32_t i = 0; table != NULL && i < array->count; i++) {
		const struct tree_value *value = &array->members[i];
		uint32_t at = (uint32_t)(value->hash >> 32) & (slots - 1);
		for (; table[at] != 0; at = (at + 1) & (slots - 1))
			if (tree_same(&array->members[table[at] - 1], value, &c->looks))
				return TRUTH_NO;
		table[at] = i + 1;
	}
	return TRUTH_YES;
}

static enum truth test_unique(struct check *c, const struct tree_value *keyword,
			      const struct tree_value *value)
{
	if (keyword->kind == JSON_FALSE)
		return TRUTH_YES;
	return keyword->kind == JSON_TRUE ? all_differ(c, value) : TRUTH_UNKNOWN;
}

/* ---- the table ---- */

/* What has neither test nor branch cannot be checked. What is not here says nothing. */
static const struct schema_rule rules[KEY_COUNT] = {
	[KEY_TYPE] = { .kinds = KIND_ANY, .test = test_type },
	[KEY_ENUM] = { .kinds = KIND_ANY, .test = test_enum },
	[KEY_CONST] = { .kinds = KIND_ANY, .test = test_const },

	[KEY_PROPERTIES] = { .kinds = KIND_OBJECT, .branch = branch_properties },
	[KEY_ADDITIONAL] = { .kinds = KIND_OBJECT, .branch = branch_additional },
	[KEY_REQUIRED] = { .kinds = KIND_OBJECT, .test = test_required },
	[KEY_MIN_PROPERTIES] = { .kinds = KIND_OBJECT, .test = test_count },
	[KEY_MAX_PROPERTIES] = { .kinds = KIND_OBJECT, .test = test_count },
	[KEY_PATTERN_PROPERTIES] = { .kinds = KIND_OBJECT },
	[KEY_PROPERTY_NAMES] = { .kinds = KIND_OBJECT },
	[KEY_DEPENDENT_REQUIRED] = { .kinds = KIND_OBJECT },
	[KEY_DEPENDENT_SCHEMAS] = { .kinds = KIND_OBJECT },
	[KEY_DEPENDENCIES] = { .kinds = KIND_OBJECT },
	[KEY_UNEVALUATED_PROPERTIES] = { .kinds = KIND_OBJECT },

	[KEY_ITEMS] = { .kinds = KIND_ARRAY, .branch = branch_items },
	[KEY_PREFIX_ITEMS] = { .kinds = KIND_ARRAY, .branch = branch_prefix_items },
	[KEY_ADDITIONAL_ITEMS] = { .kinds = KIND_ARRAY, .branch = branch_additional_items },
	[KEY_MIN_ITEMS] = { .kinds = KIND_ARRAY, .test = test_count },
	[KEY_MAX_ITEMS] = { .kinds = KIND_ARRAY, .test = test_count },
	[KEY_UNIQUE_ITEMS] = { .kinds = KIND_ARRAY, .test = test_unique },
	[KEY_CONTAINS] = { .kinds = KIND_ARRAY },
	[KEY_UNEVALUATED_ITEMS] = { .kinds = KIND_ARRAY },

	[KEY_MINIMUM] = { .kinds = KIND_NUMBER, .test = test_number },
	[KEY_MAXIMUM] = { .kinds = KIND_NUMBER, .test = test_number },
	[KEY_EXCLUSIVE_MINIMUM] = { .kinds = KIND_NUMBER, .test = test_number },
	[KEY_EXCLUSIVE_MAXIMUM] = { .kinds = KIND_NUMBER, .test = test_number },
	[KEY_MULTIPLE_OF] = { .kinds = KIND_NUMBER, .test = test_multiple },

	[KEY_MIN_LENGTH] = { .kinds = KIND_STRING, .test = test_length },
	[KEY_MAX_LENGTH] = { .kinds = KIND_STRING, .test = test_length },
	[KEY_PATTERN] = { .kinds = KIND_STRING },
	[KEY_FORMAT] = { .kinds = KIND_STRING },

	[KEY_ANY_OF] = { .kinds = KIND_ANY, .join = JOIN_ANY, .branch = branch_list },
	[KEY_ONE_OF] = { .kinds = KIND_ANY, .join = JOIN_ONE, .branch = branch_list },
	[KEY_ALL_OF] = { .kinds = KIND_ANY, .branch = branch_list },
	[KEY_NOT] = { .kinds = KIND_ANY, .join = JOIN_NONE, .branch = branch_itself },
	[KEY_IF] = { .kinds = KIND_ANY },
	[KEY_REF] = { .kinds = KIND_ANY, .branch = branch_ref },
	[KEY_DYNAMIC_REF] = { .kinds = KIND_ANY },
	[KEY_RECURSIVE_REF] = { .kinds = KIND_ANY },
};

const struct schema_rule *schema_rule_of(const struct tree_value *keyword)
{
	const struct schema_rule *rule = &rules[keyword->keyword];

	return rule->kinds == 0 ? NULL : rule;
}
