/* dialect_anthropic.h - Anthropic Messages (contract/providers.md 2); use dialect_get. */
#ifndef CODEC_DIALECT_ANTHROPIC_DIALECT_ANTHROPIC_H
#define CODEC_DIALECT_ANTHROPIC_DIALECT_ANTHROPIC_H

#include "codec/dialect/dialect_answer.h"

extern const struct dialect dialect_anthropic;

/* private: how its answers stream, in stream_anthropic.c. */
extern const struct stream_dialect stream_anthropic;

/* private: its decode, which is in dialect_anthropic_decode.c. */
MUST_USE enum err anthropic_decode(const struct decode_context *context,
				   const struct provider_answer *answer, struct json_work *work,
				   struct arena *into, struct sampling_result *result,
				   struct provider_failure *failure);

/* ---- private to codec/: what an answer and a stream of one have in common ---- */

/* `reason` is raw; absent, as some hosts of the format leave it, is the end. */
enum answer_stop anthropic_stop(struct slice reason);

/* Reads the usage object that is next; anything else is skipped. `counters` are as they come, input
 * without what came from and went into the cache; one that is not there keeps its value. a->usage is
 * their normal form. */
void anthropic_read_usage(struct answer *a, struct json_reader *r, struct usage *counters);

/* Whether blocks of this type (raw) are left out without a word: thinking, and the provider's own
 * tools. */
bool anthropic_is_private(struct slice type);

/* Takes the explanation of the stop_details that are next; anything else is skipped. */
void anthropic_read_explanation(struct answer *a, struct json_reader *r);

#endif
