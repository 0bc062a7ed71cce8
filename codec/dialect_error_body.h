/* dialect_error_body.h - what an error answer of a provider says; private to codec/. */
#ifndef CODEC_DIALECT_ERROR_BODY_H
#define CODEC_DIALECT_ERROR_BODY_H

#include "codec/base/slice.h"

/* Raw strings, absent when not there. */
struct error_body {
	struct slice type, code, message, param, detail_code, request_id, retry_delay;
	struct slice
		inner_code; /* of the error within it: Azure's innererror, a reason of Google's details */
	struct slice
		wrapped; /* what another provider said, as a string: OpenRouter's metadata.raw */
	int64_t number;  /* a numeric code; 0: none */
	bool day;        /* what is used up comes back the next day */
	bool moderated;  /* it says what in the content was found to be wrong */
};

#endif
