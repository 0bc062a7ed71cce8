/* api_event.h - what becomes of one event of a provider's stream; private to codec/api. */
#ifndef CODEC_API_API_EVENT_H
#define CODEC_API_API_EVENT_H

#include "codec/api/api_stream.h"

enum api_event {
	API_EVENT_PASS, /* with the edits in s->edits, which are of event->raw */
	API_EVENT_DROP,
	API_EVENT_LAST,
	API_EVENT_ERROR,
	API_EVENT_BROKEN, /* it would be the last one, but nothing said why */
};

/* Looks at a whole event; adds edits to s->edits, begun with event->raw and empty: MCP_EDITS_FEW at most. */
enum api_event api_event_read(struct api_stream *s, const struct sse_cut_piece *event);

#endif
