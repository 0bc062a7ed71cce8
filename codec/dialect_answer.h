/* dialect_answer.h - what decoding has in common in all dialects; private to codec/.
 *
 * A dialect collects the answer's blocks in order, says how the answer stopped, and calls
 * answer_finish, which applies the rules of contract/providers.md 8.2 to 8.4. Everything collected
 * is a raw string or JSON text of the body. The first error is kept and makes the rest no-ops. */
#ifndef CODEC_DIALECT_ANSWER_H
#define CODEC_DIALECT_ANSWER_H

#include "codec/dialect.h"

/* How the provider says that the answer stopped. */
enum answer_stop {
	ANSWER_END,      /* it was complete, or calls tools */
	ANSWER_SEQUENCE, /* a stop sequence matched */
	ANSWER_LENGTH,   /* out of tokens: the last call may be cut */
	ANSWER_REFUSED,
	ANSWER_OTHER,
};

enum { ANSWER_KEY_MAX = 32 };

struct answer_block {
	enum { ANSWER_TEXT, ANSWER_CALL, ANSWER_AUDIO } kind;
	struct slice text;     /* TEXT: raw; AUDIO: base64, raw */
	struct slice id, name; /* CALL: raw; id absent when there is none */
	struct slice args;     /* CALL: JSON value, absent when there is none */
};

struct answer {
	const struct decode_context *context;
	const struct provider_answer *from;
	struct json_work *work;
	struct arena *into;
	struct answer_block *blocks;
	uint32_t count, cap;
	struct slice id, model;   /* raw, absent when not said */
	struct slice explanation; /* of a refusal: raw, or absent */
	struct usage usage;
	enum answer_stop stop;
	bool last_call_cut; /* with ANSWER_LENGTH: a call at the very end is incomplete by rule */
	adjust_set adjustments;
	enum err err;
	const char *detail;
	char key[ANSWER_KEY_MAX]; /* answer_next_key's */
};

void answer_begin(struct answer *a, const struct decode_context *context,
		  const struct provider_answer *from, struct json_work *work, struct arena *into);

/* The answer cannot be used: `detail` is static. */
void answer_fail(struct answer *a, const char *detail);

/* The same for our own want of memory: ERR_BUSY. */
void answer_no_memory(struct answer *a);

/* The same for the state of the reader: its first error, if any, becomes the answer's. */
void answer_check(struct answer *a, const struct json_reader *r);

void answer_add(struct answer *a, struct answer_block block);

static inline void answer_adjust(struct answer *a, enum adjustment adjustment)
{
	a->adjustments |= ADJUST_BIT(adjustment);
}

/* Blocks to result, or failure (failure_unusable). */
MUST_USE enum err answer_finish(struct answer *a, struct sampling_result *result,
				struct provider_failure *failure);

/* An error answer: classified (failure_classify), or a prompt filter's refusal, which is a result. */
MUST_USE enum err answer_from_failure(struct answer *a, struct sampling_result *result,
				      struct provider_failure *failure);

/* ---- reading members of any type ---- */

/* json_next_key with the key in plain, until the next one is asked for; absent when it is an escaped
 * one that is longer than any that matters. */
bool answer_next_key(struct answer *a, struct json_reader *r, struct slice *key);

/* The next value when it is a string, else it is skipped and *out stays as it is. */
void answer_take_string(struct json_reader *r, struct slice *out);

/* The next value when it is a whole number of at least 0: true. Else it is skipped and *out stays. */
bool answer_take_count(struct json_reader *r, uint64_t *out);

/* The count in one member of the next value when that is an object. */
void answer_take_member(struct answer *a, struct json_reader *r, struct slice member,
			uint64_t *out);

/* Brings counters into normal form: what is part of another counter is not above it. */
void answer_set_usage(struct answer *a, struct usage usage);

#endif
