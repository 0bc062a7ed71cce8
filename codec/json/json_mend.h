/* json_mend.h - makes strict JSON of what a provider sent; private to codec/.
 *
 * Providers' answers are paid for, and some break rules that their readers do not check: a name that comes twice in
 * an object, half a surrogate pair, a string that a token limit cut inside a character, a byte order mark. An answer
 * is read strictly first; one that fails is mended and read again. What callers send is never mended.
 *
 * The text keeps its length, so that places in it stay what they were:
 * - of members with the same name the last one stays, the others become spaces;
 * - a broken character inside a string becomes U+FFFD (as \ufffd), or one question mark for each byte that is not
 *   UTF-8; at the end of a string it is left out. */
#ifndef CODEC_JSON_JSON_MEND_H
#define CODEC_JSON_JSON_MEND_H

#include "codec/json/json_read.h"

enum { JSON_MEND_PLACES = 32 };

/* The repairs that a text needed. */
struct json_mend {
	uint32_t removed;                  /* members */
	uint32_t places[JSON_MEND_PLACES]; /* offsets of the first ones */
};

/* Whether reading the text again after json_mend may help. */
static inline bool json_mend_may_help(enum err fault)
{
	return fault == ERR_JSON || fault == ERR_DUPLICATE_KEY;
}

/* Mends `text`, in place. False: it is no JSON beyond that, or exceeds the limits; then the text may have changed all
 * the same. No reader may be under way on the work area. */
MUST_USE bool json_mend(char *text, size_t len, const struct json_limits *limits,
			struct json_work *work, struct json_mend *out);

/* Whether a member was removed between these offsets. Where more were removed than are known, the answer is yes. */
bool json_mend_within(const struct json_mend *mend, size_t from, size_t to);

/* The same JSON without white space between its tokens; `json` is valid. Absent: no memory. */
MUST_USE struct slice json_tight(struct slice json, struct arena *into);

#endif
