#include "routing/breaker.h"

#include "codec/base/must.h"

const struct breaker_settings breaker_settings_default = {
	.row = 5,
	.ratio = 0.5,
	.calls = 20,
	.window = 10 * SEC,
	.open_first = 1 * SEC,
	.open_max = 30 * SEC,
	.ramp = 10 * SEC,
};

enum {
	SHARE_LEAST = BREAKER_SHARE_FULL / 16,
	DOUBLINGS_MAX = 16,
	OFTEN = 4,        /* one of so many calls: who fails them does so now and then */
	CHANCE_TIMES = 3, /* who answers a third of its calls is asked as if it was well */
	LATELY = 16,      /* calls: what they told counts, earlier ones fade */
};

enum breaker_state breaker_state(const struct breaker *breaker, nsec_t now)
{
	if (breaker->failing)
		return BREAKER_OPEN;
	if (!breaker->open)
		return BREAKER_CLOSED;
	return now >= breaker->until ? BREAKER_HALF_OPEN : BREAKER_OPEN;
}

bool breaker_admits(const struct breaker *breaker, nsec_t now)
{
	return breaker_state(breaker, now) != BREAKER_OPEN;
}

bool breaker_spares(const struct breaker *breaker, uint64_t tenant)
{
	return breaker->only != 0 && breaker->only != tenant && !breaker->failing;
}

static nsec_t open_for(const struct breaker *breaker, const struct breaker_settings *settings)
{
	uint32_t doublings = breaker->openings - 1;

	must(breaker->openings > 0);
	doublings = doublings < DOUBLINGS_MAX ? doublings : DOUBLINGS_MAX;
	const nsec_t wait = settings->open_first << doublings;
	return wait < settings->open_max ? wait : settings->open_max;
}

nsec_t breaker_early(const struct breaker *breaker, const struct breaker_settings *settings)
{
	if (breaker->failing)
		return NSEC_NEVER;
	const nsec_t open = open_for(breaker, settings);
	const nsec_t longer = open > settings->open_first ? open - settings->open_first : 0;
	return breaker->until > longer ? breaker->until - longer : 0;
}

uint32_t breaker_chance(const struct breaker *breaker)
{
	const uint32_t chance = breaker->good * CHANCE_TIMES;

	if (breaker->failing)
		return 0;
	return chance < BREAKER_CHANCE_FULL ? chance : BREAKER_CHANCE_FULL;
}

struct breaker_pass breaker_began(struct breaker *breaker, const struct breaker_settings *settings,
				  uint64_t tenant, nsec_t now)
{
	if (!breaker->open)
		return (struct breaker_pass){ 0 };
	if (breaker_spares(breaker, tenant))
		return (struct breaker_pass){ breaker->number, .probe = true, .spared = true };
	const bool probe = now >= breaker->until || now >= breaker_early(breaker, settings);
	if (probe) /* for the next one, should this be slow */
		breaker->until = now + open_for(breaker, settings);
	return (struct breaker_pass){ .opening = breaker->number, .probe = probe };
}

/* Of the window's calls, how many are good; 0 where the row that ends it has hardly any failure before it:
 * then it is not one that fails now and then, but has died. */
static uint32_t good_of_window(const struct breaker *breaker)
{
	const uint64_t calls = (uint64_t)breaker->halves[0].calls + breaker->halves[1].calls;
	const uint64_t bad = (uint64_t)breaker->halves[0].bad + breaker->halves[1].bad;

	if (bad <= breaker->row || (bad - breaker->row) * OFTEN < calls - breaker->row)
		return 0;
	return (uint32_t)((calls - bad) * BREAKER_CHANCE_FULL / calls);
}

static void open_up(struct breaker *breaker, const struct breaker_settings *settings, nsec_t now)
{
	breaker->open = true;
	breaker->openings++;
	breaker->number += breaker->number == UINT32_MAX ? 2 : 1; /* never 0 */
	breaker->until = now + open_for(breaker, settings);
	breaker->row = 0;
	breaker->halves[0] = breaker->halves[1] = (struct breaker_half){ 0 };
}

/* Too many calls failed. Soon after another opening what was seen in that one still counts: the window
 * has hardly begun. */
static void trip(struct breaker *breaker, const struct breaker_settings *settings, uint64_t only,
		 nsec_t now)
{
	const uint32_t good = good_of_window(breaker);

	breaker->only = only;
	if (good != 0 || breaker->openings == 0)
		breaker->good = good;
	open_up(breaker, settings, now);
}

static void close_down(struct breaker *breaker, nsec_t now)
{
	breaker->open = false;
	breaker->only = 0;
	breaker->row = 0;
	breaker->closed_at = now;
	breaker->half_from = now;
}

/* Two halves in place of a list of all calls: the older half counts whole until it is dropped. */
static void turn_window(struct breaker *breaker, nsec_t window, nsec_t now)
{
	const nsec_t half = window / 2;

	if (now - breaker->half_from < half)
		return;
	breaker->halves[1] = breaker->halves[0];
	breaker->halves[0] = (struct breaker_half){ 0 };
	if (now - breaker->half_from >= window)
		breaker->halves[1] = (struct breaker_half){ 0 };
	breaker->half_from = now;
}

/* Whose `count` failures are if the last one is that of `of`, and those before were that of `before`. */
static uint64_t whose(uint32_t count, uint64_t before, uint64_t of)
{
	return count == 1 || before == of ? of : 0;
}

static void count_bad(struct breaker *breaker, uint64_t of)
{
	struct breaker_half *half = &breaker->halves[0];

	half->bad++;
	half->bad_of = whose(half->bad, half->bad_of, of);
	breaker->row++;
	breaker->row_of = whose(breaker->row, breaker->row_of, of);
}

/* *of: whose they are. */
static bool too_many(const struct breaker *breaker, const struct breaker_settings *settings,
		     uint64_t *of)
{
	const struct breaker_half *halves = breaker->halves;
	const uint64_t calls = (uint64_t)halves[0].calls + halves[1].calls;
	const uint64_t bad = (uint64_t)halves[0].bad + halves[1].bad;

	if (breaker->row >= settings->row) {
		*of = breaker->row_of;
		return true;
	}
	*of = halves[1].bad == 0 || halves[1].bad_of == halves[0].bad_of ? halves[0].bad_of : 0;
	return settings->ratio > 0 && calls >= settings->calls &&
	       (double)bad >= (double)calls * settings->ratio;
}

static void count(struct breaker *breaker, const struct breaker_settings *settings, bool bad,
		  uint64_t of, nsec_t now)
{
	turn_window(breaker, settings->window, now);
	breaker->halves[0].calls++;
	if (bad) {
		count_bad(breaker, of);
		if (too_many(breaker, settings, &of))
			trip(breaker, settings, of, now);
		return;
	}
	breaker->row = 0;
	if (breaker->openings != 0 && now - breaker->closed_at >= settings->open_max)
		breaker->openings = 0; /* it has stayed well: the next time is a first time */
}

/* A call that went while it is open. */
static void count_open(struct breaker *breaker, bool good)
{
	breaker->good -= breaker->good / LATELY;
	if (good)
		breaker->good += BREAKER_CHANCE_FULL / LATELY;
}

static void end_probe(struct breaker *breaker, const struct breaker_settings *settings,
		      enum breaker_result result, uint64_t of, nsec_t now)
{
	if (result == BREAKER_GOOD) {
		const nsec_t closed_at = breaker->only == 0 ? now : breaker->closed_at;
		close_down(breaker, now);
		breaker->closed_at = closed_at; /* others saw it well: they have no slow start */
	} else if (result == BREAKER_BAD) {
		breaker->only = of == breaker->only ? of : 0;
		open_up(breaker, settings, now);
	} else {
		breaker->until = now;
	}
}

/* Of a tenant that it is not open for: whether it is not for all, either. What the other one has met is
 * forgotten. */
static void end_spared(struct breaker *breaker, const struct breaker_settings *settings,
		       enum breaker_result result, nsec_t now)
{
	if (result == BREAKER_MUTE)
		return;
	breaker->only = 0;
	breaker->openings = 0;
	if (result == BREAKER_BAD)
		open_up(breaker, settings, now);
	else
		breaker->open = false; /* it was well: there is no slow start */
}

void breaker_ended(struct breaker *breaker, const struct breaker_settings *settings,
		   struct breaker_pass pass, enum breaker_result result, uint64_t of, nsec_t now)
{
	if (!breaker->open) {
		if (result != BREAKER_MUTE)
			count(breaker, settings, result == BREAKER_BAD, of, now);
		return;
	}
	if (pass.opening ==
	    0) { /* it began before: that is no probe, but shows that not one tenant alone fails */
		if (result == BREAKER_BAD && of != breaker->only)
			breaker->only = 0;
		return;
	}
	if (result != BREAKER_MUTE)
		count_open(breaker, result == BREAKER_GOOD);
	if (!pass.probe || pass.opening != breaker->number)
		return;
	if (pass.spared)
		end_spared(breaker, settings, result, now);
	else
		end_probe(breaker, settings, result, of, now);
}

void breaker_checked(struct breaker *breaker, bool passes, nsec_t now)
{
	const bool recovered = passes && breaker->failing;

	breaker->failing = !passes;
	if (!passes)
		return;
	if (recovered && !breaker->open)
		close_down(breaker, now); /* slow start for it, too */
	if (breaker->open && breaker->until > now)
		breaker->until = now;
}

uint32_t breaker_share(const struct breaker *breaker, const struct breaker_settings *settings,
		       nsec_t now)
{
	const nsec_t since = now - breaker->closed_at;

	if (breaker->closed_at == 0 || since >= settings->ramp)
		return BREAKER_SHARE_FULL;
	const uint64_t share = since * BREAKER_SHARE_FULL / settings->ramp;
	return share < SHARE_LEAST ? SHARE_LEAST : (uint32_t)share;
}
