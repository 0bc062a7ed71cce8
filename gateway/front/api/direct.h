/* direct.h - the fronts of the providers' own APIs, for callers of the same format: `POST /v1/messages` and
 * `POST /v1/chat/completions` (codec/api/api.h says what passes and what is changed).
 *
 * direct_request.c decides what a request asks and writes the provider's, direct_auto.c chooses among several models,
 * direct_client.c reads what a client says of itself, direct_answer.c and direct_heads.c write answers, direct_stream.c
 * passes event streams on, direct_cross.c translates for providers of another format; direct_copy.c is what has to do with
 * copies (Idempotency-Key), of JSON answers alone; direct_front.c drives them. direct_count.c has what is different of
 * `POST /v1/messages/count_tokens`; direct_now.h has the paths that are answered
 * at once. */
#ifndef GATEWAY_FRONT_API_DIRECT_H
#define GATEWAY_FRONT_API_DIRECT_H

#include "codec/api/api_error.h"
#include "codec/api/api_grants.h"
#include "codec/api/api_headers.h"
#include "codec/api/api_request.h"
#include "codec/api/api_stream.h"
#include "codec/cross/cross_stream.h"
#include "gateway/front/front.h"

enum { DIRECT_MAGIC = 0x44495245 };

enum { DIRECT_FIELDS = 8 + API_RETRY_HEADERS + API_RATE_HEADERS };

/* An answer's head, and a body where it is whole; all of it lies in the call's arena, or is static. */
struct direct_answer {
	int status;
	struct http_field fields[DIRECT_FIELDS];
	size_t field_count;
	struct gather body;
};

/* For a request whose answer may cost more, or less, than its tokens at the model's price. */
struct direct_paid {
	struct api_paid seen; /* of the attempt under way */
	/* Of the plan, which may go: */
	struct api_grants tiers; /* these alone */
	const uint64_t *factors;
};

/* What was read of a request; in the arena, once it is worth it. */
struct direct_asked {
	struct api_request request;
	struct sampling_request view;
	struct sampling_raw raw;
	struct direct_call *call;
	/* Of the plan, for the provider's request. */
	struct slice system;
	enum system_rule system_rule;
	bool user_dropped;
	/* Of the attempt that was written last, in the arena. */
	struct slice secrets[2]; /* what a provider's own words must not have: host and key */
	adjust_set adjustments;
	bool store_disabled;
	struct api_granted granted;
	uint64_t refused_there;   /* of the last offer's refused names those that it has */
	struct direct_paid *paid; /* in the arena; NULL: the answer costs its tokens */
	/* For a provider of another format. */
	uint32_t tokens_max; /* the plan's */
	bool schema;         /* cross_request.schema */
};

static inline struct direct_asked *direct_of_raw(struct sampling_raw *raw)
{
	return CONTAINER_OF(raw, struct direct_asked, raw);
}

/* Bytes on their way to the caller, in memory of their own: it goes back as soon as they have left. */
struct direct_piece {
	struct arena room;
	char *at;
	size_t len, size;
};

/* A stream to the caller. */
struct direct_stream {
	struct api_stream events;
	struct cross_stream
		*cross; /* instead of it, of a provider of another format; NULL: not so far */
	struct direct_piece filling, sending;
	struct slice
		last; /* the event that ends it, kept back until the core says that the answer is whole */
	struct slice error; /* the provider's own event of an error; absent: there was none */
	bool broken;        /* the answer cannot be passed on: nothing more is */
	bool begun, unsent; /* the head has left; a piece is on its way */
	bool paused, ended; /* the provider waits; nothing more is added */
	struct direct_call *call;
	struct net_timer ping; /* from the beginning to the end */
	nsec_t sent_at;        /* the last piece */
};

/* A row of each path: what is asked there, and by whom it is answered. */
struct direct_kind {
	enum api api;
	const struct front *front;
	const struct sampling_front *row; /* its callbacks' owner is a struct direct_call */
};

struct direct_call {
	struct front_request front; /* must be the first */
	struct sampling_call *call; /* NULL: not begun */
	struct http_exchange *exchange;
	struct front_host *host;
	uint32_t magic;
	const struct direct_kind *kind; /* NULL: answered at once */
	enum api api;                   /* its */
	bool kept;                      /* the answer is written: copies have it, too */
	enum err wrote; /* what was answered instead of the core's outcome; ERR_OK: that */
	const char *detail;
	const struct http_incoming *in;
	struct slice allow; /* methods that there are, for an answer of 405 */
	struct slice named; /* the model's name as it was asked for, raw; absent: not read */
	struct direct_asked *asked;   /* NULL: not read */
	struct direct_stream *stream; /* NULL: the caller has not asked for one */
	struct credentials shown;
	struct caller caller;
	nsec_t begun_deadline; /* of an answer whose stream has begun */
	struct log_agent agent;
	struct sampling_ask ask;
	struct sampling_ids ids;
	struct arena arena; /* begins in in->room */
	struct direct_answer answer;
};

extern const struct front direct_messages_front, direct_count_front, direct_chat_front;

/* The row of the core's callbacks; `owner` is a struct direct_call. */
extern const struct sampling_front direct_messages_sampling, direct_count_sampling,
	direct_chat_sampling;

/* ---- direct_front.c ---- */

/* A request that has just come, in `call`, of which .arena is set: one of no kind. `exchange` NULL: its body is still to
 * come. */
void direct_start(struct direct_call *call, enum api api, struct front_host *host,
		  struct http_exchange *exchange, const struct http_incoming *in);

/* As front.begin and front.expects. */
void *direct_begin(const struct direct_kind *kind, struct front_host *host,
		   struct http_exchange *exchange, const struct http_incoming *in);
bool direct_expects(const struct direct_kind *kind, struct front_host *host,
		    struct http_early *early, const struct http_incoming *in);
/* As front has them, with a struct direct_call. */
void direct_gone(void *request);
void direct_sent(void *request);
/* As sampling_front.done. */
void direct_done(void *owner, const struct sampling_outcome *outcome);

/* ---- direct_request.c ---- */

/* A request that has just come, in `call`, of which .arena, .api and .ids are set. */
void direct_init(struct direct_call *call, const struct http_incoming *in, uint64_t came_wall_ns);

/* Both false: refused, and the answer is written. Method, headers, caller; then the body: call->ask is whole. */
MUST_USE bool direct_read_head(struct direct_call *call, const struct front_host *host);
MUST_USE bool direct_read_body(struct direct_call *call, const struct front_host *host);

/* The caller, by its key or certificate, if the front is open to it. False: as above. */
MUST_USE bool direct_find_caller(struct direct_call *call, const struct front_host *host);

/* ---- direct_auto.c ---- */

/* Whom asked->raw asks for, by the name in the body: one model, or for `auto` whoever the caller prefers of those that
 * speak its format. What was read of the body is in call->asked. */
MUST_USE enum err direct_read_model(struct direct_call *call, struct fault *fault);

/* Gives the log line the name that was asked for, by which `sluice explain` decides once more, where routing found it in no
 * name of the model. */
void direct_report_name(const struct direct_call *call, struct log_request *line);

/* What the caller prefers, as it was sent; absent: nothing, or one model is asked for. */
struct slice direct_preferences(const struct direct_call *call);

/* ---- direct_grants.c ---- */

/* Whether the plan grants what call->asked has, and what money has to be reserved for it: call->asked->raw. ERR_OK, or
 * the refusal in *fault; ERR_BUSY: no memory. */
MUST_USE enum err direct_grant(struct direct_call *call, struct fault *fault);

/* Where the plan counts tool loops here: what policy and the core need for it, in call->asked. ERR_OK; ERR_BUSY: no
 * memory. */
MUST_USE enum err direct_count_loops(struct direct_call *call);

/* An attempt begins: what was seen of another one is forgotten. */
void direct_forget_paid(struct direct_asked *asked);

/* ---- direct_client.c ---- */

/* How long the caller's plan, and the caller, let the request take. False: refused, and the answer is written. */
MUST_USE bool direct_set_deadline(struct direct_call *call);

/* One line of the request's head: what the client says of its patience, and of itself for the log. */
void direct_note_header(struct direct_call *call, const struct http_field *field);

/* ---- direct_heads.c ---- */

/* The answer begins anew: its status, both names of the id, and what is left of the caller's rates, as far as it is
 * known. */
void direct_begin_answer(struct direct_call *call, int status, struct slice content_type);

/* One more header line; an absent value: none. */
void direct_add_field(struct direct_call *call, struct slice name, struct slice value);

/* When to try again; as api_retry_headers. */
void direct_add_retry(struct direct_call *call, int64_t wait_ms, bool never);

/* Which model answers, what was changed for it, and what its provider calls the answer (absent: not known). */
void direct_add_target(struct direct_call *call, struct slice model_id,
		       struct slice provider_request_id);
void direct_add_usd(struct direct_call *call, uint64_t nano);

/* ---- direct_answer.c ---- */

/* Status and the fields that every answer has; its body is call->answer.body, empty. */
void direct_begin_answer(struct direct_call *call, int status, struct slice content_type);

/* An error of our own as the answer. Returns false. */
bool direct_refuse(struct direct_call *call, const struct fault *fault,
		   const struct error_data *data);
bool direct_refuse_err(struct direct_call *call, enum err err);

/* The whole answer to an outcome: the provider's, or an error. Harmless when direct_keep has written it before. */
void direct_write(struct direct_call *call, const struct sampling_outcome *outcome);

/* Status and fields of a stream. */
void direct_write_stream_head(struct direct_call *call);

/* The last event of a stream that was broken; absent: no memory. */
MUST_USE struct slice direct_error_event(struct direct_call *call, const struct fault *fault,
					 const struct error_data *data);

/* The provider's own event of that error, as far as it may pass; absent: there is none, or it may not. */
MUST_USE struct slice direct_own_event(struct direct_call *call, enum err err);

void direct_report(const void *owner, struct log_request *line);

/* ---- direct_copy.c ---- */

/* Once the body is read: ask.idempotency_key. False: refused, and the answer is written. */
MUST_USE bool direct_read_once(struct direct_call *call);
/* As sampling_front has them. */
void direct_digest(void *owner, struct sha256_sum *sum);
struct slice direct_keep(void *owner, const struct sampling_outcome *outcome);
/* The answer of a copy (SAMPLING_COPY). */
void direct_write_copy(struct direct_call *call, const struct sampling_outcome *outcome);
/* ---- direct_cross.c: a provider of another format ---- */

/* As sampling_raw.cross. */
MUST_USE enum err direct_cross_request(struct sampling_raw *raw, struct arena *into,
				       struct fault *fault);
/* The body of a whole answer, or all events of a stream of which none has left. False: no memory. */
MUST_USE bool direct_cross_answer(struct direct_call *call, const struct sampling_outcome *outcome);
/* As sampling_front.delta. */
void direct_cross_take(void *owner, const struct stream_delta *delta, nsec_t now);
/* What is left of a stream that has begun; absent: no memory. */
MUST_USE struct slice direct_cross_end(struct direct_call *call,
				       const struct sampling_outcome *outcome);

/* ---- direct_stream.c ---- */

/* The caller has asked for a stream. False: no memory. */
MUST_USE bool direct_stream_init(struct direct_call *call);
/* Another attempt begins, and nothing of the one before has left. */
void direct_stream_restart(struct direct_call *call);
/* As sampling_front.raw. */
bool direct_stream_take(void *owner, struct slice bytes, nsec_t now);
/* Adds events, which are copied, and sends what can be sent; a caller that does not keep up lets the provider wait. */
void direct_stream_add(struct direct_call *call, const struct gather *events);
/* The outcome of a stream that has begun. */
void direct_stream_end(struct direct_call *call, const struct sampling_outcome *outcome);
/* What was given last has left. */
void direct_stream_ready(struct direct_call *call);
/* The call is going away; harmless where there is no stream, and twice. */
void direct_stream_over(struct direct_call *call);

/* Nothing that waits is needed any more; harmless likewise. */
void direct_stream_free(struct direct_call *call);

#endif
