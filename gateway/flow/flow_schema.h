/* flow_schema.h - structured output: a request whose only tool is `__schema__`, to be called (DESIGN 4.3).
 *
 * How the provider is made to answer so is the dialects' (contract/providers.md 8.2). Here an answer is
 * checked against the schema. One that does not match is sent back with what is wrong, once: an attempt
 * like any other, that reserves and settles by itself. Then it is ERR_SCHEMA_MISMATCH. An answer that the
 * check's bounds do not suffice for is let through only where the schema was sent as native output, which
 * the provider keeps by itself, with the adjustment schema_keyword_unchecked; else it is a mismatch that is
 * not asked for again. What the model could not end (out of tokens, a refusal, a stop sequence) is the
 * answer as it is. */
#ifndef GATEWAY_FLOW_FLOW_SCHEMA_H
#define GATEWAY_FLOW_FLOW_SCHEMA_H

#include "codec/schema/schema.h"
#include "gateway/flow/flow.h"

enum flow_mend {
	FLOW_UNMENDED, /* no answer was wrong so far, or none can be sent back */
	FLOW_MENDING,  /* the last one is: it is sent back */
	FLOW_MENDED, /* it was: whatever is asked now says so, and nothing of it is kept for replay */
};

struct flow_schema {
	struct schema schema;
	enum flow_mend mend;
	struct sampling_request
		request; /* once one was: with the answer and what is wrong with it */
};

/* After a request for structured output was encoded: reads its schema, the first time. ERR_TOOL with *fault
 * when it is too large to be checked against, ERR_BUSY. */
MUST_USE enum err flow_schema_begin(struct flow *flow, struct json_work *work, struct fault *fault);

/* What is to be encoded: the caller's request, or that with what was wrong with its first answer. */
const struct sampling_request *flow_schema_request(const struct flow *flow);

/* Judges a decoded answer. ERR_OK: it is one, result->adjustments say what could not be checked. Else
 * flow->attempt.failure says why not. */
MUST_USE enum err flow_schema_judge(struct flow *flow, struct sampling_result *result);

/* Whether the answer that failed is to be sent back; flow_schema_mend: it is now. */
bool flow_schema_mends(const struct flow *flow);
void flow_schema_mend(struct flow *flow);

/* Whether the answer came of a request that the next one's history will not repeat, so that nothing of it may
 * be kept for replay (contract/providers.md 2.1). */
bool flow_schema_is_private(const struct flow *flow);

#endif
