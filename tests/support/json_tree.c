#include "tests/support/json_tree.h"

#include "codec/base/must.h"
#include "codec/set.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- parse ---- */

static struct json_tree *add(struct json_tree *parent, struct slice key, enum json_kind kind)
{
	struct json_tree *node = calloc(1, sizeof(*node));

	must(node != NULL);
	node->kind = kind;
	node->key = key;
	node->parent = parent;
	if (parent == NULL)
		return node;
	if (parent->last == NULL)
		parent->first = node;
	else
		parent->last->next = node;
	parent->last = node;
	return node;
}

/* Reads what stands in front of the reader as a child of `parent`; containers are only entered. */
static struct json_tree *read_value(struct json_reader *r, struct json_tree *parent,
				    struct slice key)
{
	struct json_tree *node = add(parent, key, json_peek(r));

	switch (node->kind) {
	case JSON_OBJECT:
		(void)json_enter_object(r);
		break;
	case JSON_ARRAY:
		(void)json_enter_array(r);
		break;
	case JSON_STRING:
		(void)json_string(r, &node->text);
		break;
	default:
		(void)json_skip(r, &node->text);
	}
	return node;
}

static bool is_container(const struct json_tree *node)
{
	return node->kind == JSON_OBJECT || node->kind == JSON_ARRAY;
}

/* One for all: it is so large that making it costs more than most texts do, above all under ASan. */
static struct json_work *the_work(void)
{
	static struct json_work *work;

	if (work == NULL)
		work = json_work_new(codec_set_best());
	must(work != NULL);
	return work;
}

struct json_tree *json_tree_parse(struct slice text)
{
	struct json_reader r;
	struct slice key = { NULL, 0 };

	json_open(&r, text, NULL, the_work());
	struct json_tree *root = read_value(&r, NULL, key);
	struct json_tree *open = is_container(root) ? root : NULL;
	while (open != NULL && r.fault.err == ERR_OK) {
		bool more =
			open->kind == JSON_OBJECT ? json_next_key(&r, &key) : json_next_item(&r);
		if (!more) {
			open = open->parent;
			continue;
		}
		struct json_tree *node = read_value(
			&r, open, open->kind == JSON_OBJECT ? key : (struct slice){ NULL, 0 });
		if (is_container(node))
			open = node;
	}
	if (!json_finish(&r)) {
		json_tree_free(root);
		root = NULL;
	}
	return root;
}

void json_tree_free(struct json_tree *tree)
{
	struct json_tree *stop = tree == NULL ? NULL : tree->parent;

	while (tree != stop && tree != NULL) {
		if (tree->first != NULL) {
			struct json_tree *child = tree->first;
			tree->first = child->next;
			tree = child;
			continue;
		}
		struct json_tree *parent = tree->parent;
		free(tree);
		tree = parent;
	}
}

/* ---- access ---- */

static const struct json_tree *member(const struct json_tree *tree, struct slice plain)
{
	if (tree == NULL || tree->kind != JSON_OBJECT)
		return NULL;
	for (const struct json_tree *child = tree->first; child != NULL; child = child->next)
		if (json_str_eq(child->key, plain))
			return child;
	return NULL;
}

const struct json_tree *json_tree_get(const struct json_tree *tree, const char *path)
{
	struct slice rest = slice_str(path);

	while (tree != NULL && !slice_absent(rest))
		tree = member(tree, slice_cut(&rest, '.'));
	return tree;
}

static struct slice meaning(struct slice raw)
{
	struct arena_pool pool = { 0 };
	struct arena arena;

	arena_init(&arena, &pool, SIZE_MAX);
	struct slice plain = json_str_plain(raw, &arena);
	char *copy = malloc(plain.len + 1);
	must(copy != NULL && !slice_absent(plain));
	(void)memcpy(copy, plain.at, plain.len);
	copy[plain.len] = '\0';
	arena_give(&arena);
	arena_pool_fini(&pool);
	return slice_of(copy, plain.len);
}

struct slice json_tree_string(const struct json_tree *tree, const char *path)
{
	const struct json_tree *node = json_tree_get(tree, path);

	if (node == NULL || node->kind != JSON_STRING)
		return (struct slice){ NULL, 0 };
	return meaning(node->text);
}

bool json_tree_true(const struct json_tree *tree, const char *path)
{
	const struct json_tree *node = json_tree_get(tree, path);

	return node != NULL && node->kind == JSON_TRUE;
}

/* ---- compare ---- */

struct comparison {
	bool subset;
	char *why;
	size_t size;
};

static size_t count(const struct json_tree *tree)
{
	size_t n = 0;

	for (const struct json_tree *child = tree->first; child != NULL; child = child->next)
		n++;
	return n;
}

/* Where `node` is, from the root, as ".messages[2].content". */
static void put_path(const struct json_tree *node, char *out, size_t size)
{
	const struct json_tree *chain[JSON_DEPTH_MAX + 1];
	size_t depth = 0, at = 0;

	for (; node->parent != NULL && depth <= JSON_DEPTH_MAX; node = node->parent)
		chain[depth++] = node;
	out[0] = '\0';
	while (depth-- > 0 && at < size) {
		size_t index = 0;
		for (const struct json_tree *n = chain[depth]->parent->first; n != chain[depth];
		     n = n->next)
			index++;
		if (slice_absent(chain[depth]->key))
			at += (size_t)snprintf(out + at, size - at, "[%zu]", index);
		else
			at += (size_t)snprintf(out + at, size - at, ".%.*s",
					       (int)chain[depth]->key.len, chain[depth]->key.at);
	}
}

static bool differ(const struct comparison *c, const struct json_tree *want, const char *what)
{
	char path[200];

	put_path(want, path, sizeof(path));
	(void)snprintf(c->why, c->size, "%s: %s (want \"%.*s\")", path[0] == '\0' ? "." : path,
		       what, want->text.len > 80 ? 80 : (int)want->text.len,
		       want->text.at == NULL ? "" : want->text.at);
	return false;
}

static bool is_arguments(const struct json_tree *node)
{
	return json_str_eq(node->key, SLICE("arguments")) && node->parent != NULL &&
	       json_str_eq(node->parent->key, SLICE("function"));
}

static bool same_arguments(const struct comparison *c, const struct json_tree *want,
			   const struct json_tree *have)
{
	struct slice left = meaning(want->text), right = meaning(have->text);
	struct json_tree *a = json_tree_parse(left), *b = json_tree_parse(right);
	bool same = a != NULL && b != NULL ? json_tree_same(a, b, false, c->why, c->size)
					   : slice_eq(left, right);

	json_tree_free(a);
	json_tree_free(b);
	free((void *)(uintptr_t)left.at);
	free((void *)(uintptr_t)right.at);
	return same || differ(c, want, "other arguments");
}

/* The nodes themselves, without their children. */
static bool same_node(const struct comparison *c, const struct json_tree *want,
		      const struct json_tree *have)
{
	if (want->kind != have->kind)
		return differ(c, want, "another type");
	if (is_container(want)) {
		size_t w = count(want), h = count(have);
		if (w == h || (c->subset && want->kind == JSON_OBJECT && h > w))
			return true;
		return differ(c, want, h > w ? "more members" : "fewer members");
	}
	if (want->kind == JSON_STRING && is_arguments(want) && is_arguments(have))
		return same_arguments(c, want, have);
	if (want->kind == JSON_STRING)
		return json_str_same(want->text, have->text) || differ(c, want, "another string");
	return slice_eq(want->text, have->text) || differ(c, want, "another value");
}

bool json_tree_same(const struct json_tree *want, const struct json_tree *have, bool subset,
		    char *why, size_t size)
{
	const struct comparison c = { subset, why, size };
	const struct json_tree *w = want, *h = have;

	for (;;) {
		if (!same_node(&c, w, h))
			return false;
		if (w->first != NULL) {
			w = w->first;
			h = w->parent->kind == JSON_ARRAY ? h->first : h;
		} else {
			while (w != want && w->next == NULL) {
				w = w->parent;
				h = h->parent;
			}
			if (w == want)
				return true;
			w = w->next;
			h = w->parent->kind == JSON_ARRAY ? h->next : h->parent;
		}
		if (w->parent->kind == JSON_ARRAY)
			continue;
		/* h is the object: the member of the same name */
		const struct json_tree *m = h->first;
		while (m != NULL && !json_str_same(m->key, w->key))
			m = m->next;
		if (m == NULL)
			return differ(&c, w, "missing");
		h = m;
	}
}
