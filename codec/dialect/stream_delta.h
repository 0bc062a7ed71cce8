/* stream_delta.h - a provider's answer piece by piece while it streams in (stream.h), for whoever passes it on at once.
 *
 * The pieces of a block come in order; those of another block may come in between. They are what the provider has sent:
 * what decode() changes of an answer in the end is not in them (stream_deltas_are_whole). */
#ifndef CODEC_DIALECT_STREAM_DELTA_H
#define CODEC_DIALECT_STREAM_DELTA_H

#include "codec/dialect/stream.h"

enum stream_delta_kind {
	STREAM_DELTA_TEXT,  /* .text: the next piece of a text */
	STREAM_DELTA_CALL,  /* a tool call begins: .id, .name; before anything else of it */
	STREAM_DELTA_ARGS,  /* .text: the next piece of its arguments, JSON in a string */
	STREAM_DELTA_VALUE, /* .text: all of them, a JSON value; instead of ARGS */
};

struct stream_delta {
	enum stream_delta_kind kind;
	uint32_t block; /* of the answer, from 0, in order of appearance; some may be left out */
	struct slice
		text; /* but for VALUE a raw string: escaped, no quotes, whole characters; never empty */
	struct slice id, name; /* raw; the id is absent where the provider has sent none */
};

struct stream_told;

/* How far a stream was told. Zero-initialised is its beginning. */
struct stream_cursor {
	struct stream_told *blocks; /* private, of `cap`, in the arena */
	uint32_t cap, next;
	bool ended;  /* set by the owner: no bytes come any more; some pieces are only told then */
	bool failed; /* there was no memory: what follows is not told */
};

/* Whether what streams is what decode() will say of the same answer, but for blocks that are blank: nothing is to be
 * taken out of it or renamed in it. */
bool stream_deltas_are_whole(const struct decode_context *context);

/* The next piece of what has come so far. False: there is none now, or cursor->failed. Its slices live as long as the
 * stream's answer. `into` is the arena that the stream was opened with. */
MUST_USE bool stream_next_delta(const struct stream *s, struct stream_cursor *cursor,
				struct arena *into, struct stream_delta *out);

#endif
