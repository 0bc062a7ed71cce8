/* dialect_openai.h - OpenAI Chat Completions and the many dialects of it (contract/providers.md 3
 * and 5); use dialect_get. */
#ifndef CODEC_DIALECT_OPENAI_DIALECT_OPENAI_H
#define CODEC_DIALECT_OPENAI_DIALECT_OPENAI_H

#include "codec/dialect/dialect_answer.h"
#include "codec/dialect/dialect_request.h"

extern const struct dialect dialect_openai;

/* private: how its answers stream, in stream_openai.c. */
extern const struct stream_dialect stream_openai;

/* private: its decode, which is in dialect_openai_decode.c. */
MUST_USE enum err openai_decode(const struct decode_context *context,
				const struct provider_answer *answer, struct json_work *work,
				struct arena *into, struct sampling_result *result,
				struct provider_failure *failure);

/* ---- private to codec/: what a request is made of ---- */

/* Makes e->request *out, the same with the messages as the profile wants them: without empty turns of the
 * assistant, one for neighbours of one role. In dialect_openai_turns.c. */
void openai_arrange(struct encoder *e, struct sampling_request *out);

/* ---- private to codec/: what an answer and a stream of one have in common ---- */

/* `reason` is finish_reason, `match` vLLM's stop_reason where that is a string; both raw or absent. */
enum answer_stop openai_stop(struct slice reason, struct slice match);

/* Adds the content that is next as text blocks: a string, null, or a list of parts. */
void openai_read_content(struct answer *a, struct json_reader *r);

/* The same of one part of a list. */
void openai_read_part(struct answer *a, struct json_reader *r);

/* What of an answer goes back with its calls; JSON each, absent where there is none. */
struct openai_kept {
	struct slice reasoning_content, reasoning; /* strings */
	struct slice reasoning_details;            /* array */
};

/* Makes a->replay of it and of the calls' extra; both may be there or not. */
void openai_keep(struct answer *a, const struct openai_kept *kept);

/* Reads the usage object that is next into a->usage; anything else, and one without counters, is
 * skipped. */
void openai_read_usage(struct answer *a, struct json_reader *r);

/* The same inside a choice, where some hosts count, unless usage is known already. */
void openai_read_choice_usage(struct answer *a, struct json_reader *r);

/* The same inside Groq's own member, unless usage is known already. */
void openai_read_x_groq(struct answer *a, struct json_reader *r);

#endif
