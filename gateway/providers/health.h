/* health.h - what one worker knows of providers: their endpoints, keys and models (DESIGN 2, 5).
 *
 * The state is kept by what it belongs to (provider, endpoint, path; these and a key, with
 * what that means for single models; provider, model), so
 * that it outlives configurations; a view finds it by the indices of one snapshot. Whatever a call in
 * flight refers to stays until the call has ended, even if no view names it any more. One worker's own:
 * no lock, no clock; the rules are those of routing/breaker, pool, keys, speed and retry. */
#ifndef GATEWAY_PROVIDERS_HEALTH_H
#define GATEWAY_PROVIDERS_HEALTH_H

#include "gateway/base/config.h"
#include "routing/breaker.h"
#include "routing/lessons.h"
#include "routing/pool.h"
#include "routing/route.h"
#include "routing/speed.h"

struct health;         /* of a worker */
struct health_view;    /* of one snapshot */
struct provider_state; /* of a provider: retry budget */
struct endpoint_state; /* of an endpoint: breaker, latency, calls in flight */
struct key_state;      /* of a key: cool-down, head-room */
struct model_state;    /* of a model: speed, facts learned */

/* NULL: memory. */
struct health *health_new(void);
/* Every view must have been freed and every choice ended. Accepts NULL. */
void health_free(struct health *health);

/* The states of a snapshot's providers and models, made where they are new; its settings of breakers and
 * retries are in force from here on, unless it fails. The configuration must outlive the view. `workers`: among so many
 * the caps of an endpoint are shared out. NULL: memory. */
struct health_view *health_view_new(struct health *health, const struct config *config,
				    uint32_t workers);
/* States that no other view and no call in flight refers to go with it. Accepts NULL. */
void health_view_free(struct health_view *view);

/* ---- routing ---- */

/* What stands for a tenant (limit_key) from here on, as 0 does for nobody's calls. */
uint64_t health_tenant(const uint8_t tenant[16]);

/* The models that this tenant cannot have now: of their provider every endpoint's breaker is open, or every key
 * cools. NULL: none (the usual case, which costs nothing). Valid until the next call for this view. */
const struct bitset *health_down(struct health_view *view, uint64_t tenant, nsec_t now);

/* Of hints seen before, for routing over that catalogue. */
struct hint_memory *health_hints(struct health_view *view);

/* How fast models answered, by catalogue index; brought up to date by health_tick. */
const struct model_speed *health_speeds(const struct health_view *view);

/* How long until the tenant's call of `model` (its catalogue index) can be made, by its breakers and keys: 0: it
 * can now; NSEC_NEVER: nobody knows. */
nsec_t health_wait(const struct health_view *view, uint32_t model, uint64_t tenant, nsec_t now);

/* ---- one attempt ---- */

/* What an attempt goes to, by what that is: the same in every snapshot and process. Zero: nowhere. */
struct health_target {
	uint64_t model, endpoint;
	uint64_t key; /* 0: none */
};

/* What is known of a request before an attempt at one provider. */
struct health_tried {
	uint64_t endpoints;        /* that its earlier attempts went to: a bit each */
	uint32_t keys;             /* likewise */
	struct health_target held; /* where it belongs, for its tool loop is known there */
	uint64_t tenant;           /* whose it is */
};

/* Where an attempt goes. Embedded in the request; zero: none. */
struct health_choice {
	uint32_t provider, endpoint; /* indices of the view's snapshot */
	uint32_t key;                /* likewise; UINT32_MAX: the provider has none */
	struct pool_drawn
		drawn[POOL_DRAWN_MAX]; /* the endpoints it was chosen between, for the log */
	uint32_t drawn_count;          /* 0: there was but one */
	bool held;                     /* the endpoint is the one where it belongs */
	/* private */
	struct health *health;
	struct provider_state *of;
	struct endpoint_state *at; /* NULL: ended, or never made */
	struct key_state *with;
	struct model_state *model;
	struct breaker_pass pass;
	uint64_t tenant;
	bool began;
	bool several_keys; /* of the endpoint */
};

/* An endpoint and a key for an attempt at `model` (its catalogue index): those where it belongs if it was not
 * there, and nothing speaks against them; those in `tried` (NULL: nothing is known) only where there is no
 * other. `random`: any 64 bits. The endpoint counts it as in flight from here
 * on, so health_ended is due for every choice. Else the choice is left as it is:
 * ERR_PROVIDER_NO_ATTEMPT: every breaker is open; ERR_BUSY: every endpoint has as many calls and
 * waiting ones as it may; ERR_PROVIDER_RATE: every key cools after a rate limit, ERR_PROVIDER_BILLING:
 * its money is spent; *wait is set for all of them, to when it makes sense to ask again. */
MUST_USE enum err health_choose(struct health_view *view, uint32_t model,
				const struct health_tried *tried, nsec_t now, uint64_t random,
				struct health_choice *choice, nsec_t *wait);

/* What that is; not after it has ended. */
struct health_target health_target_of(const struct health_choice *choice);
/* Models that a target means: of those that the provider calls by one name all. False: there is none. */
bool health_models_at(const struct health_view *view, const struct health_target *target,
		      struct bitset *out);

/* The attempt is being sent. Without it health_ended takes nothing from the outcome. */
void health_began(struct health_choice *choice, nsec_t now);

/* The head of its answer is there: what it says of the key's limits. Not needed where the outcome has the
 * headers: they are gone when an answer in pieces has ended. */
void health_note_rates(struct health_choice *choice, const struct provider_headers *headers,
		       nsec_t now, uint64_t wall_ns);

/* Whether the endpoint of the choice counts tokens, as far as is known; and that it does not, for an hour. Both before
 * health_ended. */
bool health_counts_tokens(const struct health_choice *choice, nsec_t now);
void health_note_uncounted(struct health_choice *choice, nsec_t now);

/* What became of an attempt. */
struct health_outcome {
	enum err err;           /* ERR_OK, ERR_PROVIDER_*, ERR_DEADLINE, ERR_CANCELLED, ... */
	enum blame blame;       /* of a failure that was answered */
	uint16_t status;        /* 0: no answer came */
	int64_t retry_after_ms; /* below 0: not said */
	nsec_t took;     /* from the request sent to the answer's end, or until given up; 0: not
				    sent */
	nsec_t first;    /* from the request sent to the answer's first token, of a streamed
				    answer; 0: not streamed */
	nsec_t patience; /* the provider's first_byte timeout: our own deadline is the
				    endpoint's fault only if it had as long */
	bool answered;   /* the first byte of an answer had come */
	bool late;       /* it, or the next one, did not come within the provider's timeouts */
	bool held_up;    /* it was not read all the time: `took` tells nothing of the model */
	uint64_t output_tokens; /* 0: not known */
	uint32_t unseen_max;    /* tokens that may have been written before the first
						   byte came: all that it may have, unless streamed */
	const struct provider_headers *headers; /* NULL: no answer */
	uint64_t wall_ns;
};

/* It is over: takes what the outcome tells and lets go. Exactly once per choice; harmless for one that
 * was never made. `outcome` NULL: it was never sent, or says nothing. */
void health_ended(struct health_choice *choice, const struct health_outcome *outcome, nsec_t now);

/* ---- retries ---- */

/* A request of this tenant (limit_key) goes to `provider` for the first time. */
void health_note_request(struct health_view *view, const uint8_t tenant[16], uint32_t provider,
			 nsec_t now);
/* Whether it may be tried once more, at `provider`: takes from the budgets of both, or of none. */
MUST_USE bool health_may_retry(struct health_view *view, const uint8_t tenant[16],
			       uint32_t provider, nsec_t now);

/* ---- lessons ---- */

/* Refusals taught this about a model, and without it a request was answered (routing/lessons.h). */
void health_learn(struct health_view *view, uint32_t model, learn_set facts,
		  const struct lesson_from *from, nsec_t now);
/* The parameters that the tenant's (limit_key) requests to this model are sent without. */
learn_set health_learned(const struct health_view *view, uint32_t model, const uint8_t tenant[16],
			 nsec_t now);
/* All that is known of it; NULL: nothing. */
const struct lessons *health_lessons(const struct health_view *view, uint32_t model, nsec_t now);

/* ---- active checks, metrics ---- */

/* An active check of that endpoint (its provider's name, its identity and path) has come to a new
 * verdict. False keeps it out like an open breaker, whatever its calls say; true lets it be tried at
 * once. Unknown endpoints are ignored. */
void health_checked(struct health *health, struct slice provider, struct slice identity,
		    struct slice path, bool up, nsec_t now);

/* About once a second: speeds, outliers. */
void health_tick(struct health_view *view, nsec_t now);

/* enum breaker_state (routing/breaker.h), as the metric counts it. */
uint32_t health_breaker(const struct health_view *view, uint32_t provider, uint32_t endpoint,
			nsec_t now);
/* For how long a key cools, at the endpoint and for the model where it does for longest; 0: nowhere. */
nsec_t health_cools(const struct health_view *view, uint32_t provider, uint32_t key, nsec_t now);

#endif
