#include "gateway/settings/settings_tree.h"

#include "codec/base/must.h"

#include <stdarg.h>
#include <stdlib.h>
#include <yaml.h>

struct tree {
	yaml_parser_t parser;
	struct problems *problems;
	const char *file;
	struct slice text;
	struct node root; /* of a list that is read entry by entry */
	bool failed;
};

/* ---- events ---- */

static void out_of_memory(struct tree *tree)
{
	tree->failed = true;
	problem_in(tree->problems, tree->file, 1, "(file)",
		   "cannot be read, memory is exhausted; give the process more");
}

static uint32_t line_of(yaml_mark_t mark)
{
	return mark.line >= UINT32_MAX ? UINT32_MAX : (uint32_t)mark.line + 1;
}

static uint32_t line_at(struct slice text, size_t offset)
{
	uint32_t line = 1;

	for (size_t i = 0; i < text.len && i < offset; i++)
		line += text.at[i] == '\n';
	return line;
}

/* libyaml's texts are constants: nothing of the file's content is in them. */
static void syntax_problem(struct tree *tree)
{
	const yaml_parser_t *parser = &tree->parser;
	uint32_t line = line_of(parser->problem_mark);

	tree->failed = true;
	if (parser->error == YAML_READER_ERROR) /* it reads ahead of its mark */
		line = line_at(tree->text, parser->problem_offset);
	if (parser->context != NULL)
		problem_in(tree->problems, tree->file, line, "(syntax)",
			   "%s %s that begins in line %u; look at indentation, quotes and brackets",
			   parser->problem, parser->context, line_of(parser->context_mark));
	else
		problem_in(tree->problems, tree->file, line, "(syntax)",
			   "%s; this must be YAML in UTF-8",
			   parser->problem == NULL ? "cannot be read" : parser->problem);
}

static bool next_event(struct tree *tree, yaml_event_t *event)
{
	if (tree->failed)
		return false;
	if (yaml_parser_parse(&tree->parser, event) == 1)
		return true;
	if (tree->parser.error == YAML_MEMORY_ERROR)
		out_of_memory(tree);
	else
		syntax_problem(tree);
	return false;
}

/* Scalars may be secrets. */
static void drop_event(yaml_event_t *event)
{
	if (event->type == YAML_SCALAR_EVENT)
		explicit_bzero(event->data.scalar.value, event->data.scalar.length);
	yaml_event_delete(event);
}

/* The next event, which must be of that type; it carries nothing. */
static bool skip_event(struct tree *tree, yaml_event_type_t type)
{
	yaml_event_t event;

	if (!next_event(tree, &event))
		return false;
	bool same = event.type == type;
	if (!same) {
		tree->failed = true;
		problem_in(tree->problems, tree->file, line_of(event.start_mark), "(file)",
			   "has more than one document; leave one and no further \"---\"");
	}
	drop_event(&event);
	return same;
}

/* ---- building ---- */

static bool refuse(struct tree *tree, const yaml_event_t *event, const char *message)
{
	tree->failed = true;
	problem_in(tree->problems, tree->file, line_of(event->start_mark), "(syntax)", "%s",
		   message);
	return false;
}

static bool has_anchor_or_tag(const yaml_event_t *event)
{
	switch (event->type) {
	case YAML_SCALAR_EVENT:
		return event->data.scalar.anchor != NULL || event->data.scalar.tag != NULL;
	case YAML_SEQUENCE_START_EVENT:
		return event->data.sequence_start.anchor != NULL ||
		       event->data.sequence_start.tag != NULL;
	case YAML_MAPPING_START_EVENT:
		return event->data.mapping_start.anchor != NULL ||
		       event->data.mapping_start.tag != NULL;
	default:
		return event->type == YAML_ALIAS_EVENT;
	}
}

static bool fill_node(struct tree *tree, const yaml_event_t *event, struct node *node,
		      struct arena *into)
{
	node->file = tree->file;
	if (node->line == 0)
		node->line = line_of(event->start_mark);
	if (event->type == YAML_SCALAR_EVENT) {
		node->kind = NODE_SCALAR;
		node->plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
		node->text = arena_copy(into, slice_of((const char *)event->data.scalar.value,
						       event->data.scalar.length));
		return !slice_absent(node->text);
	}
	node->kind = event->type == YAML_MAPPING_START_EVENT ? NODE_MAP : NODE_LIST;
	return true;
}

static void append(struct node *parent, struct node *child)
{
	child->parent = parent;
	child->index = parent->count++;
	if (parent->last != NULL)
		parent->last->next = child;
	else
		parent->first = child;
	parent->last = child;
}

/* A key of `map`: the child is appended without a value yet. NULL after a problem. */
static struct node *read_key(struct tree *tree, const yaml_event_t *event, struct node *map,
			     struct arena *into)
{
	struct slice text;

	if (event->type != YAML_SCALAR_EVENT) {
		(void)refuse(tree, event, "a key must be a text; write \"key: value\"");
		return NULL;
	}
	struct node *child = arena_zero(into, sizeof(*child));
	text = arena_copy(
		into, slice_of((const char *)event->data.scalar.value, event->data.scalar.length));
	if (child == NULL || slice_absent(text)) {
		out_of_memory(tree);
		return NULL;
	}
	child->key = text;
	child->line = line_of(event->start_mark);
	child->file = tree->file;
	append(map, child);
	return child;
}

static int by_key(const void *a, const void *b)
{
	const struct node *x = *(const struct node *const *)a, *y = *(const struct node *const *)b;
	size_t len = x->key.len < y->key.len ? x->key.len : y->key.len;
	int order = memcmp(x->key.at, y->key.at, len);

	if (order == 0)
		order = (x->key.len > y->key.len) - (x->key.len < y->key.len);
	return order != 0 ? order : (x->index > y->index) - (x->index < y->index);
}

/* Reported, and taken out of the map: whoever looks for a key finds the first. */
static void given_twice(struct tree *tree, struct node *first, struct node *second)
{
	struct node *before = first;

	problem_at(tree->problems, second, "is given twice, first in line %u; remove one",
		   first->line);
	while (before->next != second)
		before = before->next;
	before->next = second->next;
	if (second->parent->last == second)
		second->parent->last = before;
	second->parent->count--;
}

/* Whether a key of a small map stood before `node`. */
static struct node *same_before(const struct node *map, const struct node *node)
{
	struct node *at = map->first;

	while (at != node && !slice_eq(at->key, node->key))
		at = at->next;
	return at == node ? NULL : at;
}

/* Pairwise while that is cheap, else by sorting. False: memory. */
static bool check_keys(struct tree *tree, struct node *map)
{
	if (map->count <= 16) {
		for (struct node *at = map->first, *next; at != NULL; at = next) {
			struct node *first = same_before(map, at);
			next = at->next;
			if (first != NULL)
				given_twice(tree, first, at);
		}
		return true;
	}
	size_t count = map->count, n = 0;
	struct node **all = malloc(count * sizeof(struct node *));
	if (all == NULL)
		return false;
	for (struct node *child = map->first; child != NULL; child = child->next)
		all[n++] = child;
	qsort(all, n, sizeof(struct node *), by_key);
	for (size_t i = 1, first = 0; i < n; i++)
		if (!slice_eq(all[i]->key, all[first]->key))
			first = i;
		else if (!problems_full(tree->problems))
			given_twice(tree, all[first], all[i]);
	free(all);
	return true;
}

/* Where the build stands: the open container, and the child of a map that waits for its value. */
struct build {
	struct node *open, *keyed;
	uint32_t depth;
};

static bool open_value(struct tree *tree, const yaml_event_t *event, struct build *build,
		       struct arena *into)
{
	struct node *node = build->keyed;

	if (node == NULL) {
		node = arena_zero(into, sizeof(*node));
		if (node == NULL) {
			out_of_memory(tree);
			return false;
		}
		append(build->open, node);
	}
	build->keyed = NULL;
	if (!fill_node(tree, event, node, into)) {
		out_of_memory(tree);
		return false;
	}
	if (node->kind == NODE_SCALAR)
		return true;
	if (++build->depth > TREE_DEPTH_MAX)
		return refuse(tree, event, "is nested too deeply; no setting goes that deep");
	build->open = node;
	return true;
}

static bool build_step(struct tree *tree, const yaml_event_t *event, struct build *build,
		       struct arena *into)
{
	if (has_anchor_or_tag(event))
		return refuse(tree, event,
			      "anchors, aliases and tags are not supported; write the value out "
			      "(plans are the way to share settings)");
	if (event->type == YAML_SEQUENCE_END_EVENT || event->type == YAML_MAPPING_END_EVENT) {
		bool map = event->type == YAML_MAPPING_END_EVENT;
		if (map && !check_keys(tree, build->open)) {
			out_of_memory(tree);
			return false;
		}
		build->open = build->open->parent;
		build->depth--;
		return true;
	}
	if (build->open->kind == NODE_MAP && build->keyed == NULL) {
		build->keyed = read_key(tree, event, build->open, into);
		return build->keyed != NULL;
	}
	return open_value(tree, event, build, into);
}

/* The value that begins with `first`, appended to `parent`; consumes the events up to its end. */
static bool build_value(struct tree *tree, yaml_event_t *first, struct node *parent,
			struct arena *into)
{
	struct build build = { .open = parent };
	bool fine = build_step(tree, first, &build, into);

	drop_event(first);
	while (fine && build.depth > 0) {
		yaml_event_t event;
		if (!next_event(tree, &event))
			return false;
		fine = build_step(tree, &event, &build, into);
		drop_event(&event);
	}
	return fine;
}

/* ---- the outside ---- */

/* Some editors begin a file with a byte order mark. libyaml would take it for text, because it is told the
 * encoding. */
static struct slice without_mark(struct slice text)
{
	const struct slice mark = SLICE("\xef\xbb\xbf");

	return slice_starts(text, mark) ? slice_of(text.at + mark.len, text.len - mark.len) : text;
}

struct tree *tree_new(struct problems *problems, const char *file, struct slice text)
{
	struct tree *tree = calloc(1, sizeof(*tree));

	if (tree == NULL)
		return NULL;
	if (yaml_parser_initialize(&tree->parser) != 1) {
		free(tree);
		return NULL;
	}
	tree->problems = problems;
	tree->file = file;
	tree->text = without_mark(text);
	tree->root = (struct node){ .kind = NODE_LIST, .line = 1, .file = file };
	yaml_parser_set_encoding(&tree->parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&tree->parser, (const unsigned char *)tree->text.at,
				     tree->text.len);
	return tree;
}

void tree_free(struct tree **tree)
{
	if (*tree == NULL)
		return;
	yaml_parser_t *parser = &(*tree)->parser;
	if (parser->buffer.start != NULL)
		explicit_bzero(parser->buffer.start,
			       (size_t)(parser->buffer.end - parser->buffer.start));
	if (parser->raw_buffer.start != NULL)
		explicit_bzero(parser->raw_buffer.start,
			       (size_t)(parser->raw_buffer.end - parser->raw_buffer.start));
	yaml_parser_delete(parser);
	free(*tree);
	*tree = NULL;
}

/* The first event of the document's content. False after a problem; an empty file is one. */
static bool begin(struct tree *tree, yaml_event_t *event)
{
	if (!skip_event(tree, YAML_STREAM_START_EVENT) || !next_event(tree, event))
		return false;
	bool empty = event->type == YAML_STREAM_END_EVENT;
	drop_event(event);
	if (!empty)
		return next_event(tree, event);
	tree->failed = true;
	problem_in(tree->problems, tree->file, 1, "(file)",
		   "is empty; deploy/sluice.yaml.example shows what belongs here");
	return false;
}

const struct node *tree_document(struct tree *tree, struct arena *into)
{
	yaml_event_t event;

	tree->root.kind = NODE_SCALAR; /* the document is no entry of a list */
	if (!begin(tree, &event) || !build_value(tree, &event, &tree->root, into))
		return NULL;
	if (!skip_event(tree, YAML_DOCUMENT_END_EVENT) || !skip_event(tree, YAML_STREAM_END_EVENT))
		return NULL;
	tree->root.first->parent = NULL;
	return tree->root.first;
}

bool tree_list(struct tree *tree)
{
	yaml_event_t event;

	if (!begin(tree, &event))
		return false;
	bool list = event.type == YAML_SEQUENCE_START_EVENT;
	uint32_t line = line_of(event.start_mark);
	bool strange = has_anchor_or_tag(&event);
	drop_event(&event);
	if (list && !strange)
		return true;
	tree->failed = true;
	problem_in(tree->problems, tree->file, line, "(file)",
		   "is not a list of tenants; write \"- {id: ..., plan: ..., keys: [...]}\"");
	return false;
}

const struct node *tree_next(struct tree *tree, struct arena *into)
{
	yaml_event_t event;

	if (!next_event(tree, &event))
		return NULL;
	if (event.type == YAML_SEQUENCE_END_EVENT) {
		drop_event(&event);
		(void)(skip_event(tree, YAML_DOCUMENT_END_EVENT) &&
		       skip_event(tree, YAML_STREAM_END_EVENT));
		tree->failed = true; /* nothing more to read */
		return NULL;
	}
	/* the entry before may be gone; only its number stays */
	tree->root.first = tree->root.last = NULL;
	return build_value(tree, &event, &tree->root, into) ? tree->root.last : NULL;
}
