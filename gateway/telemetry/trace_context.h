/* trace_context.h - a caller's traceparent (W3C Trace Context): for the log line, and for the provider.
 *
 * A request without one begins no trace. tracestate is not passed on, which the specification permits
 * (section 3.3.1.5): the edge does not collect that header. */
#ifndef GATEWAY_TELEMETRY_TRACE_CONTEXT_H
#define GATEWAY_TELEMETRY_TRACE_CONTEXT_H

#include "codec/base/slice.h"
#include "gateway/base/bounds.h"

/* Reads a traceparent header (3.2.2) into `out`, NUL-terminated and as version 00; "" when there is none, or
 * one that is not valid: a trace is then as if it had not been begun. Of a later version that part counts
 * which is ours. */
void trace_context_read(struct slice header, char out[TRACEPARENT_LEN + 1]);

/* What the provider gets: the caller's trace and flags, with a parent of ours, the first 16 digits of the
 * request's id. `caller` and `out` may be the same. */
void trace_context_continue(const char caller[TRACEPARENT_LEN + 1],
			    const char request_id[REQUEST_ID_HEX + 1],
			    char out[TRACEPARENT_LEN + 1]);

#endif
