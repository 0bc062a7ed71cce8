/* quota.h - one limit as GCRA, and what a request costs before it is known.
 *
 * A rate limit's debt is one number, the theoretical arrival time (TAT): the time at which the
 * bucket is full again. It fits an atomic and a Redis key. Beside it stands the rate that it was
 * written under: the same debt is another time under another rate (quota_rescale). Time is an
 * argument. Pure: the store applies what quota_take returns. */
#ifndef TENANTS_QUOTA_H
#define TENANTS_QUOTA_H

#include "codec/base/attr.h"
#include "codec/base/clock.h"
#include "codec/base/err.h"
#include "codec/mcp/sampling.h"

struct quota_limit {
	uint64_t per_minute; /* units a minute, 1 .. QUOTA_RATE_MAX */
	uint64_t burst;      /* units at once, >= 1 */
};

#define QUOTA_RATE_MAX UINT64_C(60000000000)
#define QUOTA_TAT_MAX ((UINT64_C(1) << 60) - 1) /* 36 years: four bits of a word are left */

/* Nanoseconds that `n` units occupy: ceil(n * 60e9 / per_minute), exact for every rate. Saturates.
 */
nsec_t quota_cost(struct quota_limit limit, uint64_t n);

/* Takes `n` units or none. On success *next is the state to store. ERR_RATE_LIMITED sets *wait_ns
 * to the shortest time after which the same call can succeed; ERR_OVER_BURST means that none can.
 */
MUST_USE enum err quota_take(nsec_t tat, struct quota_limit limit, uint64_t n, nsec_t now,
			     nsec_t *next, nsec_t *wait_ns);

/* The state after the true cost is known: `taken` units were reserved, `used` are due. Used beyond
 * taken becomes debt (TAT moves into the future), less is given back, never below `now`'s full
 * bucket. */
nsec_t quota_settle(nsec_t tat, struct quota_limit limit, uint64_t taken, uint64_t used,
		    nsec_t now);

/* The same for a state that was written under another rate than `limit`'s, which reserved: more debt is
 * rounded up, what is given back is rounded down. */
nsec_t quota_settle_under(nsec_t tat, uint64_t written, uint64_t taken, uint64_t used, nsec_t now);

/* Units that could be taken now. */
uint64_t quota_remaining(nsec_t tat, struct quota_limit limit, nsec_t now);

/* ---- limits that change ----
 *
 * After a change, and for as long as gateways with old and with new figures share a state, each of them
 * finds debt that another one wrote. */

/* A time under `from` units a minute, both at least 1, as it is under `to`. Saturates. */
nsec_t quota_convert(nsec_t time, uint64_t from, uint64_t to, bool up);

/* The TAT of the same debt under `limit`, rounded up; `written`: the rate it has been written under (0:
 * not known, then it counts as limit's own). No more than what `most` units occupy. */
nsec_t quota_rescale(nsec_t tat, uint64_t written, struct quota_limit limit, uint64_t most,
		     nsec_t now);

/* A use of a burst: units << 28 | the second of its last use; 0: none. A state remembers two. Any that was
 * used in the last minute is among them, or one that is larger, unless there are more than two in turn: then
 * the larger of them are remembered for longer. */
enum { QUOTA_USES = 2, QUOTA_USE_LASTS_S = 60 };
uint64_t quota_use(uint64_t burst, nsec_t now);
uint64_t quota_use_before(uint64_t burst, uint64_t age_s, nsec_t now);
uint64_t quota_use_burst(uint64_t use);

/* Which of `uses` is to be replaced, by *next, when `burst` is used. When that is what stands there, nothing
 * is left to be done; else to be asked again. */
uint32_t quota_uses_note(const uint64_t uses[QUOTA_USES], uint64_t burst, nsec_t now,
			 uint64_t *next);

/* The largest burst used in the last minute, `burst` included: no debt that was taken is larger. */
uint64_t quota_uses_most(const uint64_t uses[QUOTA_USES], uint64_t burst, nsec_t now);

/* A larger burst than `burst` was used, and is not any more: then debt beyond what is still used is cut,
 * once, since quota_uses_note replaces that use. */
bool quota_uses_ended(const uint64_t uses[QUOTA_USES], uint64_t burst, nsec_t now);

/* The state of a rate in a store. */
struct quota_state {
	nsec_t tat;
	uint64_t written; /* units a minute; 0: not known */
	uint64_t uses[QUOTA_USES];
};

/* The TAT that a take under `limit` finds. */
nsec_t quota_read(const struct quota_state *state, struct quota_limit limit, nsec_t now);

/* The state that a take under `limit` begins with. */
void quota_align(struct quota_state *state, struct quota_limit limit, nsec_t now);

/* Price of a model in pico-USD (1e-12) per token: 3.0 USD per million tokens = 3,000,000. */
struct price {
	uint64_t input, output, cache_read, cache_write;
	uint64_t cache_write_1h; /* of a cache that lasts an hour */
};

/* DESIGN 5: (bytes / 4 + 1,600 per image + max_tokens), rounded up. `bytes`: the provider request's
 * body without the base64 of its images. */
uint64_t quota_token_estimate(uint64_t bytes, uint32_t images, uint32_t max_tokens);

/* Upper bound in nano-USD, rounded up: (bytes + 1,600 per image + 2,000) x max(input, cache_write). No request of
 * ours asks a provider to cache anything, for an hour least of all, so that price is not part of the bound: who passes on
 * one that does gives it as cache_write. + max_tokens x output. Saturates. */
uint64_t quota_usd_bound(uint64_t bytes, uint32_t images, uint32_t max_tokens,
			 const struct price *price);

/* The same of a prompt of so many tokens: quota_usd_bound of quota_prompt_bound. */
uint64_t quota_prompt_bound(uint64_t bytes, uint32_t images);
uint64_t quota_usd_bound_of(uint64_t prompt, uint32_t max_tokens, const struct price *price);

enum { QUOTA_FACTOR_ONE = 1000000 };

/* Each price times a factor in millionths, rounded up. Saturates. */
void quota_price_times(struct price *price, uint64_t millionths);

/* Adds `count` x `each`. Saturates. */
uint64_t quota_add_each(uint64_t sum, uint64_t count, uint64_t each);

/* Nano-USD of a finished attempt, rounded up. */
uint64_t quota_usd_used(const struct usage *usage, const struct price *price);

/* The signs of an answer whose usage never came. */
struct quota_seen {
	uint64_t bytes;   /* of its text, arguments and thinking: their own, not the events' */
	uint64_t deltas;  /* events that brought some of them: no token comes in two */
	uint64_t counted; /* the provider's own last count */
	uint64_t
		timed; /* tokens that a model writes in the time; 0 where it writes what is not shown */
};

/* Its output tokens, estimated: the largest of these, three bytes a token; `most` (max_tokens) at most. */
uint64_t quota_output_seen(const struct quota_seen *seen, uint64_t most);

/* Whether `tokens`, in or out, can be what a request with that estimate (quota_token_estimate) had, of a model
 * with a window of `context` tokens (0: not known): no token is shorter than a byte, nor beyond the window. */
bool quota_is_credible(uint64_t tokens, uint64_t estimate, uint64_t context);

/* UTC calendar: days since the epoch, and months since year 0, of a wall-clock second. */
uint32_t quota_day(uint64_t wall_s);
uint32_t quota_month(uint64_t wall_s);

/* The second in which the day or the month of `wall_s` is over. */
uint64_t quota_day_end(uint64_t wall_s);
uint64_t quota_month_end(uint64_t wall_s);

#endif
