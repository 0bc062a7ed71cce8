/* api.h - the providers' own APIs, read and written as a server: the map of codec/api, for whoever builds the front.
 *
 * A caller sends what it would send to the provider, and the provider speaks the same format: bytes pass. The gateway
 * reads what it acts on and what must not pass unread, changes byte ranges, and leaves everything else as its author wrote
 * it. Nothing here knows HTTP, a tenant or a provider, or decides whether something may pass where that is a plan's
 * to say. Pure: no clock, no I/O; memory comes from the request's arena.
 *
 *   request    api_request.h   one strict pass: values of what is acted on, figures for policy and limits, tools, URLs.
 *                              Refuses what no plan can permit: 400 and 403 with the place in the body (fault.path)
 *              api_grants.h    what a plan permits beside: server tools, URLs, tiers, n; thinking under a clamped bound
 *              api_view.h      the request as policy, limits and routing see one: sampling_ask.request
 *              api_edit.h      the provider's request: model, bound, usage, store, system, user ids, members of a profile
 *   answer     api_answer.h    a JSON answer: the model's place, id, stop reason
 *              api_paid.h     what either says of its price beside tokens
 *              api_stream.h    a stream, event by event: what passes, is changed, is dropped or ends it
 *   errors     api_error.h     the shapes, a row for every reason (tbl/api_errors.h)
 *              api_redact.h    a provider's own words about a request, without what they say of its account
 *   head       api_headers.h   what passes to the provider; when to try again, and what is left of a limit
 *   models     api_models.h    GET /v1/models in both shapes
 *
 * How a front drives them for POST /v1/messages and POST /v1/chat/completions:
 *
 *   1. Find the caller and its plan first: nothing of the body is needed for that.
 *   2. api_request_read (codec/set.h). An error is written by api_error_write with the fault as it is.
 *   3. Resolve the model's name, api_string(API_MODEL); nobody has it: ERR_MODEL_UNKNOWN, with the name. Then
 *      api_grants_check, and policy with the request's figures (api_view_make).
 *   4. For each attempt (sampling_raw.write): api_edit_make with the target's model and bound. The bound is at most the
 *      plan's and the model's; what was written and the adjustments come back. A provider's own list of refused names
 *      (providers.*.direct.refuse) is asked with api_request_names before the provider is taken.
 *   5. A JSON answer: api_answer_read, api_answer_edit, send. A stream: api_stream. `model` in both is the caller's own name,
 *      as it was written: request.at[API_MODEL].text.
 *   6. A stream that ends before it is over: api_error_event, or the connection is cut. A clean end would look like a
 *      whole answer. In front of its first event: api_error_write, with a status.
 *   7. A provider's 400, 413 and 422 in the same format: api_redact, else our own words.
 *
 * Money is the core's: it reads the same bytes with the format's reader (codec/dialect), whoever asked for the usage. Estimates
 * of input go by api_request_bytes (its bytes / 4, and images apart), of output by api_output_most (api_grants.h).
 *
 * What passes unread is a member that no row of tbl/members.h names. What the gateway reads must be what any JSON reader
 * behind it reads: so a name twice in an object, and a name that is one of the rows but for case, are 400. */
#ifndef CODEC_API_API_H
#define CODEC_API_API_H

#include "codec/json/json_read.h"

/* The requests that are read. */
enum api {
	API_MESSAGES, /* POST /v1/messages */
	API_COUNT,    /* POST /v1/messages/count_tokens */
	API_CHAT,     /* POST /v1/chat/completions */
	API_ALL
};

/* Which of the two families of formats: errors, paths and model lists have a form each. */
static inline bool api_is_anthropic(enum api api)
{
	return api != API_CHAT;
}

enum api_name_match {
	API_NAME_OTHER,
	API_NAME_SAME,
	API_NAME_CASE, /* the same but for case, as Go's reader compares: ASCII, U+017F is s, U+212A is k */
};

enum { API_NAME_MAX = 64 };

/* Whether the raw name of a member (json_read.h: valid, without quotes) means `plain`, ASCII of at most API_NAME_MAX
 * bytes. */
enum api_name_match api_name_match(struct slice raw, struct slice plain);

#endif
