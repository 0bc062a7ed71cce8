/* schema_branch.c - where the keywords that have subschemas send a value, or parts of it. */
#include "codec/schema/schema_parts.h"

static void not_checked(struct frame *f)
{
	if (f->truth == TRUTH_YES)
		f->truth = TRUTH_UNKNOWN;
}

/* The same schema's member of that name; NULL: there is none. */
static const struct tree_value *beside(struct check *c, const struct frame *f, enum keyword keyword)
{
	for (uint32_t i = 0; i < f->schema->count && tree_charge(&c->looks, 1); i++)
		if (f->schema->members[i].keyword == keyword)
			return &f->schema->members[i];
	return NULL;
}

/* ---- members of objects ---- */

bool branch_properties(struct check *c, struct frame *f, const struct tree_value *keyword,
		       const struct tree_value **schema, const struct tree_value **value)
{
	if (keyword->kind != JSON_OBJECT)
		not_checked(f);
	while (keyword->kind == JSON_OBJECT && f->next < keyword->count && c->looks != 0) {
		*schema = &keyword->members[f->next++];
		*value = tree_find(f->value, (*schema)->key, (*schema)->key_hash, &f->near,
				   &c->looks);
		if (*value != NULL)
			return true;
	}
	return false;
}

/* The members that no property is for. Which of them are patternProperties' is not known. */
bool branch_additional(struct check *c, struct frame *f, const struct tree_value *keyword,
		       const struct tree_value **schema, const struct tree_value **value)
{
	if (keyword->kind == JSON_TRUE)
		return false;
	if (f->next == 0) {
		f->beside = beside(c, f, KEY_PROPERTIES);
		f->patterns = beside(c, f, KEY_PATTERN_PROPERTIES) != NULL;
	}
	while (f->next < f->value->count && c->looks != 0) {
		const struct tree_value *m = &f->value->members[f->next++];
		if (f->beside != NULL && f->beside->kind == JSON_OBJECT &&
		    tree_find(f->beside, m->key, m->key_hash, &f->near, &c->looks) != NULL)
			continue;
		if (f->patterns) {
			not_checked(f);
			return false;
		}
		*schema = keyword;
		*value = m;
		return true;
	}
	return false;
}

/* ---- elements of arrays ---- */

/* From the element `from` on, all by the same schema. */
static bool elements_from(struct frame *f, const struct tree_value *keyword, uint32_t from,
			  const struct tree_value **schema, const struct tree_value **value)
{
	if (keyword->kind == JSON_TRUE)
		return false;
	if (f->next < from)
		f->next = from;
	if (f->next >= f->value->count)
		return false;
	*schema = keyword;
	*value = &f->value->members[f->next++];
	return true;
}

/* Each element by its own. */
static bool elements_each(struct frame *f, const struct tree_value *keyword,
			  const struct tree_value **schema, const struct tree_value **value)
{
	if (f->next >= f->value->count || f->next >= keyword->count)
		return false;
	*schema = &keyword->members[f->next];
	*value = &f->value->members[f->next++];
	return true;
}

bool branch_prefix_items(struct check *c, struct frame *f, const struct tree_value *keyword,
			 const struct tree_value **schema, const struct tree_value **value)
{
	(void)c;
	if (keyword->kind != JSON_ARRAY)
		not_checked(f);
	return keyword->kind == JSON_ARRAY && elements_each(f, keyword, schema, value);
}

/* Behind prefixItems; a list is what prefixItems were called up to draft 7. */
bool branch_items(struct check *c, struct frame *f, const struct tree_value *keyword,
		  const struct tree_value **schema, const struct tree_value **value)
{
	if (keyword->kind == JSON_ARRAY)
		return elements_each(f, keyword, schema, value);
	if (f->next == 0)
		f->beside = beside(c, f, KEY_PREFIX_ITEMS);
	const bool prefixed = f->beside != NULL && f->beside->kind == JSON_ARRAY;
	return elements_from(f, keyword, prefixed ? f->beside->count : 0, schema, value);
}

bool branch_additional_items(struct check *c, struct frame *f, const struct tree_value *keyword,
			     const struct tree_value **schema, const struct tree_value **value)
{
	if (f->next == 0)
		f->beside = beside(c, f, KEY_ITEMS);
	if (f->beside == NULL || f->beside->kind != JSON_ARRAY)
		return false;
	return elements_from(f, keyword, f->beside->count, schema, value);
}

/* ---- the value itself ---- */

bool branch_list(struct check *c, struct frame *f, const struct tree_value *keyword,
		 const struct tree_value **schema, const struct tree_value **value)
{
	(void)c;
	if (keyword->kind != JSON_ARRAY || keyword->count == 0) /* an empty one is not allowed */
		not_checked(f);
	if (keyword->kind != JSON_ARRAY || f->next >= keyword->count)
		return false;
	*schema = &keyword->members[f->next++];
	*value = f->value;
	return true;
}

bool branch_itself(struct check *c, struct frame *f, const struct tree_value *keyword,
		   const struct tree_value **schema, const struct tree_value **value)
{
	(void)c;
	*schema = keyword;
	*value = f->value;
	return f->next++ == 0;
}

/* ---- references ---- */

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* One token of a pointer in a URI fragment, decoded in place (RFC 6901, 4 and 6). False: none is written
 * so. */
static bool decode_token(char *text, size_t *len)
{
	char *to = text;

	for (size_t i = 0; i < *len; i++) {
		char c = text[i];
		if (c == '%') {
			if (i + 2 >= *len || hex_digit(text[i + 1]) < 0 ||
			    hex_digit(text[i + 2]) < 0)
				return false;
			c = (char)(hex_digit(text[i + 1]) << 4 | hex_digit(text[i + 2]));
			i += 2;
		}
		*to++ = c;
	}
	*len = (size_t)(to - text);
	to = text;
	for (size_t i = 0; i < *len; i++) {
		char c = text[i];
		if (c == '~') {
			if (++i == *len || (text[i] != '0' && text[i] != '1'))
				return false;
			c = text[i] == '0' ? '~' : '/';
		}
		*to++ = c;
	}
	*len = (size_t)(to - text);
	return true;
}

/* Names are compared, and copied, byte by byte. */
enum { KEYS_A_LOOK = 64, BYTES_A_LOOK = 16 };

static const struct tree_value *member_at(struct check *c, const struct tree_value *of,
					  struct slice token)
{
	uint64_t index;

	if (of->kind == JSON_ARRAY)
		return slice_to_u64(token, &index) && index < of->count ? &of->members[index]
									: NULL;
	for (uint32_t i = 0; i < of->count; i++) {
		if (i % KEYS_A_LOOK == 0 && !tree_charge(&c->looks, 1 + token.len / BYTES_A_LOOK))
			return NULL;
		if (slice_eq(of->members[i].key, token))
			return &of->members[i];
	}
	return NULL;
}

/* What "#/$defs/name" or any other pointer into the schema means; NULL: it leads elsewhere or nowhere. */
static const struct tree_value *resolve(struct check *c, struct slice ref)
{
	const struct tree_value *at = c->root;

	if (ref.len == 0 || ref.at[0] != '#' || !tree_charge(&c->looks, ref.len / BYTES_A_LOOK))
		return NULL;
	struct slice rest = slice_of(ref.at + 1, ref.len - 1);
	if (rest.len == 0)
		return at;
	if (!slice_absent(rest) && slice_cut(&rest, '/').len != 0)
		return NULL; /* a name: "#anchor" */
	while (at != NULL && !slice_absent(rest)) {
		const struct slice token = slice_cut(&rest, '/');
		const struct slice copy = arena_copy(c->into, token);
		size_t len = token.len;
		c->failed = slice_absent(copy);
		if (c->failed || !decode_token((char *)(uintptr_t)copy.at, &len))
			return NULL;
		at = member_at(c, at, slice_of(copy.at, len));
	}
	return at;
}

bool branch_ref(struct check *c, struct frame *f, const struct tree_value *keyword,
		const struct tree_value **schema, const struct tree_value **value)
{
	if (f->next++ != 0)
		return false;
	*schema = keyword->kind == JSON_STRING ? resolve(c, keyword->text) : NULL;
	*value = f->value;
	if (*schema == NULL)
		not_checked(f);
	return *schema != NULL;
}
