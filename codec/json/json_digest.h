/* json_digest.h - a SHA-256 of what a JSON text means: it tells whether two requests ask for the same.
 *
 * Texts that differ in white space, in escapes, in the order of members, or in how a number is written have the same
 * digest: clients parse what they have and write it anew. Nobody can find two others that do. Loose as json_loose.h: what
 * is not JSON, and what is nested deeper than JSON_DIGEST_DEPTH, is only itself, byte by byte; so are the members of what
 * has more than JSON_DIGEST_ITEMS members and items in all, which would take long. No recursion. */
#ifndef CODEC_JSON_JSON_DIGEST_H
#define CODEC_JSON_JSON_DIGEST_H

#include "codec/base/sha256.h"
#include "codec/json/json_loose.h"

enum { JSON_DIGEST_DEPTH = 64, JSON_DIGEST_ITEMS = 64 << 10 };

/* `value` as cut off by json_loose.h, an object without its members of the `count` names in `without` (plain ASCII). What it
 * needs meanwhile lies in `into`. False: no memory. */
MUST_USE bool json_digest(struct slice value, const char *const *without, size_t count,
			  struct arena *into, uint8_t out[SHA256_BYTES]);

#endif
