/* name.h - which models a name means where it asks for one model, not for one
 * like it (contract/direct.md 5).
 *
 * First whoever has exactly that name: id, name at the provider, or alias. Then
 * the tenant's table of equivalent models (hint_alias.h), whose globs are
 * compared with all of the name. Then both again, ASCII case ignored and
 * without what clients and hosts put around a name: "anthropic/", "openai/",
 * "models/", "us.anthropic.", "-v1:0", "@20250929",
 * "-20250929", "-latest", "[1m]". A name without a date is any date's, two
 * dates are two models. No part of a name is enough, and nothing stands for a
 * name that nobody has: a slip of the pen must not buy the dearest model. Pure.
 */
#ifndef ROUTING_NAME_H
#define ROUTING_NAME_H

#include "codec/base/bitset.h"
#include "codec/mcp/hint_alias.h"
#include "routing/catalog.h"

enum { NAME_BYTES_MAX = 256 };

/* Sets *out to the models that are meant, whether or not they are permitted or
 * enabled; empty: nobody is. `name`: plain text; one of more than
 * NAME_BYTES_MAX bytes means nobody. */
void name_match(const struct catalog *catalog, const struct hint_alias *aliases,
		uint32_t alias_count, struct slice name, struct bitset *out);

/* What is left of a name without what is put around it, and its date (digits;
 * absent: none); both are parts of it. */
struct slice name_core(struct slice name, struct slice *date);

#endif
