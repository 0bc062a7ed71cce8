/* dialect_words.h - words of providers, which each host spells in its own way; private to codec/. */
#ifndef CODEC_DIALECT_DIALECT_WORDS_H
#define CODEC_DIALECT_DIALECT_WORDS_H

#include "codec/base/slice.h"

/* Whether a raw string is `word`, whatever its case and whatever is between its parts: `word` is in lower case
 * letters and digits alone, and so "contentfilter" is "content_filter", "ContentFilter" and "content-filter". */
bool words_same(struct slice raw, struct slice word);

/* The next piece of a raw string that stands outside quotes, *rest becomes what is behind it. A provider's text may
 * quote the request, which says whatever its caller wants; what is quoted is none of the provider's words. Quotes
 * are ", ' and `; one that is not closed quotes the rest. False: there is no more. */
bool words_next_unquoted(struct slice *rest, struct slice *piece);

/* Whether `phrase`, in whatever case, stands in `raw` outside quotes. */
bool words_say(struct slice raw, struct slice phrase);

#endif
