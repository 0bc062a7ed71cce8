/* json_escape.h - JSON in a string: the way in and the way out (`function.arguments`); private to
 * codec/.
 *
 * Both ways look at 64 bytes at a time for what has to change and copy the rest as it is. */
#ifndef CODEC_JSON_ESCAPE_H
#define CODEC_JSON_ESCAPE_H

#include "codec/base/arena.h"

/* The meaning of a raw string (json_read.h), which must be valid: `raw` itself when it holds no escape,
 * else a copy in `into` (absent when memory is exhausted). The meaning is not looked at: where it has to
 * be JSON, the caller has it read. */
MUST_USE struct slice json_unescape(struct slice raw, struct arena *into);

/* The way in is gather_json_escaped (json_write.h). */

#endif
