/* sampling.h - the door of the sampling core: one completion for one caller, whoever asks and in whatever format.
 *
 * A front (gateway/front/) finds its caller, decodes its own format into a struct sampling_request and begins a call. The
 * core checks policy and limits, picks model and endpoint, sends, retries, settles, and keeps sessions, tool loops and
 * copies. It writes no front's format: in the end the front gets an outcome and writes its own answer. What a front gives
 * and is told is in flow_front.h. A call needs no HTTP exchange. One worker's thread; no lock, no malloc.
 *
 *   call = sampling_begin(core, &ask, &front, owner);   // NULL: no room, answer ERR_BUSY
 *   ... front.admitted, .progress ...                   // from now on front.done will come, once
 *   front.done(owner, outcome)                          // unless sampling_abandon came first
 *   sampling_end(call, ERR_OK)                          // the answer has left
 */
#ifndef GATEWAY_SAMPLING_SAMPLING_H
#define GATEWAY_SAMPLING_SAMPLING_H

#include "gateway/flow/flow_front.h"

struct sampling;      /* the core of one worker */
struct sampling_call; /* one call under way; the core's */

/* The names of a call that is to begin. `traceparent`: of whoever asks, as it was sent; absent: none. */
void sampling_new_ids(struct sampling *core, struct slice traceparent, struct sampling_ids *ids);

/* Whether the caller may hold a body of so many bytes, before it is worth reading one that is large. False: *fault and
 * *data say why not. sampling_begin asks for all bodies. */
MUST_USE bool sampling_has_room(struct sampling *core, const struct caller *caller, size_t bytes,
				struct fault *fault, struct error_data *data);

/* Begins a call: `ask`, `front` and `owner` (passed to the callbacks) must outlive it. NULL: as many calls as there may
 * be are under way; nothing is kept, answer ERR_BUSY. */
struct sampling_call *sampling_begin(struct sampling *core, const struct sampling_ask *ask,
				     const struct sampling_front *front, void *owner);

/* The caller does not keep up with what it is told: nothing more is read of the provider's answer, until
 * sampling_resume. Only before `done`; harmless when it is so already. */
void sampling_pause(struct sampling_call *call);
void sampling_resume(struct sampling_call *call);

/* Of a call that has been sent: the model, as the configuration calls it; until sampling_end. */
struct slice sampling_model_id(const struct sampling_call *call);

/* The head of a provider's answer that streams: from the first piece of it on, until sampling_end. */
const struct provider_headers *sampling_provider_headers(const struct sampling_call *call);

/* Whether the attempt has its whole answer, or has failed: `done`, or another attempt, is a turn away. */
bool sampling_attempt_is_over(const struct sampling_call *call);

/* After `done`, when the answer has left: log line, counters, and the call's place and memory go; then ask and arena are
 * the front's again. `how` ERR_OK: whole; ERR_CANCELLED: cut short; any other: the front has answered that instead of the
 * outcome. */
void sampling_end(struct sampling_call *call, enum err how);

/* The caller has left, before `done` or after it: the same as sampling_end with ERR_CANCELLED, and the provider's call
 * ends. No callback comes any more but keep and report, from inside. */
void sampling_abandon(struct sampling_call *call);

/* A call that could not be begun, or was refused before it was worth it, or (ERR_OK) answered without the core: its log line
 * and counters. */
void sampling_refused(struct sampling *core, const struct sampling_ask *ask,
		      const struct sampling_front *front, void *owner, enum err why);

/* Tokens of input that the request counts for where nobody but the gateway is asked: what routing and context bounds go
 * by. `body_bytes`: of what the caller sent. */
uint64_t sampling_count(const struct sampling_request *request, size_t body_bytes);

/* A name by which the caller may ask for a model: sampling_raw.model. */
struct sampling_name {
	struct slice name;                /* plain; of the configuration, or what was looked for */
	uint64_t context_max, output_max; /* tokens; the least of the models that are meant */
};

/* All of them, each once: ids and aliases of the models that the caller's plan permits and that are enabled. *out lies in
 * `into`, what it refers to is there until the next configuration. False: no memory. */
MUST_USE bool sampling_names(const struct sampling *core, const struct caller *caller,
			     struct arena *into, struct sampling_name **out, size_t *count);

/* What `name` stands for, listed or not (routing/name.h). False: for nothing that the caller may have. */
MUST_USE bool sampling_name_find(const struct sampling *core, const struct caller *caller,
				 struct slice name, struct sampling_name *out);

/* Whether a name, plain, leaves the model to the request's preferences. */
bool sampling_name_is_auto(struct slice name);

/* Cancels the calls of the caller's session that have that cancel_id, here and at other gateways: their outcome is
 * SAMPLING_CANCELLED. Their done comes later, never from inside. */
void sampling_cancel(struct sampling *core, const struct caller *caller, struct slice session,
		     struct slice cancel_id);

#endif
