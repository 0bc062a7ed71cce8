/* cross_stream.h - an answer as an event stream of the caller's API, from the pieces that the core tells (stream_delta.h) and
 * the result in the end (contract/direct.md 2.3, 3.3).
 *
 *   cross_stream_init(&s, ...);
 *   for each piece: cross_stream_delta(&s, delta, &g);   // what can be sent now
 *   cross_stream_end(&s, result, relayed, &g);           // the rest, the stop reason, the end
 *
 * Messages has one block open at a time: pieces of a later one wait until the arguments of the call in front of it are a
 * whole JSON value. In Chat they may alternate. */
#ifndef CODEC_CROSS_CROSS_STREAM_H
#define CODEC_CROSS_CROSS_STREAM_H

#include "codec/cross/cross.h"
#include "codec/dialect/stream_delta.h"

/* Whether the JSON in a string is whole, as its pieces come. */
struct cross_whole {
	uint32_t depth;
	bool string, escape;
	bool whole;
};

struct cross_held;

/* A block of the provider's answer. */
struct cross_block {
	bool begun; /* something of it was told */
	bool is_call;
	bool closed;    /* Messages: nothing more of it is written */
	uint32_t index; /* in the caller's stream: of Messages' blocks, or of Chat's calls */
	struct cross_whole whole;            /* of a call */
	struct cross_held *held, *held_last; /* pieces that wait */
};

struct cross_stream {
	/* private: */
	enum api api;
	struct cross_names names;
	bool schema, usage_asked;
	bool begun;
	bool failed; /* no memory: what follows is not written */
	struct cross_block *blocks;
	uint32_t cap, count; /* count: behind the last one that was told */
	uint32_t open;       /* Messages: the block that is open; CROSS_NONE: none */
	uint32_t written;    /* Messages: blocks; Chat: calls */
	struct arena *into;
};
enum { CROSS_NONE = UINT32_MAX };

/* `names` is copied, what it refers to is borrowed. `usage_asked`: of Chat, by the caller. */
void cross_stream_init(struct cross_stream *s, enum api api, const struct cross_names *names,
		       bool schema, bool usage_asked, struct arena *into);

/* The next piece; events are written as soon as they can be. False: no memory; the stream has to end with an error. */
MUST_USE bool cross_stream_delta(struct cross_stream *s, const struct stream_delta *delta,
				 struct gather *g);

/* The answer is whole. `relayed`: the pieces were all of it; else none was told, and it is written now. False: no
 * memory. */
MUST_USE bool cross_stream_end(struct cross_stream *s, const struct sampling_result *result,
			       bool relayed, struct gather *g);

#endif
