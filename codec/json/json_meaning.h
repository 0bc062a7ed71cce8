/* json_meaning.h - a digest of what a JSON text means; private to codec/.
 *
 * Texts that differ in white space, in escapes, in the order of members, or in how a number is written
 * have the same digest: clients parse what they are given and write it anew. 64 bits: enough against
 * accidents, and no more than that. */
#ifndef CODEC_JSON_JSON_MEANING_H
#define CODEC_JSON_JSON_MEANING_H

#include "codec/base/arena.h"
#include "codec/base/attr.h"
#include "codec/base/slice.h"

/* `json` was validated before. False: no memory for a string with escapes. */
MUST_USE bool json_meaning(struct slice json, struct arena *into, uint64_t *out);

/* The same for a raw string. */
MUST_USE bool json_meaning_of_string(struct slice raw, struct arena *into, uint64_t *out);

/* A digest of both, in this order. */
uint64_t json_meaning_join(uint64_t first, uint64_t second);

#endif
