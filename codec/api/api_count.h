/* api_count.h - what a provider says when it is asked how many tokens a request has (POST /v1/messages/count_tokens).
 *
 * Hosts that only look like Anthropic's API have no such path, or answer it with a stub. A wrong number is worse than
 * none: callers trust it, and never compact what they send. Pure. */
#ifndef CODEC_API_API_COUNT_H
#define CODEC_API_API_COUNT_H

#include "codec/base/attr.h"
#include "codec/base/slice.h"

#include <stdint.h>

enum api_counted {
	API_COUNTED,       /* {"input_tokens":N}, N at least 1 */
	API_COUNT_MISSING, /* the host counts nothing: it has no such path */
	API_COUNT_FAILED,  /* anything else: a stub, an error */
};

/* `model`: what the request calls it, plain. A host that does not know the model says so by the same status as one that
 * does not know the path; then it names the model. */
enum api_counted api_count_judge(uint16_t status, struct slice body, struct slice model);

#endif
