/* api_preferences.h - the header Sluice-Preferences, by which a caller of the direct APIs that asks for the model `auto`
 * says what it prefers:
 *
 *   cost=0.7, speed=0.2, intelligence=0.1; hints="sonnet, gpt"
 *
 * Each member once, in any order, separated by a comma or a semicolon; none has to be there. Priorities are 0 to 1, with
 * at most API_PRIORITY_DIGITS digits behind the point. Hints are names or parts of names, the first one first; no name has
 * quotes, backslashes or anything but visible ASCII and spaces. Everything else is refused: what is misspelt would go
 * unnoticed, and cost money. Pure. */
#ifndef CODEC_API_API_PREFERENCES_H
#define CODEC_API_API_PREFERENCES_H

#include "codec/mcp/sampling.h"

enum { API_PRIORITY_DIGITS = 6, API_HINTS_MAX = 16, API_HINT_BYTES_MAX = 128 };

/* Reads the header's value. Hints lie in `into` and are parts of `text`; raw and plain text are the same for them. NULL: *out
 * is whole. Else what is wrong, static, and *busy: memory is. */
const char *api_preferences_read(struct slice text, struct arena *into,
				 struct model_preferences *out, bool *busy);

#endif
