#include "codec/dialect/stop_search.h"

#include "codec/base/must.h"

#include <stdlib.h>

struct stop_node {
	uint32_t from, to; /* the stops that begin with its text; of no use once it was expanded */
	uint32_t depth;    /* bytes of that text */
	uint32_t match;    /* bytes of the longest stop that it ends with; 0: none */
	uint32_t fail;     /* its longest suffix that is a node, too */
	uint32_t child, children; /* the first of so many */
};

static int compare(const void *a, const void *b)
{
	return slice_order(*(const struct slice *)a, *(const struct slice *)b);
}

/* Which child of `node` that byte leads to; 0, the root, when none. */
static inline uint32_t child_of(const struct stop_search *search, uint32_t node, unsigned char byte)
{
	const struct stop_node *of = &search->nodes[node];
	const unsigned char *bytes = search->bytes + of->child;

	if (of->children < 2)
		return of->children != 0 && *bytes == byte ? of->child : 0;
	const unsigned char *found = memchr(bytes, byte, of->children);
	return found == NULL ? 0 : of->child + (uint32_t)(found - bytes);
}

/* The node of the longest suffix, after one more byte. */
static uint32_t step(const struct stop_search *search, uint32_t node, unsigned char byte)
{
	uint32_t next = child_of(search, node, byte);

	while (next == 0 && node != 0) {
		node = search->nodes[node].fail;
		next = child_of(search, node, byte);
	}
	return next;
}

static void add_child(struct stop_search *search, uint32_t parent, unsigned char byte,
		      uint32_t from, uint32_t to)
{
	const struct stop_node *of = &search->nodes[parent];

	search->bytes[search->count] = byte;
	search->nodes[search->count++] = (struct stop_node){
		.from = from,
		.to = to,
		.depth = of->depth + 1,
		.fail = parent == 0 ? 0 : step(search, of->fail, byte),
	};
}

/* All nodes of lesser depth are expanded already, so that `fail` leads to what is complete. */
static void expand(struct stop_search *search, const struct slice *stops, uint32_t n)
{
	struct stop_node *node = &search->nodes[n];
	uint32_t at = node->from;

	node->match = search->nodes[node->fail].match;
	for (; at < node->to && stops[at].len == node->depth; at++)
		node->match = node->depth;
	node->child = search->count;
	while (at < node->to) {
		const unsigned char byte = (unsigned char)stops[at].at[node->depth];
		const uint32_t from = at;
		while (at < node->to && (unsigned char)stops[at].at[node->depth] == byte)
			at++;
		add_child(search, n, byte, from, at);
		node->children++;
	}
}

bool stop_search_init(struct stop_search *search, struct slice *stops, uint32_t count,
		      struct arena *into)
{
	size_t most = 1;

	*search = (struct stop_search){ .nodes = NULL };
	for (uint32_t i = 0; i < count; i++)
		most += stops[i].len;
	must(most < UINT32_MAX);
	search->nodes = arena_take(into, most * sizeof(*search->nodes));
	search->bytes = arena_take(into, most);
	if (search->nodes == NULL || search->bytes == NULL)
		return false;
	if (count != 0)
		qsort(stops, count, sizeof(*stops), compare);
	search->nodes[0] = (struct stop_node){ .to = count };
	search->count = 1;
	for (uint32_t n = 0; n < search->count; n++)
		expand(search, stops, n);
	const struct stop_node *root = search->nodes;
	for (uint32_t i = 0; i < root->children; i++)
		search->first[search->bytes[root->child + i]] = true;
	return true;
}

size_t stop_search_find(const struct stop_search *search, struct slice text)
{
	size_t first = SIZE_MAX;
	uint32_t node = 0;

	for (size_t i = 0; i < text.len; i++) {
		const unsigned char byte = (unsigned char)text.at[i];
		if (node == 0 && !search->first[byte])
			continue;
		node = step(search, node, byte);
		const struct stop_node *at = &search->nodes[node];
		if (at->match != 0 && i + 1 - at->match < first)
			first = i + 1 - at->match;
		/* what is still being matched begins behind it */
		if (first != SIZE_MAX && i + 1 - at->depth >= first)
			break;
	}
	return first;
}
