/* api_error.h - errors as the direct APIs say them: status, type and words are protocol there.
 *
 *   Messages   {"type":"error","error":{"type","message","details"?},"request_id"}
 *   Chat       {"error":{"message","type","param","code"}}
 *
 * In front of a stream's first event an error is an answer of its own (api_error_write); behind it, the last event
 * (api_error_event), and then the connection ends without [DONE] or message_stop. */
#ifndef CODEC_API_API_ERROR_H
#define CODEC_API_API_ERROR_H

#include "codec/api/api.h"
#include "codec/json/json_write.h"

enum api_hint {
	API_HINT_RETRY, /* SDKs go by the status */
	API_HINT_NEVER, /* x-should-retry: false */
};

/* What an API says for one reason; static. */
struct api_error_row {
	uint16_t status;
	enum api_hint hint;
	const char *type;
	const char *code; /* "": null; Messages has none */
	const char *text;
};

struct api_error {
	struct fault fault;
	const struct error_data *data; /* NULL: nothing is known */
	struct slice request_id;       /* plain: the log line's; absent: left out */
	/* Of ERR_MODEL_UNKNOWN: the model's name, raw. */
	struct slice model;
	/* Of ERR_CONTEXT_WINDOW: what the prompt counts, and the most that the model takes; 0: not known. Claude Code
	 * compacts by these. */
	uint64_t tokens, tokens_max;
};

/* The row of an error; not of ERR_OK. A provider that said 413 keeps it, and one that said 503 or 529 is overloaded; what it
 * says of its account, 401 to 403, is the operator's. */
struct api_error_row api_error_row(enum api api, const struct api_error *error);

/* The body. The fault's path and detail are in its message. */
void api_error_write(struct gather *g, enum api api, const struct api_error *error);

/* The same as the last event of a stream. */
void api_error_event(struct gather *g, enum api api, const struct api_error *error);

#endif
