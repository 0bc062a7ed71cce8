/* json_escape.h - JSON in a string: the way in and the way out (`function.arguments`); private to
 * codec/.
 *
 * Both ways look at 64 bytes at a time for what has to change, plain C on the way out at eight, and copy the rest
 * as it is. */
#ifndef CODEC_JSON_JSON_ESCAPE_H
#define CODEC_JSON_JSON_ESCAPE_H

#include "codec/base/arena.h"
#include "codec/json/json_read.h"

/* The meaning of a raw string (json_read.h), which must be valid: `raw` itself when it holds no escape,
 * else a copy in `into` (absent when memory is exhausted). The meaning is not looked at: where it has to
 * be JSON, the caller has it read. */
MUST_USE struct slice json_unescape(struct slice raw, struct arena *into);

/* Consumes the string at the reader's place, whose quote is known to be there, and unescapes it in the same
 * walk: *out as by json_unescape, but what holds no escape may be a copy, too. False after failing. */
MUST_USE bool json_take_unescaped(struct json_reader *r, struct arena *into, struct slice *out);

/* The way in is gather_json_escaped (json_write.h). */

#endif
