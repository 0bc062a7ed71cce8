/* dialect_learn.h - what a provider's refusal teaches about a model (contract/providers.md 7); private to
 * codec/.
 *
 * Hosts refuse a parameter in words of their own. A refusal that names one that was sent is believed as far as this
 * one request goes: it is sent again without. Whether it is said of the parameter itself, so that other requests
 * may go without it from the start, is a second, stricter question. A text may quote what the request says, so
 * what stands in quotes counts only where it is a name and nothing else. */
#ifndef CODEC_DIALECT_DIALECT_LEARN_H
#define CODEC_DIALECT_DIALECT_LEARN_H

#include "codec/dialect/dialect.h"
#include "codec/dialect/dialect_error_body.h"

struct lesson {
	enum learn fact;
	bool lasting;
};

/* What a refusal of a request teaches that could have been sent otherwise in these ways. Texts are decoded into
 * `into`; without memory nothing is learned. */
struct lesson learn_from(const struct error_body *body, int status, learn_set teachable,
			 struct arena *into);

#endif
