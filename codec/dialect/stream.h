/* stream.h - a provider's answer read while it streams in (contract/providers.md 2, 3, 8 and 10).
 *
 * Bytes go in as they come off the connection, cut anywhere; what comes out is what the dialect's
 * decode() makes of a whole body: a result or a classified failure, once, at the end. Nothing of a
 * stream that fails is handed over (section 7). In between there is only what a caller may be told:
 * how many bytes the model has produced, and whether it has begun.
 *
 *   stream_open(&s, ...);                          // the answer's head: 2xx and text/event-stream
 *   while (bytes come && stream_feed(&s, bytes) == STREAM_OPEN) ... // progress: s.progress
 *   err = stream_end(&s, STREAM_ENDED, &result, &failure);
 *
 * Memory: an event that reads cut in two is kept in the stream's own buffer (STREAM_EVENT_ROOM), a larger one,
 * up to limits.event_bytes_max, in one from the arena's pool that doubles as it grows and goes back with the
 * event's end. One that is larger still is a failure, unless it is nothing but thinking or the like, which is
 * lost then; where a format repeats whole answers in an event, what nobody reads of it is left out first
 * (stream_skim.h).
 * What the answer needs is taken from the arena in pieces: its text is copied there once, and once more in
 * the end only if it fills more than one piece: at most twice limits.answer_bytes_max, and 6 KiB a block
 * (short ones 1 KiB); what decode() would take for an answer of that size comes on top. Where tools were
 * offered, what the provider may want back (replay.h) is kept likewise, up to REPLAY_CONTENT_MAX. An event
 * costs no allocation unless a piece is full.
 *
 * One thread. A stream has two parts, so that what thousands of them touch lies close together: itself, and
 * a large room of which most is never touched. Both come from a stream_slab; neither may be moved, and
 * there is nothing else to give back.
 *
 * What the gateway has to do around it:
 * - encode with `stream` set, unless audio is asked for, whose pieces do not join;
 * - answers that are not 2xx, or whose Content-Type is not text/event-stream (hosts that ignore
 *   `stream`), are collected; a whole body that is an event stream all the same is fed at once, any
 *   other goes to decode();
 * - the idle timeout begins anew with every byte, comments and pings too; no total timeout but the
 *   request's deadline;
 * - stream_held counts against what answers may take together, as the bytes of a whole answer do;
 * - too_large: a second attempt is made without `stream`;
 * - progress is not an answer: after it a failure may still be retried, which is paid for twice;
 * - STREAM_DONE: the rest of the body is read and dropped, if it ends soon the connection is reused;
 *   STREAM_FAILED: the connection is closed. Both: stream_end says what it was;
 * - an aborted stream (deadline, caller gone) needs no call at all; s.answer.usage has the counters so
 *   far, which a provider may bill; they are those of the whole answer if s.complete. */
#ifndef CODEC_DIALECT_STREAM_H
#define CODEC_DIALECT_STREAM_H

#include "codec/base/prefetch.h"
#include "codec/base/slab.h"
#include "codec/dialect/dialect_answer.h"
#include "codec/dialect/stream_skim.h"
#include "codec/sse/sse.h"

enum {
	STREAM_EVENT_ROOM = SSE_EVENT_ROOM,
	STREAM_BLOCKS_MAX = 1024, /* blocks of an answer, and their indexes in the stream */
	STREAM_BLOCKS_FIRST = 2,  /* of these are in the stream itself */
	STREAM_SHAPE_MAX = 1024,  /* bytes of an event beside what differs from the next one */
	STREAM_CHOICES = 8,       /* of an answer that are told apart */
	STREAM_HALVES_MAX = 32, /* halves of surrogate pairs at the edges of one event's strings */
};

/* What bounds a stream's memory beside its buffer. */
struct stream_limits {
	size_t answer_bytes_max; /* of text, arguments, ids and names, as they are escaped */
	size_t event_bytes_max; /* of an event with its longest line; at least STREAM_EVENT_ROOM are taken */
};

/* What may be told while the answer is on its way. */
struct stream_progress {
	uint64_t output_bytes; /* what the model has said, thinking and arguments too; only rises */
	uint32_t deltas;       /* events that brought some of it */
	bool begun;            /* output_bytes is over 0: the first token was seen */
	bool event_seen;       /* an event has come, whatever it said */
	bool thinks;           /* a block of thinking has begun, which may show less than it has */
};

enum stream_state {
	STREAM_OPEN,   /* more is to come */
	STREAM_DONE,   /* the provider said that this was all; what follows is not read */
	STREAM_FAILED, /* no answer will come of it */
};

/* How the bytes came to their end. */
enum stream_ending {
	STREAM_ENDED, /* the body was complete */
	STREAM_BROKE, /* the connection was closed or failed inside it */
};

struct stream_piece;

/* private: a raw string that arrives in fragments. Every piece but the last is full. */
struct stream_text {
	struct stream_piece *first, *last;
	char *end;     /* in the last piece */
	uint32_t room; /* behind it */
	bool half;     /* its end is the first half of a surrogate pair */
	size_t len;
};

/* private: what goes back to the provider with a block, beside its text. */
struct stream_extra {
	struct slice json; /* an object, the dialect's; absent: none */
	struct slice id;   /* of the block itself: raw */
	struct stream_text signature;
};

/* private: what a block of the answer is. */
enum stream_kind {
	STREAM_TEXT,
	STREAM_CALL,
	STREAM_AUDIO,
	STREAM_REFUSAL,
	STREAM_PRIVATE, /* thinking and the like: kept for the provider, as long as there is room */
	STREAM_IGNORED, /* the same where nobody will ask for it: counted only */
};

struct stream_block {
	struct stream_text text; /* CALL: arguments, as a JSON string with its quotes */
	enum stream_kind kind;
	bool name_repeats;          /* CALL: it came again before the arguments were whole */
	struct slice id, name;      /* CALL: raw */
	struct slice args;          /* CALL: JSON value, when they came as one; else absent */
	struct stream_extra *extra; /* NULL: nothing */
};

/* private: the last event, if all that it did was to add one string to one block: the next one mostly
 * differs from it in nothing but that string and one part behind it, and need not be read as JSON, nor
 * split into lines. */
struct stream_shape {
	uint32_t block;
	/* Bytes of each part, one behind the other in shape_bytes: in front of the data, in front of the
	 * string, behind it, behind the other part, behind the data. */
	uint32_t lead, front, middle, back, tail;
	enum stream_part {
		STREAM_PART_NONE,
		STREAM_PART_PADDING, /* a string that means nothing */
		STREAM_PART_USAGE,   /* running totals, an object */
	} part;
	bool set;
	bool written; /* lead and tail are there */
};

/* private: the event that is being read. */
struct stream_now {
	struct slice data;
	struct slice fragment;       /* the last one added */
	struct slice padding, usage; /* the last of either in the data; or absent */
	uint32_t block, fragments;
	const struct json_mend *mended; /* the data were mended; NULL: they are as they came */
	uint32_t choice;                /* openai's: whose delta is being read */
	bool unreadable;                /* they are no strict JSON: nothing of them was taken */
	bool fixed; /* did something that would not be the same if it was done again */
};

/* private: half a surrogate pair at the edge of a string, masked so that the event is JSON. */
struct stream_half {
	char *at; /* its backslash */
	char digits[4];
	bool low;
};

/* What is seldom touched. */
struct stream_room {
	/* private: */
	struct arena large; /* the buffer of an event that does not fit `buffer` */
	uint16_t at_index[STREAM_BLOCKS_MAX]; /* index in the stream -> 1 + place in blocks */
	struct stream_half halves[STREAM_HALVES_MAX];
	struct json_mend mend; /* of the event that is being read */
	char buffer[STREAM_EVENT_ROOM];
};

/* What an event touches comes first, so that one of many streams has it in few lines of the cache: the
 * first, the reader's, and the first block. */
struct stream {
	uint32_t magic;
	/* private: */
	enum stream_state state;
	const struct dialect *dialect;
	struct stream_progress progress; /* not private: read it whenever you like */
	size_t left;                     /* of the limits' answer_bytes_max */
	struct stream_block *blocks;     /* in order of appearance */
	struct stream_room *room;        /* the owner sets it before stream_open */
	uint32_t half_count;
	struct sse sse; /* begins the second line */
	uint32_t block_count, block_cap;
	uint32_t index_count; /* of at_index; those behind were never said */
	/* Likewise not private: it failed for want of a call or text that no event had, or that was left out of
	 * a larger one. Asked for in one piece the answer may pass. */
	bool too_large;
	bool complete; /* the terminal condition was seen: its counters are those of the whole answer */
	bool started;      /* message_start was */
	bool private_lost; /* not all of it could be kept */
	struct stream_block first_blocks[STREAM_BLOCKS_FIRST];
	size_t private_kept; /* of REPLAY_CONTENT_MAX */
	size_t event_bytes_max;
	struct answer answer;
	struct stream_detail *details,
		*last_detail;    /* of OpenRouter's reasoning (stream_details.c) */
	struct stream_skim skim; /* of dialects that repeat themselves */
	struct usage counters;   /* anthropic's, see anthropic_read_usage */
	enum answer_stop stop;
	bool usage_said; /* openai's: at the top of an event; a choice's own counts no more */
	/* Likewise: 1 + how each choice but the first one stopped (enum answer_stop); 0: nothing was said. */
	uint8_t choice_stops[STREAM_CHOICES];
	uint8_t choices_calling; /* a bit for each choice that has calls */
	struct slice error_body; /* the event that was an error; absent when there was none */
	struct stream_now now;
	struct provider_answer head;
	struct stream_shape shape;
	/* not cleared by stream_open: */
	char shape_bytes[STREAM_SHAPE_MAX];
};

/* So many streams and their rooms, of one thread. */
struct stream_slab {
	struct slab streams, rooms;
};

/* False when memory is refused. */
MUST_USE bool stream_slab_init(struct stream_slab *slab, size_t count);
/* Every stream must have been given back. */
void stream_slab_fini(struct stream_slab *slab);
/* A stream with its room, for stream_open; NULL when all are out. */
MUST_USE struct stream *stream_take(struct stream_slab *slab);
void stream_give(struct stream_slab *slab, struct stream *s);

/* stream_open (codec/set.h), which callers use, with the row of the set that reads the stream.
 *
 * Begins an answer in `s`, of which only `room` is set, which stays its own; whatever the rest holds. `head`
 * is the answer's status (2xx), headers and chance; its body is not looked at. Copied: *head, *limits.
 * Borrowed until stream_end: what head and context point to, work, into. The result will live as long as
 * `into` and what context points to. */
void stream_init(struct stream *s, const struct dialect *dialect,
		 const struct decode_context *context, const struct provider_answer *head,
		 const struct stream_limits *limits, struct json_work *work, struct arena *into);

/* Bytes are about to be fed: asks for what they will touch (base/prefetch.h), as PREFETCH_STREAM the stream's
 * lines, as PREFETCH_TEXT the end of its text. */
void stream_prefetch(const struct stream *s, enum prefetch step);

/* No answer will come of it: stream_end will say why. */
static inline bool stream_failed(const struct stream *s)
{
	return s->state == STREAM_FAILED;
}

/* Bytes that it holds: of the answer so far, and the buffer of an event that has outgrown the stream's own.
 * `limits`: those that it was opened with. */
static inline size_t stream_held(const struct stream *s, const struct stream_limits *limits)
{
	const size_t large = s->sse.size > STREAM_EVENT_ROOM ? s->sse.size : 0;

	return limits->answer_bytes_max - s->left + large;
}

/* The next bytes of the body, borrowed during the call. Costs nothing once the state is not OPEN. */
enum stream_state stream_feed(struct stream *s, struct slice bytes);

/* There are no more bytes. ERR_OK: *result. Else as decode(): *failure, among others
 * ERR_PROVIDER_ANSWER (retryable) when the stream ended before its terminal condition, which is a stop
 * reason, with OpenAI [DONE] as well; afterwards STREAM_BROKE is no failure. failure->usage is what
 * had been counted until then. Once per stream. */
MUST_USE enum err stream_end(struct stream *s, enum stream_ending ending,
			     struct sampling_result *result, struct provider_failure *failure);

#endif
