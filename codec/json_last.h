/* json_last.h - objects in which a key is there twice, as most parsers read them; private to codec/.
 *
 * Models write such arguments. Our own readers refuse them, and so they would refuse them when they came back
 * in a history: what is handed over has each key once. */
#ifndef CODEC_JSON_LAST_H
#define CODEC_JSON_LAST_H

#include "codec/json_read.h"

/* A copy of `text`, which is not empty, in `into` in which of the members of an object that have
 * the same key only the last one is left, at any depth. Linear in the text. Absent when it is not JSON within
 * the limits, of which keys_max is for the keys of all objects that are open at a time, each as often as it is
 * there; or when memory is exhausted: then *starved is set. */
MUST_USE struct slice json_last(struct slice text, const struct json_limits *limits,
				struct json_work *work, struct arena *into, bool *starved);

#endif
