/* hint.h - which models a hint means, by their names; and a small memory of that.
 *
 * What a hint means depends on the catalogue alone, not on who asks, so that what was found for one
 * tenant is right for all: another one can only push it out of the memory, which costs the time of
 * finding it again. */
#ifndef ROUTING_HINT_H
#define ROUTING_HINT_H

#include "codec/base/bitset.h"
#include "routing/catalog.h"

enum { HINT_MEMORY = 64, HINT_MEMORY_BYTES = 64 };

/* Models that it names exactly (id, name or alias; ASCII case ignored), and those in whose names it
 * occurs without being one. */
struct hint_models {
	struct bitset exact, part;
};

/* The last few hints. Of one catalogue; zero-initialised: none. */
struct hint_memory {
	struct hint_known {
		size_t len; /* 0: nothing here */
		char text[HINT_MEMORY_BYTES];
		struct hint_models models;
	} known[HINT_MEMORY];
};

/* `hint` is plain text, not empty. */
void hint_match(const struct catalog *catalog, struct slice hint, struct hint_models *out);

/* The same from the memory, where it stays until another one takes its place; hints longer than
 * HINT_MEMORY_BYTES, and all with `memory` NULL, are matched into *scratch. */
const struct hint_models *hint_recall(struct hint_memory *memory, const struct catalog *catalog,
				      struct slice hint, struct hint_models *scratch);

#endif
