/* stop_search.h - the first of many stop sequences in a text, in one pass over it.
 *
 * For sequences that a provider is not given (DESIGN 5, contract/providers.md 8.1 "stopSequences"): its whole
 * answer is searched, so the time must not grow with their number. An automaton of Aho and Corasick: a tree of
 * the sequences whose nodes know their longest other suffix in it. It takes some 30 bytes of the arena for
 * each byte of the sequences; sampling_limits bounds those. */
#ifndef CODEC_DIALECT_STOP_SEARCH_H
#define CODEC_DIALECT_STOP_SEARCH_H

#include "codec/base/arena.h"
#include "codec/base/err.h"

struct stop_node;

struct stop_search {
	struct stop_node
		*nodes; /* the root first, then by depth; what one node leads to lies together */
	unsigned char *bytes; /* of each node, the last of its text */
	uint32_t count;
	bool first[256]; /* bytes that some sequence begins with */
};

/* `stops` are `count` plain texts, which are sorted in place and need not live on; empty ones match nothing.
 * False when memory is exhausted. */
MUST_USE bool stop_search_init(struct stop_search *search, struct slice *stops, uint32_t count,
			       struct arena *into);

/* Where the match that begins first begins in `text`; SIZE_MAX when there is none. */
size_t stop_search_find(const struct stop_search *search, struct slice text);

#endif
