/* schema_place.c - where a value and its schema part, in words. */
#include "codec/schema/schema_parts.h"

static const char *keyword_name(enum keyword keyword)
{
	static const char *const names[KEY_OTHER] = {
#define KEYWORD(symbol, text) text,
#include "codec/tbl/keywords.h"
#undef KEYWORD
	};

	return keyword < KEY_OTHER ? names[keyword] : "";
}

/* A text that ends where the next piece would not fit. */
struct place {
	char *at;
	size_t len;
	bool full;
};

static void add(struct place *p, struct slice piece)
{
	p->full = p->full || piece.len > SCHEMA_PATH_MAX - p->len;
	if (p->full || piece.len == 0)
		return;
	(void)memcpy(p->at + p->len, piece.at, piece.len);
	p->len += piece.len;
}

static void add_index(struct place *p, const char *before, size_t index, const char *behind)
{
	char text[32];
	size_t at = sizeof(text);

	add(p, slice_str(before));
	do
		text[--at] = (char)('0' + index % 10);
	while ((index /= 10) != 0);
	add(p, slice_of(text + at, sizeof(text) - at));
	add(p, slice_str(behind));
}

/* ---- of the value ---- */

static bool is_word(struct slice key)
{
	for (size_t i = 0; i < key.len; i++) {
		const char c = key.at[i], lower = (char)(c | 0x20);
		if (c != '_' && !(lower >= 'a' && lower <= 'z') && !(c >= '0' && c <= '9'))
			return false;
	}
	return key.len != 0;
}

/* From the value of `f` to that of the next frame. */
static void add_step(struct place *p, const struct frame *f, const struct tree_value *to)
{
	if (to == f->value)
		return;
	if (f->value->kind == JSON_ARRAY) {
		add_index(p, "[", (size_t)(to - f->value->members), "]");
	} else if (f->schema->members[f->keyword].keyword != KEY_PROPERTIES) {
		add(p, SLICE(".*"));
	} else if (is_word(to->key)) {
		add(p, SLICE("."));
		add(p, to->key);
	} else {
		add(p, SLICE("[\""));
		add(p, to->key);
		add(p, SLICE("\"]"));
	}
}

/* ---- of the schema ---- */

/* A token of a JSON pointer (RFC 6901, 3). */
static void add_token(struct place *p, struct slice token)
{
	add(p, SLICE("/"));
	while (token.len != 0) {
		size_t run = 0;
		while (run < token.len && token.at[run] != '~' && token.at[run] != '/')
			run++;
		add(p, slice_of(token.at, run));
		if (run == token.len)
			return;
		add(p, token.at[run] == '~' ? SLICE("~0") : SLICE("~1"));
		token = slice_of(token.at + run + 1, token.len - run - 1);
	}
}

/* From the schema of `f` to that of the next frame. */
static void add_branch(struct place *p, const struct frame *f, const struct tree_value *to)
{
	const struct tree_value *keyword = &f->schema->members[f->keyword];

	add_token(p, slice_str(keyword_name(keyword->keyword)));
	const uintptr_t offset = (uintptr_t)to - (uintptr_t)keyword->members;
	if (keyword->count == 0 || offset >= keyword->count * sizeof(*to))
		return; /* the keyword is itself a schema, or a reference to one */
	if (keyword->kind == JSON_OBJECT)
		add_token(p, to->key);
	else
		add_index(p, "/", (size_t)(to - keyword->members), "");
}

/* ---- */

static bool place_begin(struct check *c, struct place *p)
{
	*p = (struct place){ .at = arena_take(c->into, SCHEMA_PATH_MAX) };
	c->failed = c->failed || p->at == NULL;
	return p->at != NULL;
}

void schema_note(struct check *c, struct slice member)
{
	const struct frame *last = &c->frames[c->count - 1];
	const struct tree_value *keyword = &last->schema->members[last->keyword];
	struct place path, schema_path;

	if (c->found || last->quiet || !place_begin(c, &path) || !place_begin(c, &schema_path))
		return;
	c->found = true;
	add(&path, SLICE("$"));
	add(&schema_path, SLICE("#"));
	for (const struct frame *f = c->frames; f < last; f++) {
		add_step(&path, f, f[1].value);
		add_branch(&schema_path, f, f[1].schema);
	}
	add_token(&schema_path, slice_str(keyword_name(keyword->keyword)));
	c->out->keyword = keyword_name(keyword->keyword);
	c->out->path = slice_of(path.at, path.len);
	c->out->schema_path = slice_of(schema_path.at, schema_path.len);
	c->out->wanted = keyword->text;
	c->out->member = member;
}
