/* name_list.h - the names by which one may ask for a model, for lists of them (contract/direct.md 3.6).
 *
 * Ids of models, their aliases, and the rows of the tenant's table that are no globs: each that name_match (name.h) leads
 * to a model that may be had, each once. Names at providers and globs are taken, but not listed. Pure. */
#ifndef ROUTING_NAME_LIST_H
#define ROUTING_NAME_LIST_H

#include "codec/base/arena.h"
#include "routing/name.h"

struct name_entry {
	struct slice name;                /* of the catalogue or the table */
	uint64_t context_max, output_max; /* tokens; the least of the models that are meant */
};

/* Models that may be had: permitted and enabled. */
void name_available(const struct catalog *catalog, const struct bitset *permitted,
		    struct bitset *out);

/* The list: ids in the catalogue's order, then aliases, then the table's names. `models`: that may be had. *out lies in
 * `into`. False: no memory. */
MUST_USE bool name_list(const struct catalog *catalog, const struct hint_alias *aliases,
			uint32_t alias_count, const struct bitset *models, struct arena *into,
			struct name_entry **out, size_t *count);

/* What one name stands for, its own or one that only name_match knows. False: for no model that may be had. */
MUST_USE bool name_find(const struct catalog *catalog, const struct hint_alias *aliases,
			uint32_t alias_count, const struct bitset *models, struct slice name,
			struct name_entry *out);

#endif
