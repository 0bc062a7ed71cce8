/* dialect_learn.h - what a provider's refusal teaches about a model (contract/providers.md 7); private to
 * codec/. */
#ifndef CODEC_DIALECT_LEARN_H
#define CODEC_DIALECT_LEARN_H

#include "codec/dialect.h"
#include "codec/dialect_error_body.h"

/* What a refusal with this status teaches; LEARN_NOTHING as a rule. */
enum learn learn_from(const struct error_body *body, int status);

#endif
