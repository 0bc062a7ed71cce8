/* dialects.h - the provider formats by id and by name.
 *
 * Above the folders of the formats, so that none of them leads back to it. Thread-safe: constant rows. */
#ifndef CODEC_DIALECTS_H
#define CODEC_DIALECTS_H

#include "codec/dialect/dialect.h"

/* The static row of `id`, which is below DIALECT_COUNT; never NULL. */
const struct dialect *dialect_get(enum dialect_id id);
/* The same by name, as `providers.*.dialect` has it; NULL when there is none. */
const struct dialect *dialect_find(struct slice name);

/* Sets *profile to the defaults of a dialect. `version` is anthropic's, e.g. "2026-10-21"; others ignore it. */
void profile_defaults(struct profile *profile, enum dialect_id dialect, struct slice version);

#endif
