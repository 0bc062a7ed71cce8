/* dialect_native.h - whether a schema can be native structured output (contract/providers.md 8.2);
 * private to codec/.
 *
 * A schema that cannot is no error: the caller forces the tool instead. The work is bounded: schemas
 * over 64 KiB, 16 levels or 4,096 subschemas do not fit. `work` gives a seed only. Both
 * functions set *out absent when the schema does not fit, and return false only when memory is
 * exhausted. */
#ifndef CODEC_DIALECT_DIALECT_NATIVE_H
#define CODEC_DIALECT_DIALECT_NATIVE_H

#include "codec/base/arena.h"
#include "codec/base/attr.h"
#include "codec/base/slice.h"
#include "codec/json/json_read.h"

/* Anthropic: no open objects, no recursion. What it does not know (bounds, patterns, most formats)
 * moves into the description as Anthropic's own SDK does it; *moved tells. *out is in `into`. */
MUST_USE bool native_anthropic(struct slice schema, const struct json_work *work,
			       struct arena *into, struct slice *out, bool *moved);

/* OpenAI: only what is strict as it stands, with references that stand alone and mean the root or a
 * definition there; *out is `schema` itself. */
MUST_USE bool native_openai(struct slice schema, const struct json_work *work, struct arena *into,
			    struct slice *out, bool *moved);

#endif
