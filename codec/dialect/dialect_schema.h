/* dialect_schema.h - tool schemas as the providers take them (contract/providers.md 9); private to
 * codec/.
 *
 * anyOf, oneOf and allOf at a schema's root are folded into it, with what is nested in their branches, and not and enum
 * are left out: providers refuse the whole request for one such tool. What is accepted can only grow by that. The work
 * is linear in the schema. */
#ifndef CODEC_DIALECT_DIALECT_SCHEMA_H
#define CODEC_DIALECT_DIALECT_SCHEMA_H

#include "codec/base/arena.h"
#include "codec/json/json_read.h"
#include "codec/json/json_write.h"
#include "codec/mcp/sampling.h"

enum { SCHEMA_FOLD_BYTES_MAX = 512 * 1024 };

/* Writes `schema`, the validated text of an object, with its root folded; *folded tells whether it
 * was. `root`: enum schema_root, what sampling_read saw. `want_properties`: a root without "properties" gets an empty one. `work` gives a seed only.
 * Folding reads a schema several times, so a request has a budget for it: *budget, at first
 * SCHEMA_FOLD_BYTES_MAX, is lowered by the length of each schema that is folded. ERR_TOOL when it is
 * spent, ERR_BUSY when memory is exhausted. */
MUST_USE enum err schema_put_folded(struct gather *g, struct slice schema, uint8_t root,
				    bool want_properties, const struct json_work *work,
				    struct arena *into, size_t *budget, bool *folded);

/* What the root of a schema has (enum schema_root), as sampling_read sees it. */
uint8_t schema_root_of(struct slice schema);

#endif
