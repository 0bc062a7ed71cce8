/* dialect_anthropic.h - Anthropic Messages (contract/providers.md 2); use dialect_get. */
#ifndef CODEC_DIALECT_ANTHROPIC_H
#define CODEC_DIALECT_ANTHROPIC_H

#include "codec/dialect.h"

extern const struct dialect dialect_anthropic;

/* private: its decode, which is in dialect_anthropic_decode.c. */
MUST_USE enum err anthropic_decode(const struct decode_context *context,
				   const struct provider_answer *answer, struct json_work *work,
				   struct arena *into, struct sampling_result *result,
				   struct provider_failure *failure);

#endif
