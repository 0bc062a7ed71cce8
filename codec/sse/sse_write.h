/* sse_write.h - one JSON message as one event of a stream (WHATWG HTML 9.2). */
#ifndef CODEC_SSE_SSE_WRITE_H
#define CODEC_SSE_SSE_WRITE_H

#include "codec/json/json_write.h"

/* Writes `event: message` and *json as its data, in one line: line ends between the tokens of what was
 * borrowed from elsewhere are left out. *json has come to its end (gather_done), its spans are borrowed
 * on. Failure is *event's. */
void sse_write_message(struct gather *event, const struct gather *json);

#endif
