/* dialect_learn.h - what a provider's refusal teaches about a model (contract/providers.md 7); private to
 * codec/. */
#ifndef CODEC_DIALECT_LEARN_H
#define CODEC_DIALECT_LEARN_H

#include "codec/dialect.h"

/* What an error answer says: raw strings, absent when not there. */
struct error_body {
	struct slice type, code, message, param, detail_code, request_id, retry_delay;
	int64_t number; /* a numeric code; 0: none */
	bool day;       /* what is used up comes back the next day */
};

/* What a refusal with this status teaches; LEARN_NOTHING as a rule. */
enum learn learn_from(const struct error_body *body, int status);

#endif
