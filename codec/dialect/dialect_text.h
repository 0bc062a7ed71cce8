/* dialect_text.h - raw JSON strings looked at without unescaping them as a whole; private to codec/.
 *
 * White space is what the providers' own checks count as such: Unicode's, and the ASCII separators
 * 0x1c to 0x1f. */
#ifndef CODEC_DIALECT_DIALECT_TEXT_H
#define CODEC_DIALECT_DIALECT_TEXT_H

#include "codec/base/arena.h"
#include "codec/base/attr.h"
#include "codec/base/slice.h"

/* Whether the raw string is empty or means nothing but white space. */
bool text_blank(struct slice raw);

/* Whether a raw string that begins with that byte may be so. */
static inline bool text_may_be_blank(char first)
{
	return (signed char)first <= ' ' || first == '\\';
}

/* The front of `raw` up to its last character that is not white space. */
struct slice text_trim_end(struct slice raw);

/* The bytes of `raw` that mean the first `plain_len` bytes of its meaning; the offset must lie
 * between two characters. */
size_t text_raw_len(struct slice raw, size_t plain_len);

/* Plain text without the JSON white space (space, tab, line ends) around it. */
struct slice text_trim_json(struct slice plain);

/* Whether two valid JSON texts differ in nothing but white space between tokens. Order counts. */
bool text_json_same(struct slice a, struct slice b);

/* Raw strings joined; absent when memory is exhausted. */
MUST_USE struct slice text_join(struct arena *into, struct slice a, struct slice b);

/* Plain text as a raw string: itself unless something in it has to be escaped; absent when memory is
 * exhausted. */
MUST_USE struct slice text_raw_of(struct slice plain, struct arena *into);

#endif
