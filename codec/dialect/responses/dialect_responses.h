/* dialect_responses.h - OpenAI Responses (contract/providers.md 4); use dialect_get.
 *
 * The format has no stop sequences, so all are searched by the gateway, and takes no audio. Fewer than 16
 * tokens are asked for as 16. The order of output items is kept: texts and calls may alternate. Nothing is
 * stored at the provider. */
#ifndef CODEC_DIALECT_RESPONSES_DIALECT_RESPONSES_H
#define CODEC_DIALECT_RESPONSES_DIALECT_RESPONSES_H

#include "codec/dialect/dialect_answer.h"

extern const struct dialect dialect_responses;

/* private: how its answers stream, in stream_responses.c. */
extern const struct stream_dialect stream_responses;

/* private: its decode, which is in dialect_responses_decode.c. */
MUST_USE enum err responses_decode(const struct decode_context *context,
				   const struct provider_answer *answer, struct json_work *work,
				   struct arena *into, struct sampling_result *result,
				   struct provider_failure *failure);

/* ---- private to codec/: what an answer and a stream of one have in common ---- */

/* What a response says of itself, in a whole answer and in the last event of a stream; raw. */
struct responses_end {
	struct slice status, reason; /* reason: of incomplete_details */
	bool error;                  /* has an error that is not null */
	struct slice output;         /* JSON; of a stream's last event only */
};

/* The members of a response beside its output. */
enum responses_member {
	RESPONSES_ID,
	RESPONSES_STATUS,
	RESPONSES_ERROR,
	RESPONSES_INCOMPLETE,
	RESPONSES_MODEL,
	RESPONSES_OUTPUT,
	RESPONSES_USAGE,
	RESPONSES_MEMBERS
};
extern const struct json_name responses_names[RESPONSES_MEMBERS];

/* Takes the value of any of them but OUTPUT into `a` or `end`, and skips every other. */
void responses_read_member(struct answer *a, struct json_reader *r, uint32_t member,
			   struct responses_end *end);

/* Adds the part of a message's content that is next as a text block, or takes it for the explanation of a
 * refusal. */
void responses_read_part(struct answer *a, struct json_reader *r);

/* How an answer stopped that ended so; fails `a` where it did not end. */
enum answer_stop responses_stop(struct answer *a, const struct responses_end *end);

/* Whether output items of this type (raw) are left out without a word: reasoning, and what the provider's
 * own tools did. */
bool responses_is_private(struct slice type);

#endif
