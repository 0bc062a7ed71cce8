/* explain_log.h - a line of the log, read back: what routing was asked for that request, and what it chose
 * (log.h writes it). */
#ifndef GATEWAY_COMMAND_EXPLAIN_LOG_H
#define GATEWAY_COMMAND_EXPLAIN_LOG_H

#include "codec/base/arena.h"
#include "codec/json/json_read.h"
#include "gateway/telemetry/log.h"

/* Texts are plain unless said otherwise; absent where the line does not say. */
struct logged {
	struct slice tenant, server, front, model, provider, endpoint;
	struct slice error; /* the reason of a request that was refused or failed */
	struct slice event; /* of a line that is no request's */
	uint32_t attempts;
	struct slice classes; /* how each attempt ended: the JSON of "attempt_classes" */
	struct slice config;  /* digest */
	struct slice seed;
	struct slice held;      /* log_held_name */
	struct log_route route; /* without digest and seed */
};

/* Reads a line, which must outlive *out. False: it is none, or one of a request that was not routed;
 * *problem says what, static. */
MUST_USE bool logged_read(struct slice line, struct json_work *work, struct arena *into,
			  struct logged *out, const char **problem);

#endif
