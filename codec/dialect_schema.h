/* dialect_schema.h - tool schemas as the providers take them (contract/providers.md 9); private to
 * codec/.
 *
 * anyOf, oneOf and allOf at a schema's root are folded into it: providers refuse the whole request
 * for one such tool. What is accepted can only grow by that. The work is linear in the schema. */
#ifndef CODEC_DIALECT_SCHEMA_H
#define CODEC_DIALECT_SCHEMA_H

#include "codec/base/arena.h"
#include "codec/json_read.h"
#include "codec/json_write.h"

/* Writes `schema`, the validated text of an object, with its root folded; *folded tells whether it
 * was. `want_properties`: a root without "properties" gets an empty one. `work` gives a seed only.
 * False when memory is exhausted. */
MUST_USE bool schema_put_folded(struct gather *g, struct slice schema, bool want_properties,
				const struct json_work *work, struct arena *into, bool *folded);

#endif
