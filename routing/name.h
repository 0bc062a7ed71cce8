/* name.h - which models a name means where it asks for one model, not for one
 * like it (contract/direct.md 5).
 *
 * First whoever has exactly that id, then whoever has exactly that name at its
 * provider or as an alias. Then the tenant's table of equivalent models
 * (hint_alias.h), whose globs are compared with all of the name. Then all of
 * these again, ASCII case ignored and without what clients and hosts put around
 * a name: "anthropic/", "openai/", "models/", "us.anthropic.", "-v1:0",
 * "@20250929", "-20250929", "-latest", "[1m]". A name without a date is any
 * date's, two dates are two models. Last the aliases that are globs: that with
 * the longest text in front of its first wildcard, of several the longest one;
 * models that have the same share it. No part of a name is enough, and nothing
 * stands for a name that nobody has: a slip of the pen must not buy the dearest
 * model. Pure.
 */
#ifndef ROUTING_NAME_H
#define ROUTING_NAME_H

#include "codec/base/bitset.h"
#include "codec/mcp/hint_alias.h"
#include "routing/catalog.h"

enum { NAME_BYTES_MAX = 256 };

/* Whether it is the name that leaves the choice to routing, in any case: it is
 * no model's. */
bool name_is_auto(struct slice name);

/* Whether a name in the catalogue or in a tenant's table stands for several. */
bool name_is_glob(struct slice name);

/* Sets *out to the models that are meant, whether or not they are permitted or
 * enabled; empty: nobody is. `name`: plain text; one of more than
 * NAME_BYTES_MAX bytes, and `auto`, mean nobody. */
void name_match(const struct catalog *catalog, const struct hint_alias *aliases,
		uint32_t alias_count, struct slice name, struct bitset *out);

/* The first row of the tenant's table that fits a name in lower case; `count`:
 * none does. */
uint32_t name_equivalent(const struct hint_alias *aliases, uint32_t count, struct slice lower);

/* What is left of a name without what is put around it, and its date (digits;
 * absent: none); both are parts of it. */
struct slice name_core(struct slice name, struct slice *date);

#endif
