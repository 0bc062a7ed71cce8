/* json_path.h - where in a JSON text a byte is, in words. */
#ifndef CODEC_JSON_JSON_PATH_H
#define CODEC_JSON_JSON_PATH_H

#include "codec/json/json_read.h"

enum { JSON_PATH_MAX = 512 };

/* The path of the value that was being read when a reader failed at `offset` of `text`, in the arena:
 * "$.params.messages[2].content", a key that is no plain word as ["it stands"]. Between two members that
 * is the object itself. Walks the text once more: for errors only. What would go beyond JSON_PATH_MAX
 * bytes is left out at the inner end. Absent when memory is exhausted. */
MUST_USE struct slice json_path(struct slice text, uint32_t offset, struct arena *into);

#endif
