/* dialect_error_body.h - what an error answer of a provider says; private to codec/. */
#ifndef CODEC_DIALECT_DIALECT_ERROR_BODY_H
#define CODEC_DIALECT_DIALECT_ERROR_BODY_H

#include "codec/base/arena.h"
#include "codec/json/json_read.h"

/* Raw strings, absent when not there. */
struct error_body {
	struct slice type, code, message, param, detail_code, request_id, retry_delay;
	struct slice
		inner_code; /* of the error within it: Azure's innererror, a reason of Google's details */
	struct slice
		wrapped;    /* what another provider said, as a string: OpenRouter's metadata.raw */
	int64_t number;     /* a numeric code; 0: none */
	bool day;           /* what is used up comes back the next day */
	bool moderated;     /* it says what in the content was found to be wrong */
	struct arena *into; /* for what is put together */
};

/* The members of an error answer; all absent when it is neither JSON nor a short text. Of `message` only the
 * front is kept. */
struct error_body error_body_read(struct slice text, struct json_work *work, struct arena *into);

/* What `wrapped` says, as JSON or as it is. That host knows nothing of our key, so that it is asked about the request
 * alone. False: nothing, or no memory. */
bool error_body_wrapped(const struct error_body *body, struct json_work *work, struct arena *into,
			struct error_body *out);

/* The front of a raw string, of at most `max` bytes, cut between two characters. */
struct slice error_body_front(struct slice raw, size_t max);

#endif
