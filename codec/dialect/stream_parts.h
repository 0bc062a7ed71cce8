/* stream_parts.h - what the dialects' event decoders are made of; private to codec/.
 *
 * A dialect reads each event (struct stream_dialect), says which strings belong to which block
 * (stream_add), and whether the answer is at its end. The first failure is kept in s->answer and makes
 * the rest no-ops. */
#ifndef CODEC_DIALECT_STREAM_PARTS_H
#define CODEC_DIALECT_STREAM_PARTS_H

#include "codec/dialect/stream.h"

#include <stddef.h>

#define STREAM_MAGIC 0x5e57ea17u

#define STREAM_NO_BLOCK UINT32_MAX

/* One row per dialect (struct dialect). */
struct stream_dialect {
	/* Reads one event; `name` may be absent, `data` is not blank. Failures go into s->answer. */
	void (*event)(struct stream *s, struct slice name, struct slice data);
	/* An event is too large to be read, and this is the front of its data: whether nothing is in it but
	 * what goes back to the provider, which is lost then. NULL: that is never so. */
	bool (*front)(struct stream *s, struct slice data);
	/* The stream is over and did not fail: says what only the whole tells, before the blocks are
	 * added to s->answer, in order of appearance, calls behind everything else if `calls_last`. */
	void (*finish)(struct stream *s);
	/* Reads the usage object of an event that is known by its shape; never called when no event
	 * sets s->now.usage. */
	void (*usage)(struct answer *a, struct json_reader *r);
	bool calls_last;
	/* The answer is a result with all the calls of the stream, and s->answer.private: sets
	 * s->answer.replay (stream_private.c), or leaves it absent if it cannot be made. */
	void (*replay)(struct stream *s, const struct sampling_result *result);
	/* stream_feed_here (or, for a dialect that repeats itself, stream_feed_skimmed_here) and
	 * stream_end_here of the row's instruction set. */
	enum stream_state (*feed)(struct stream *s, struct slice bytes);
	enum err (*end)(struct stream *s, enum stream_ending ending, struct sampling_result *result,
			struct provider_failure *failure);
};

/* stream_feed and stream_end of the instruction set that this file is compiled for (set.h). */
enum stream_state stream_feed_here(struct stream *s, struct slice bytes);
enum stream_state stream_feed_skimmed_here(struct stream *s, struct slice bytes);
MUST_USE enum err stream_end_here(struct stream *s, enum stream_ending ending,
				  struct sampling_result *result, struct provider_failure *failure);

/* ---- what an event may say ---- */

/* If the reader of an event, or of a part of one, has failed, so has the stream: a JSON error is fatal
 * (section 10). */
void stream_check(struct stream *s, const struct json_reader *r);

/* The same for the first reader of an event, before anything of it was taken that may not be taken twice: the event
 * may be mended, and read once more. */
void stream_check_event(struct stream *s, const struct json_reader *r);

/* The event is an error, whatever else was in it: the stream fails with what the provider says. */
void stream_error(struct stream *s, struct slice data);

/* What came at once is more than a stream may hold, or has in it what was left out for that (stream.h).
 * `detail` is static. */
void stream_too_large(struct stream *s, const char *detail);

/* The terminal condition of section 10; may be called again (answer_stop_says_more). */
void stream_stop(struct stream *s, enum answer_stop stop);

/* Nothing more will follow. */
void stream_done(struct stream *s);

/* A member of an object that matters, and where in the struct that is read its slice is. */
struct stream_member {
	struct slice name;
	size_t offset;
	bool whole; /* its JSON text, whatever it is; else its raw string, if it is one */
};
#define STREAM_STRING(type, member, name)                              \
	{                                                              \
		SLICE_INIT(name), offsetof(struct type, member), false \
	}
#define STREAM_WHOLE(type, member, name)                              \
	{                                                             \
		SLICE_INIT(name), offsetof(struct type, member), true \
	}

/* Reads these members of `object`, a part of the event, which was validated with it, into the struct at
 * `into`; nothing where it is no object. */
void stream_read_members(struct stream *s, struct slice object, const struct stream_member *members,
			 size_t count, void *into);

/* Copies a raw string or JSON text of the event into the arena, unless *out says the same already. */
void stream_keep(struct stream *s, struct slice raw, struct slice *out);

/* The same for the arguments of a call, a JSON value of the event: without members that a later one replaces. */
void stream_keep_args(struct stream *s, struct slice value, struct slice *out);

/* ---- blocks ---- */

/* A new block at `index` of the stream, below STREAM_BLOCKS_MAX or it fails; deltas of that index are
 * its own from now on. Its place in s->blocks, or STREAM_NO_BLOCK after failing. */
uint32_t stream_block_new(struct stream *s, uint64_t index, enum stream_kind kind);

/* The place of the block that `index` means now; STREAM_NO_BLOCK when there is none. */
uint32_t stream_block_at(const struct stream *s, uint64_t index);

/* Adds the raw string, which lies in the event's data, to a block; STREAM_NO_BLOCK: it is only
 * counted. */
void stream_add(struct stream *s, uint32_t block, struct slice raw);

/* Whether a call's arguments have come as fragments that are not empty. */
static inline bool stream_has_arguments(const struct stream_block *call)
{
	return call->text.len > 1; /* the opening quote */
}

/* ---- texts (stream_text.c) ---- */

struct stream_piece {
	struct stream_piece *next;
	uint32_t room; /* all of it used, but in a text's last one */
	char bytes[];
};

enum {
	STREAM_TEXT_LEAST = 1024, /* bytes of memory that the first bytes of a text take */
	STREAM_HALF = 6,          /* bytes of an escaped half of a character: \ud83d */
};

/* Bytes at the end of a text, as they are. False: no memory, and the answer has failed. */
bool stream_text_put(struct stream *s, struct stream_text *text, struct slice bytes);

/* The other half of the character will not come: the one at the end is left out. */
void stream_text_drop_half(struct stream_text *text);

/* The whole of it; absent when it has no bytes or memory is exhausted. */
struct slice stream_text_whole(struct stream *s, struct stream_text *text);

/* Whether it is empty or means nothing but white space (text_blank). When memory is exhausted the answer has
 * failed. */
bool stream_text_blank(struct stream *s, struct stream_text *text);

/* Whether it, a quote and the front of a JSON string, means a whole object so far. Reads all of it. When memory
 * is exhausted the answer has failed. */
bool stream_text_means_object(struct stream *s, const struct stream_text *text);

/* Whether it ends with those bytes. */
bool stream_text_ends_with(const struct stream_text *text, struct slice bytes);

/* Adds it to s->answer as text blocks, a piece each. */
void stream_text_blocks(struct stream *s, struct stream_text *text);

/* Writes it as it is. */
void stream_text_write(struct gather *g, const struct stream_text *text);

/* ---- what goes back to the provider (stream_private.c; replay.h) ---- */

/* Whether it may be wanted: tools were offered, so that there may be calls. */
static inline bool stream_keeps(const struct stream *s)
{
	const struct decode_context *context = s->answer.context;

	return !context->calls_forbidden && !context->passed;
}

/* STREAM_PRIVATE if it may be wanted, else STREAM_IGNORED. */
static inline enum stream_kind stream_private_kind(const struct stream *s)
{
	return stream_keeps(s) ? STREAM_PRIVATE : STREAM_IGNORED;
}

/* What goes with the block; NULL when memory is exhausted or there is too much of it all. */
struct stream_extra *stream_extra_of(struct stream *s, uint32_t block);

/* Copies a JSON text or raw string of the event into the arena: *out stays absent if there is no room. */
void stream_private_copy(struct stream *s, struct slice raw, struct slice *out);

/* Room in the arena, and as good as taken what will be taken `later`; NULL likewise. */
void *stream_private_take(struct stream *s, size_t len, size_t later);

/* Adds a raw string to a text that goes back. False: no memory, and the answer has failed. */
bool stream_private_add(struct stream *s, struct stream_text *text, struct slice raw);

/* ---- reasoning_details (stream_details.c) ---- */

/* The next item of the list, an object of the event, which was validated with it. */
void stream_details_take(struct stream *s, struct slice object);

/* Whether a text of them ends in half a character. */
bool stream_details_have_half(const struct stream *s);

/* All of them as one list; absent when there are none. */
struct slice stream_details_whole(struct stream *s);

/* ---- the end of all that goes back ---- */

/* Of an answer that has something private and is a result: sets result->replay, if there are calls. */
void stream_private_end(struct stream *s, struct sampling_result *result);

/* At the end, for the dialect's .replay: the list is written, and becomes s->answer.replay. */
void stream_private_done(struct stream *s, struct gather *g);

/* ---- halves of surrogate pairs (stream_half.c) ----
 *
 * A provider that escapes everything may cut between the halves of a pair: a lone one at the edge of a
 * string is JSON's business no longer. They are masked before the event is read and put back into what
 * is kept of it, where the other half has to follow. */

/* The event's data with such halves masked: itself when there are none, else the stream's copy. */
struct slice stream_halves_mask(struct stream *s, struct sse_event *event);

/* Puts back those at the edges of `raw`; whether there was one at its front and at its back. */
void stream_halves_take(struct stream *s, struct slice raw, bool *front, bool *back);

/* Those inside `raw` become U+FFFD: nothing will follow them. */
void stream_halves_replace(struct stream *s, struct slice raw);

/* Whether any is inside `raw`. */
bool stream_halves_inside(const struct stream *s, struct slice raw);

/* ---- shapes (stream_shape.c) ---- */

/* Remembers the event that was read just now, when the next one may be like it; `written`: sse_written.
 */
void stream_shape_learn(struct stream *s, struct slice written);

/* Whether `data` is of the remembered shape; then *fragment is its string. Its usage has been read then,
 * and may have been otherwise: who reads the event reads it again. */
bool stream_shape_match(struct stream *s, struct slice data, struct slice *fragment);

/* Whether an event of the remembered shape is written in front of `ahead`; then *fragment is its string.
 * The bytes that it takes, or 0. */
size_t stream_shape_ahead(struct stream *s, struct slice ahead, struct slice *fragment);

#endif
