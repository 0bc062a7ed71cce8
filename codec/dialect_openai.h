/* dialect_openai.h - OpenAI Chat Completions and the many dialects of it (contract/providers.md 3
 * and 5); use dialect_get. */
#ifndef CODEC_DIALECT_OPENAI_H
#define CODEC_DIALECT_OPENAI_H

#include "codec/dialect.h"

extern const struct dialect dialect_openai;

/* private: its decode, which is in dialect_openai_decode.c. */
MUST_USE enum err openai_decode(const struct decode_context *context,
				const struct provider_answer *answer, struct json_work *work,
				struct arena *into, struct sampling_result *result,
				struct provider_failure *failure);

#endif
