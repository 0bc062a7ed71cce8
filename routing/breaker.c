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

static bool blames(const struct breaker *breaker, uint64_t tenant)
{
	for (uint32_t i = 0; i < breaker_blamed(breaker); i++)
		if (breaker->blamed[i] == tenant)
			return true;
	return false;
}

static uint32_t place_of(uint64_t tenant)
{
	return (uint32_t)(tenant >> 32) %
	       BREAKER_WELL_MAX; /* tags are of a digest; the lowest bit is 1 */
}

static bool was_well(const struct breaker *breaker, const struct breaker_settings *settings,
		     uint64_t tenant, nsec_t now)
{
	const struct breaker_good *well = &breaker->well[place_of(tenant)];

	return tenant != 0 && well->of == tenant && well->at != 0 &&
	       now - well->at < settings->window;
}

/* When a call may go because it is open for all for failures of some tenants, of which this is none. */
static nsec_t fair_at(const struct breaker *breaker, const struct breaker_settings *settings,
		      uint64_t tenant, nsec_t now)
{
	if (breaker->only != 0 || breaker->blamed_count == 0 || blames(breaker, tenant))
		return NSEC_NEVER;
	return was_well(breaker, settings, tenant, now) ? now : breaker->fair_at;
}

/* Whoever asks. */
static nsec_t early(const struct breaker *breaker, const struct breaker_settings *settings)
{
	const nsec_t open = open_for(breaker, settings);
	const nsec_t longer = open > settings->open_first ? open - settings->open_first : 0;

	return breaker->until > longer ? breaker->until - longer : 0;
}

nsec_t breaker_early(const struct breaker *breaker, const struct breaker_settings *settings,
		     uint64_t tenant, nsec_t now)
{
	if (breaker->failing)
		return NSEC_NEVER;
	const nsec_t any = early(breaker, settings);
	const nsec_t fair = fair_at(breaker, settings, tenant, now);
	return fair < any ? fair : any;
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
	struct breaker_pass pass = { .began = now };

	if (!breaker->open)
		return pass;
	pass.opening = breaker->number;
	pass.spared = breaker_spares(breaker, tenant);
	if (!pass.spared && now >= early(breaker, settings)) {
		pass.probe = true;
		breaker->until = now + open_for(breaker, settings); /* should this be slow */
	} else if (!pass.spared && fair_at(breaker, settings, tenant, now) <= now) {
		pass.fair = true;
		if (!was_well(breaker, settings, tenant, now))
			breaker->fair_at = now + settings->open_first;
	}
	return pass;
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
	breaker->row = breaker->own = 0;
	breaker->halves[0] = breaker->halves[1] = (struct breaker_half){ 0 };
}

static void note_blamed(struct breaker *breaker, uint64_t of)
{
	if (breaker->well[place_of(of)].of == of)
		breaker->well[place_of(of)].at = 0;
	if (of == 0)
		breaker->blamed_count = 0;
	else if (!blames(breaker, of))
		breaker->blamed[breaker->blamed_count++ % BREAKER_BLAMED_MAX] = of;
}

/* While it is open. If it was open for one tenant, and this is another's failure, it is open for all from now on. */
static void note_failed(struct breaker *breaker, const struct breaker_settings *settings,
			uint64_t of, nsec_t now)
{
	if (breaker->only != 0 && breaker->only != of) {
		note_blamed(breaker, breaker->only);
		breaker->only = 0;
		breaker->fair_at = now + settings->open_first;
	}
	note_blamed(breaker, of);
}

/* Too many calls failed. Soon after another opening what was seen in that one still counts: the window
 * has hardly begun. */
static void trip(struct breaker *breaker, const struct breaker_settings *settings, uint64_t only,
		 nsec_t now)
{
	const uint32_t good = good_of_window(breaker);

	if (good != 0 || breaker->openings == 0)
		breaker->good = good;
	breaker->only = only;
	breaker->fair_at = now + settings->open_first;
	open_up(breaker, settings, now);
}

static void close_down(struct breaker *breaker, nsec_t now)
{
	breaker->open = false;
	breaker->only = 0;
	breaker->row = breaker->own = 0;
	breaker->closed_at = now;
	breaker->half_from = now;
}

/* ---- whose calls they were ---- */

static void note_answered(struct breaker *breaker, uint64_t of, nsec_t now)
{
	if (breaker->answered[0].of != of)
		breaker->answered[1] = breaker->answered[0];
	breaker->answered[0] = (struct breaker_good){ of, now };
	breaker->well[place_of(of)] = breaker->answered[0];
	if (breaker->own_of == of)
		breaker->own = 0;
}

/* When another tenant than that one was answered last; 0: never. */
static nsec_t others_answered(const struct breaker *breaker, uint64_t tenant)
{
	return breaker->answered[breaker->answered[0].of == tenant].at;
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
	if (breaker->row == 1)
		breaker->blamed_count = 0;
	note_blamed(breaker, of);
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

/* Nobody but that tenant is to suffer for it. */
static void count_own(struct breaker *breaker, const struct breaker_settings *settings, uint64_t of,
		      nsec_t now)
{
	breaker->own = breaker->own_of == of ? breaker->own + 1 : 1;
	breaker->own_of = of;
	if (breaker->own >= settings->row)
		trip(breaker, settings, of, now);
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

/* Others have seen it well, not long before one tenant's failures opened it. */
static bool others_are_served(const struct breaker *breaker,
			      const struct breaker_settings *settings, nsec_t now)
{
	const nsec_t last = others_answered(breaker, breaker->only);

	return breaker->only != 0 && last != 0 && now - last < settings->window;
}

static void end_probe(struct breaker *breaker, const struct breaker_settings *settings,
		      enum breaker_result result, uint64_t of, nsec_t now)
{
	const nsec_t closed_at = breaker->closed_at;

	if (result == BREAKER_GOOD) {
		const bool slowly = !others_are_served(breaker, settings, now);
		close_down(breaker, now);
		breaker->closed_at = slowly ? now : closed_at;
	} else if (result == BREAKER_BAD) {
		note_failed(breaker, settings, of, now);
		open_up(breaker, settings, now);
	} else {
		breaker->until = now;
	}
}

/* Beside the probes of the tenants that are to blame: a failure puts off none of theirs. */
static void end_fair(struct breaker *breaker, enum breaker_result result, uint64_t of, nsec_t now)
{
	if (result == BREAKER_GOOD)
		close_down(breaker, now);
	else if (result == BREAKER_BAD)
		note_blamed(breaker, of);
	else
		breaker->fair_at = now; /* it told nothing */
}

/* Of a tenant that it is not open for: whether it is not for all, either. What the other one has met is
 * forgotten. */
static void end_spared(struct breaker *breaker, const struct breaker_settings *settings,
		       enum breaker_result result, uint64_t of, nsec_t now)
{
	if (result == BREAKER_MUTE)
		return;
	breaker->openings = 0;
	if (result == BREAKER_GOOD) {
		breaker->only = 0;
		breaker->open = false; /* it was well: there is no slow start */
		return;
	}
	note_failed(breaker, settings, of, now);
	open_up(breaker, settings, now);
}

/* Late or not does not matter from here on: MUTE where others were answered meanwhile. */
static enum breaker_result without_late(const struct breaker *breaker, struct breaker_pass pass,
					enum breaker_result result, uint64_t of)
{
	if (result != BREAKER_LATE)
		return result;
	return of != 0 && others_answered(breaker, of) > pass.began ? BREAKER_MUTE : BREAKER_BAD;
}

/* While it is open. */
static void ended_open(struct breaker *breaker, const struct breaker_settings *settings,
		       struct breaker_pass pass, enum breaker_result result, uint64_t of,
		       nsec_t now)
{
	if (pass.opening == 0) {
		/* It began before: no probe, but shows that not one tenant alone fails. */
		if (result == BREAKER_BAD)
			note_failed(breaker, settings, of, now);
		return;
	}
	if (result != BREAKER_MUTE)
		count_open(breaker, result == BREAKER_GOOD);
	if (pass.opening != breaker->number)
		return;
	if (pass.spared)
		end_spared(breaker, settings, result, of, now);
	else if (pass.fair)
		end_fair(breaker, result, of, now);
	else if (pass.probe)
		end_probe(breaker, settings, result, of, now);
}

void breaker_ended(struct breaker *breaker, const struct breaker_settings *settings,
		   struct breaker_pass pass, enum breaker_result result, uint64_t of, nsec_t now)
{
	const enum breaker_result plain = without_late(breaker, pass, result, of);

	if (plain == BREAKER_GOOD)
		note_answered(breaker, of, now);
	if (breaker->open)
		ended_open(breaker, settings, pass, plain, of, now);
	else if (plain != BREAKER_MUTE)
		count(breaker, settings, plain == BREAKER_BAD, of, now);
	else if (result == BREAKER_LATE)
		count_own(breaker, settings, of, now);
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
