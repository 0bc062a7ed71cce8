/* api_paid.h - what an answer says of its price beside its tokens: the tier that it was made in, and uses of server tools.
 *
 *   Messages   usage.service_tier, usage.speed, the counts in usage.server_tool_use
 *   Chat       service_tier
 *
 * Loose as codec/json/json_loose.h: what is not as it should be counts as not said. Asked only where it matters: most
 * requests have no other price than their tokens'. */
#ifndef CODEC_API_API_PAID_H
#define CODEC_API_API_PAID_H

#include "codec/api/api.h"

enum { API_TIER_ROOM = 32 };

struct api_said {
	char text[API_TIER_ROOM];
	uint8_t len; /* 0: not said, or longer than any tier's name */
};

/* Zero-initialised: nothing was said. */
struct api_paid {
	struct api_said tier, speed; /* raw, as JSON strings have them inside */
	bool uses_said;
	uint64_t uses;
};

static inline struct slice api_said_text(const struct api_said *said)
{
	return said->len == 0 ? slice_of(NULL, 0) : slice_of(said->text, said->len);
}

/* Each adds what it finds, over what was said before: a whole JSON answer; the `usage` of a Messages answer or event
 * (absent: none); the `service_tier` of a chunk. `last`: the counts of uses are of the whole answer. */
void api_paid_answer(struct api_paid *paid, enum api api, struct slice body);
void api_paid_usage(struct api_paid *paid, struct slice usage, bool last);
void api_paid_tier(struct api_paid *paid, struct slice value);

#endif
