#include "tenants/quota.h"

#include "codec/base/must.h"

__extension__ typedef unsigned __int128 wide; /* products of two 64-bit numbers */

enum {
	IMAGE_TOKENS = 1600,        /* the most a provider counts for one image (DESIGN 5) */
	PROMPT_SLACK_TOKENS = 2000, /* what a provider adds to a prompt by itself */
	BYTES_PER_TOKEN = 4,
	BYTES_PER_SEEN_TOKEN = 3, /* of output: rather too many tokens than too few */
	SECONDS_PER_DAY = 86400,
};

static uint64_t saturate(wide value)
{
	return value > UINT64_MAX ? UINT64_MAX : (uint64_t)value;
}

static uint64_t add(uint64_t a, uint64_t b)
{
	return saturate((wide)a + b);
}

static uint64_t subtract(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* ---- rates ---- */

nsec_t quota_cost(struct quota_limit limit, uint64_t n)
{
	must(limit.per_minute >= 1 && limit.per_minute <= QUOTA_RATE_MAX);
	if (n <= (UINT64_MAX - QUOTA_RATE_MAX) / (60 * SEC)) /* 128-bit division is a call */
		return (n * 60 * SEC + limit.per_minute - 1) / limit.per_minute;
	return saturate(((wide)n * 60 * SEC + limit.per_minute - 1) / limit.per_minute);
}

/* How far beyond `now` the bucket may be drained: its burst, cut where time itself would end. */
static nsec_t room(struct quota_limit limit, nsec_t now)
{
	const nsec_t burst = quota_cost(limit, limit.burst);

	return burst < subtract(QUOTA_TAT_MAX, now) ? burst : subtract(QUOTA_TAT_MAX, now);
}

enum err quota_take(nsec_t tat, struct quota_limit limit, uint64_t n, nsec_t now, nsec_t *next,
		    nsec_t *wait_ns)
{
	const nsec_t cost = quota_cost(limit, n), most = room(limit, now);
	/* Debt may already lie further ahead than the burst reaches. */
	const nsec_t drained = subtract(tat, now);

	if (n > limit.burst || cost > most)
		return ERR_OVER_BURST;
	if (drained > most - cost) {
		*wait_ns = drained - (most - cost);
		return ERR_RATE_LIMITED;
	}
	*next = now + drained + cost;
	return ERR_OK;
}

nsec_t quota_settle(nsec_t tat, struct quota_limit limit, uint64_t taken, uint64_t used, nsec_t now)
{
	/* The difference of two costs, not the cost of the difference: rounding then cancels, and a
	 * settled take leaves what a take of the true number would have left. */
	const nsec_t reserved = quota_cost(limit, taken), due = quota_cost(limit, used);

	if (due >= reserved)
		return smaller(add(larger(tat, now), due - reserved), QUOTA_TAT_MAX);
	return larger(subtract(tat, reserved - due), now);
}

nsec_t quota_settle_under(nsec_t tat, uint64_t written, uint64_t taken, uint64_t used, nsec_t now)
{
	const struct quota_limit limit = { .per_minute = written };

	if (used >= taken)
		return quota_settle(tat, limit, 0, used - taken, now);
	return larger(subtract(tat, saturate((wide)(taken - used) * 60 * SEC / written)), now);
}

uint64_t quota_remaining(nsec_t tat, struct quota_limit limit, nsec_t now)
{
	const nsec_t left = subtract(room(limit, now), subtract(tat, now));
	const uint64_t units = saturate((wide)left * limit.per_minute / (60 * SEC));

	return units < limit.burst ? units : limit.burst;
}

/* ---- limits that change ---- */

nsec_t quota_convert(nsec_t time, uint64_t from, uint64_t to, bool up)
{
	return from == to ? time : saturate(((wide)time * from + (up ? to - 1 : 0)) / to);
}

nsec_t quota_rescale(nsec_t tat, uint64_t written, struct quota_limit limit, uint64_t most,
		     nsec_t now)
{
	uint64_t debt = subtract(tat, now);

	if (debt == 0)
		return tat;
	if (written != 0)
		debt = quota_convert(debt, written, limit.per_minute, true);
	return smaller(add(now, smaller(debt, quota_cost(limit, most))), QUOTA_TAT_MAX);
}

enum { SECOND_BITS = 28 }; /* eight years, and a burst above it: QUOTA_RATE_MAX at most */
#define SECOND_MASK ((UINT64_C(1) << SECOND_BITS) - 1)
#define USE_BURST_MAX (UINT64_MAX >> SECOND_BITS)
_Static_assert(USE_BURST_MAX >= QUOTA_RATE_MAX, "every burst of a plan fits");

uint64_t quota_use_before(uint64_t burst, uint64_t age_s, nsec_t now)
{
	return smaller(burst, USE_BURST_MAX) << SECOND_BITS | ((now / SEC - age_s) & SECOND_MASK);
}

uint64_t quota_use(uint64_t burst, nsec_t now)
{
	return quota_use_before(burst, 0, now);
}

uint64_t quota_use_burst(uint64_t use)
{
	return use >> SECOND_BITS;
}

/* A use that is not over yet may be later than `now`: clocks of two threads that are read at other times. */
static bool is_later(uint64_t use, nsec_t now)
{
	return ((use - now / SEC) & SECOND_MASK) <= SECOND_MASK / 2;
}

static bool lasts(uint64_t use, nsec_t now)
{
	return is_later(use, now) || ((now / SEC - use) & SECOND_MASK) <= QUOTA_USE_LASTS_S;
}

static bool has_ended(uint64_t use, uint64_t burst, nsec_t now)
{
	return quota_use_burst(use) > burst && !lasts(use, now);
}

uint32_t quota_uses_note(const uint64_t uses[QUOTA_USES], uint64_t burst, nsec_t now,
			 uint64_t *next)
{
	const uint64_t use = quota_use(burst, now);
	const uint32_t least = quota_use_burst(uses[1]) < quota_use_burst(uses[0]);

	*next = use;
	for (uint32_t i = 0; i < QUOTA_USES; i++)
		if (has_ended(uses[i], burst, now))
			return i;
	for (uint32_t i = 0; i < QUOTA_USES; i++)
		if (quota_use_burst(uses[i]) == quota_use_burst(use)) {
			*next = is_later(uses[i], now) ? uses[i] : use;
			return i;
		}
	for (uint32_t i = 0; i < QUOTA_USES; i++)
		if (!lasts(uses[i], now))
			return i;
	/* Both last. The least of three is remembered as the one above it. */
	if (quota_use_burst(uses[least]) > burst)
		*next = is_later(uses[least], now) ? uses[least]
						   : quota_use(quota_use_burst(uses[least]), now);
	return least;
}

uint64_t quota_uses_most(const uint64_t uses[QUOTA_USES], uint64_t burst, nsec_t now)
{
	for (uint32_t i = 0; i < QUOTA_USES; i++)
		if (lasts(uses[i], now))
			burst = larger(burst, quota_use_burst(uses[i]));
	return burst;
}

bool quota_uses_ended(const uint64_t uses[QUOTA_USES], uint64_t burst, nsec_t now)
{
	return has_ended(uses[0], burst, now) || has_ended(uses[1], burst, now);
}

nsec_t quota_read(const struct quota_state *state, struct quota_limit limit, nsec_t now)
{
	if (state->written == limit.per_minute && !quota_uses_ended(state->uses, limit.burst, now))
		return state->tat;
	return quota_rescale(state->tat, state->written, limit,
			     quota_uses_most(state->uses, limit.burst, now), now);
}

void quota_align(struct quota_state *state, struct quota_limit limit, nsec_t now)
{
	uint64_t next;
	uint32_t at;

	state->tat = quota_read(state, limit, now);
	state->written = limit.per_minute;
	while (at = quota_uses_note(state->uses, limit.burst, now, &next), state->uses[at] != next)
		state->uses[at] = next;
}

/* ---- what a request costs ---- */

static uint64_t with_images(uint64_t bytes, uint32_t images)
{
	return add(bytes, (uint64_t)images * IMAGE_TOKENS);
}

uint64_t quota_token_estimate(uint64_t bytes, uint32_t images, uint32_t max_tokens)
{
	const uint64_t text = bytes / BYTES_PER_TOKEN + (bytes % BYTES_PER_TOKEN != 0);

	return add(with_images(text, images), max_tokens);
}

/* Adds count x price to a sum of pico-USD that saturates too. */
static wide plus_price(wide sum, uint64_t count, uint64_t price)
{
	return __builtin_add_overflow(sum, (wide)count * price, &sum) ? ~(wide)0 : sum;
}

static uint64_t pico_to_nano(wide pico)
{
	return saturate(pico / 1000 + (pico % 1000 != 0));
}

/* No token is shorter than a byte. */
uint64_t quota_prompt_bound(uint64_t bytes, uint32_t images)
{
	return add(with_images(bytes, images), PROMPT_SLACK_TOKENS);
}

uint64_t quota_usd_bound_of(uint64_t prompt, uint32_t max_tokens, const struct price *price)
{
	wide sum = plus_price(0, prompt, larger(price->input, price->cache_write));

	return pico_to_nano(plus_price(sum, max_tokens, price->output));
}

uint64_t quota_usd_bound(uint64_t bytes, uint32_t images, uint32_t max_tokens,
			 const struct price *price)
{
	return quota_usd_bound_of(quota_prompt_bound(bytes, images), max_tokens, price);
}

static uint64_t times(uint64_t price, uint64_t millionths)
{
	const wide product = (wide)price * millionths;

	return saturate(product / QUOTA_FACTOR_ONE + (product % QUOTA_FACTOR_ONE != 0));
}

void quota_price_times(struct price *price, uint64_t millionths)
{
	if (millionths == QUOTA_FACTOR_ONE)
		return;
	price->input = times(price->input, millionths);
	price->output = times(price->output, millionths);
	price->cache_read = times(price->cache_read, millionths);
	price->cache_write = times(price->cache_write, millionths);
	price->cache_write_1h = times(price->cache_write_1h, millionths);
}

uint64_t quota_add_each(uint64_t sum, uint64_t count, uint64_t each)
{
	return add(sum, saturate((wide)count * each));
}

uint64_t quota_usd_used(const struct usage *usage, const struct price *price)
{
	/* A provider whose cache counters exceed its total is charged for what it says of the cache. */
	const uint64_t cached = add(usage->cache_read, usage->cache_write);
	const uint64_t hour = smaller(usage->cache_write_1h, usage->cache_write);
	wide sum = plus_price(0, subtract(usage->input, cached), price->input);

	sum = plus_price(sum, usage->cache_read, price->cache_read);
	sum = plus_price(sum, usage->cache_write - hour, price->cache_write);
	if (hour != 0)
		sum = plus_price(sum, hour, price->cache_write_1h);
	return pico_to_nano(plus_price(sum, usage->output, price->output));
}

uint64_t quota_output_seen(const struct quota_seen *seen, uint64_t most)
{
	const uint64_t written =
		seen->bytes / BYTES_PER_SEEN_TOKEN + (seen->bytes % BYTES_PER_SEEN_TOKEN != 0);
	const uint64_t tokens =
		larger(larger(written, seen->deltas), larger(seen->counted, seen->timed));

	return tokens < most ? tokens : most;
}

bool quota_is_credible(uint64_t tokens, uint64_t estimate, uint64_t context)
{
	const uint64_t bytes = saturate((wide)estimate * BYTES_PER_TOKEN);

	return tokens <= larger(add(bytes, PROMPT_SLACK_TOKENS), context);
}

/* ---- calendar ---- */

uint32_t quota_day(uint64_t wall_s)
{
	return (uint32_t)(wall_s / SECONDS_PER_DAY);
}

uint32_t quota_month(uint64_t wall_s)
{
	enum { EPOCH_TO_MARCH_0 = 719468, DAYS_PER_400_YEARS = 146097, DAYS_PER_4_YEARS = 1461 };
	/* Years that begin in March end in the leap day, so that months have fixed offsets. With the days
	 * that three of four centuries leave out every fourth year has one. */
	const uint64_t days = wall_s / SECONDS_PER_DAY + EPOCH_TO_MARCH_0;
	const uint64_t century = (4 * days + 3) / DAYS_PER_400_YEARS;
	const uint64_t quarters = 4 * (days + century - century / 4) + 3;
	const uint64_t year = quarters / DAYS_PER_4_YEARS;
	const uint64_t day_of_year = quarters % DAYS_PER_4_YEARS / 4;
	const uint64_t month = (5 * day_of_year + 2) / 153 + 2; /* 0 is January of `year` */

	return (uint32_t)(year * 12 + month);
}

uint64_t quota_day_end(uint64_t wall_s)
{
	return ((uint64_t)quota_day(wall_s) + 1) * SECONDS_PER_DAY;
}

/* Asked where a request is refused, and not often: the days of the month are tried. */
uint64_t quota_month_end(uint64_t wall_s)
{
	uint64_t end = wall_s;

	do
		end = quota_day_end(end);
	while (quota_month(end) == quota_month(wall_s));
	return end;
}
