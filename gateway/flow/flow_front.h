/* flow_front.h - what a front asks of the core, and what it is told: all that passes the core's door.
 *
 * Included through gateway/sampling/sampling.h, whose functions take these. Nothing here belongs to a protocol: a front
 * writes what it is told in its own. */
#ifndef GATEWAY_FLOW_FLOW_FRONT_H
#define GATEWAY_FLOW_FLOW_FRONT_H

#include "codec/base/prefetch.h"
#include "codec/base/sha256.h"
#include "codec/dialect/stream_delta.h"
#include "codec/mcp/sampling.h"
#include "gateway/base/bounds.h"
#include "gateway/identity/caller.h"
#include "gateway/limits/limit_left.h"
#include "gateway/telemetry/log.h"

/* ---- what a front gives ---- */

enum { SESSION_ID_HEX = 32 };

/* Random bytes of one call: 16 for its id, and 16 that nobody else gets to know, for the id of a session that it begins
 * or (the first 12) for ids of tool calls that a provider left out. */
enum { SAMPLING_CHANCE_BYTES = REQUEST_ID_HEX / 2 + SESSION_ID_HEX / 2 };

/* The names of one call. */
struct sampling_ids {
	char request_id[REQUEST_ID_HEX + 1];
	char traceparent[TRACEPARENT_LEN + 1]; /* "" when none, or not one */
	uint8_t chance[SAMPLING_CHANCE_BYTES - REQUEST_ID_HEX / 2];
	uint64_t seed; /* of every choice by chance; the log line gives it */
};

/* Fills all of *ids. `traceparent`: of whoever asks, as it was sent; absent: none. */
void sampling_ids_make(struct sampling_ids *ids, const uint8_t random[SAMPLING_CHANCE_BYTES],
		       struct slice traceparent);

enum sampling_relay {
	SAMPLING_SILENT,   /* nothing before the outcome */
	SAMPLING_PROGRESS, /* how much of the answer has come: .progress */
	SAMPLING_DELTAS, /* the answer itself as it comes: .delta or .raw; once one has, nothing is tried again */
};

/* Where a call goes to, for a front that writes the provider's request itself. Borrowed during the call. */
struct sampling_target {
	struct slice model;  /* as the provider names it */
	uint32_t max_tokens; /* the most that policy and model allow */
	bool stream;         /* the answer is to come as a stream */
	bool final_round;    /* it is to have no calls of tools */
	const struct profile *profile;
	struct slice host; /* of the endpoint */
	struct slice key;  /* absent: it has none */
};

#define SAMPLING_NO_PRICE UINT64_MAX

/* What a model has for requests in its provider's format (NO_PRICE is SAMPLING_NO_PRICE). Borrowed during the call. */
struct sampling_offer {
	const struct slice *refused; /* names of members that its provider does not take */
	uint32_t refused_count;
	bool again;           /* they are those of the offer before, whose provider is the same */
	uint32_t output_most; /* tokens of an answer of the model */
	uint64_t use_price;   /* nano-USD of a use of a tool that the provider runs, or NO_PRICE */
};

/* What a request costs beside the model's price of its tokens. */
struct sampling_extra {
	uint64_t factor; /* of that price, in millionths */
	uint64_t uses;   /* of tools that the provider runs */
};

/* A request that the front has in a provider's own format. Where the provider speaks that, `write` makes the body that
 * is sent, and the provider's bytes come back as they are (.raw, outcome.answer): nothing of ours is applied to either. Any
 * other provider gets what the core makes of the ask's request, which `cross` has made whole by then; where a model is
 * named, nobody else is asked as long as a provider of that format has it. Lives as the ask does. */
struct sampling_raw {
	enum dialect_id dialect;
	/* The one model that is asked for, raw: whoever is permitted and has that name (routing/name.h), no other; nobody
	 * has: ERR_MODEL_UNKNOWN. Absent: by the request's preferences. */
	struct slice model;
	bool only;            /* no provider of another format is asked */
	uint64_t image_bytes; /* of the body, base64 of images: these count by their number */
	uint64_t
		media_bytes; /* likewise, of documents and sounds: they have fewer tokens than bytes, nobody knows how many */
	bool loops;     /* its tool loops count: the ask's request has the calls of its history */
	bool cached_1h; /* it asks the provider to cache something for an hour */
	/* Nothing is sampled: the provider is asked how many tokens the request has. It costs no money and no tokens, has a
	 * rate of its own (plan.counts), and tells nothing about the health of those it was sent to. In the RESULT
	 * outcome.answer is the provider's {"input_tokens":N}; NULL: nobody could say, and an estimate has to do. With
	 * relay SILENT, no `loops`, no `cost`, and a request that is of no session and has no name. */
	bool counts;
	/* Instead of the settings' version of the format; absent: that. Header lines with their ends that go to the provider
	 * as they are; absent: none. */
	struct slice version, headers;
	/* The body, for each attempt; `body` is initialised, what it refers to must live until `done`. False: no
	 * memory. Calls nothing of the core. */
	bool (*write)(struct sampling_raw *raw, const struct sampling_target *target,
		      struct arena *into, struct gather *body);
	/* Whether a model takes the request: only such are asked. False: *why is the refusal, static or in the call's arena.
	 * NULL: all do. Calls nothing of the core. */
	bool (*suits)(struct sampling_raw *raw, const struct sampling_offer *offer,
		      struct fault *why);
	bool fetches; /* the provider adds content of its own: input may fill the model's window */
	/* What the answer cost beside its tokens, at most `most`: as the answer says, which is `answer`, or has come by .raw
	 * (NULL), and as `most` where nothing says it. NULL: nothing. */
	struct sampling_extra (*cost)(struct sampling_raw *raw,
				      const struct provider_answer *answer);
	struct sampling_extra most; /* of which money is reserved; where `cost` is not NULL */
	/* The core's: what `suits` said of the last model that it refused; err ERR_OK: of none. */
	struct fault unsuited;
	/* The ask's request as the core reads one, in place of what policy and limits have judged: once, in front of the
	 * first attempt at a provider of another format. ERR_OK, or *fault says why there is none. Calls nothing of the
	 * core. NULL: it is that from the beginning. */
	enum err (*cross)(struct sampling_raw *raw, struct arena *into, struct fault *fault);
	bool crossed; /* set by the core: that was done */
	/* Set by `write`: the most tokens that may be billed for the answer where that is not target->max_tokens, because
	 * less was asked for, or several answers. 0: it is. */
	uint64_t output_most;
	/* Of the call, instead of the ask's, once the answer streams; 0: that one. */
	nsec_t begun_deadline;
	/* What the last claim on limits found left, granted or not. */
	struct limit_left left;
};

/* One call. It lives, as all that its slices and pointers refer to, until sampling_end or sampling_abandon returns.
 * Absent slices: not said. */
struct sampling_ask {
	/* Found in the configuration that is in use at sampling_begin. NULL only for sampling_refused: not known. */
	const struct caller *caller;
	/* Looked at again before a further attempt, if the configuration has changed; NULL: that is not done. */
	const struct credentials *credentials;
	const struct sampling_ids *ids;
	/* The front's; all that the call makes lies here. */
	struct arena *arena;
	/* Decoded, its rules checked; the core changes it. NULL: nothing is sampled, only the session is looked up,
	 * begun or ended. */
	struct sampling_request *request;
	/* What the caller sent; counted as held (limits.held_bytes) until the call has ended. */
	struct slice body;
	struct slice at; /* where the request stands in the body, as a JSON path: "$.params" */
	nsec_t started, deadline; /* by net_now */
	uint64_t started_wall_ns;
	struct slice session; /* an id: 32 lower-case hexadecimal digits */
	struct slice
		begins; /* the id of a session that begins with this call, with the revision: */
	enum revision begins_revision;
	bool ends;               /* `session` ends */
	bool session_may_change; /* what is known of it may change the request: known() */
	struct slice cancel_id;  /* what cancels the call in its session: sampling_cancel */
	struct slice
		idempotency_key; /* the same request is answered once under that name; absent: under cancel_id */
	enum sampling_relay relay;
	struct sampling_raw *raw; /* NULL: the core writes the provider's request */
};

/* ---- what a front is told ---- */

enum sampling_end {
	SAMPLING_RESULT,  /* .result and what goes with it */
	SAMPLING_REFUSED, /* .fault, .data: policy, limits, routing, provider, deadline, drain */
	SAMPLING_COPY, /* .copy: what keep() gave for the first of several equal calls; .fault.err: how that ended */
	SAMPLING_NO_SAMPLE, /* there was no request: the session's part is done */
	SAMPLING_CANCELLED, /* by sampling_cancel: the caller still waits */
};

struct sampling_outcome {
	enum sampling_end end;
	/* The error of REFUSED and of a COPY, and its particulars for the front to write; texts are static or in the
	 * call's arena. `at` of the ask begins fault.path. data.extra: members of a JSON object. */
	struct fault fault;
	struct error_data data;
	struct slice copy;
	/* The provider's own answer, where the request was written by ask.raw and it has come whole; NULL: none has. Of a
	 * RESULT or of a failure; until sampling_end. */
	const struct provider_answer *answer;
	bool held;    /* the ask's body is counted as held, until the call ends */
	bool relayed; /* .delta or .raw has brought all of the answer that there is */
	/* Of RESULT. */
	/* Usage and adjustments are those of all attempts. An answer that has passed as a stream is not kept: it has no
	 * text here. */
	const struct sampling_result *result;
	uint64_t usd_nano;
	uint32_t attempts;
	bool schema_wanted; /* it answers a schema */
	struct slice model_id, provider;
};

/* One const row for each front. Members but name, digest and done may be NULL. All are called on the worker's thread, with
 * the owner that sampling_begin was given. `digest` and `known` only look and decide: they call nothing of the core. */
struct sampling_front {
	const char *name;

	/* Adds what is asked, and what shapes its answer, for finding copies under the same name. It begins with the front's
	 * name, so that what two fronts ask is never the same; only that of `sampling` does not, because gateways of earlier
	 * versions share its records. */
	void (*digest)(void *owner, struct sha256_sum *sum);

	/* What is known of the session that the call names, before anything else is decided; more than once if another
	 * gateway knows better. `there`: it is known, with that revision. ERR_OK: the call goes on, without the session
	 * if that is not there; the request may be changed. Else refused with *fault. NULL: goes on. */
	enum err (*known)(void *owner, bool there, uint32_t revision, struct fault *fault);

	/* For any relay but SILENT: limits have admitted the call, or it waits as a copy. Once; it may come from inside
	 * sampling_begin. From here on the front may begin its answer. */
	void (*admitted)(void *owner, nsec_t now);
	/* For relay PROGRESS: the provider's answer streams, and has so many bytes of output by now; 0 again for another
	 * attempt. An answer to a request that the front has written (ask.raw) does not stream. */
	void (*progress)(void *owner, uint64_t output_bytes, nsec_t now);
	/* For relay DELTAS: the next piece of the answer, in order; `raw`: the provider's bytes, which are those of an
	 * event stream; true: something of the answer has gone to the caller, so that no other attempt may follow. From
	 * inside, sampling_pause may be called, sampling_end and sampling_abandon may not. Where the answer does not
	 * stream, or has to be changed before anybody may see it, none comes: outcome.relayed. */
	void (*delta)(void *owner, const struct stream_delta *delta, nsec_t now);
	bool (*raw)(void *owner, struct slice bytes, nsec_t now);
	/* A piece of the answer is about to come: asks for what the three before touch (base/prefetch.h). */
	void (*prefetch)(const void *owner, enum prefetch step);

	/* What copies may be answered with: the answer's part that is the same for all, in the call's arena; absent: there
	 * is no memory for it. Once at most, before `done` or instead of it (sampling_abandon). NULL: copies are
	 * ERR_BUSY. */
	struct slice (*keep)(void *owner, const struct sampling_outcome *outcome);
	/* The outcome, once, never from inside sampling_begin; valid until sampling_end, which has to follow. */
	void (*done)(void *owner, const struct sampling_outcome *outcome);
	/* From inside sampling_end, sampling_abandon and sampling_refused: the front's own members of the log line. */
	void (*report)(const void *owner, struct log_request *line);
};

#endif
