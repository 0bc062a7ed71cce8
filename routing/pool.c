#include "routing/pool.h"

#include "codec/base/must.h"

#include <math.h>
#include <stddef.h>

/* What was seen fades: a peak soon, as one may be chance, the mean more slowly, so that a slow endpoint is
 * tried again by and by. */
static const double peak_half_ns = 2.0 * 1e9, mean_half_ns = 7.0 * 1e9;

/* Differences below these are noise: they must not keep equal endpoints from their shares. */
static const double latency_slack_ns = 50.0 * 1e6;
/* A peak stands out from the mean by that factor at least. */
static const double peak_times = 2;
static const double flight_slack = 8;
static const double clearly =
	0.75; /* the other one's cost has to be below so much of the first's */

static const double mean_fade = 0.1;
enum {
	CALLS_KEPT = 100,      /* the counts are halved at so many */
	CALLS_JUDGED = 10,     /* fewer say nothing */
	SLOW_TIMES = 4,        /* as slow as so many times its peers */
	BAD_MORE_PERCENT = 30, /* failures beyond those of its peers */
	EJECTIONS_MAX = 6,
};
static const double slow_more_ns = 100.0 * 1e6; /* and by so much at least */
static const nsec_t eject_for = 10 * SEC;       /* the first time; then twice that, and so on */

/* ---- latency --------------------------------------------------------------------------------- */

static double faded(double ns, double half_ns, nsec_t since, nsec_t now)
{
	return now <= since ? ns : ns * exp2(-(double)(now - since) / half_ns);
}

/* Up at once; down with time, but never below what was just seen. */
static void raise_peak(struct pool_load *load, nsec_t took, nsec_t now)
{
	const double before = faded(load->peak_ns, peak_half_ns, load->seen_at, now);

	load->peak_ns = (double)took > before ? (double)took : before;
	load->seen_at = now;
}

/* What a call is expected to take. A peak counts when it stands out: who has many calls sees higher
 * ones than who has few. What has not been seen for a while fades. */
static double expected(const struct pool_load *load, nsec_t now)
{
	const double peak = faded(load->peak_ns, peak_half_ns, load->seen_at, now);
	const double mean = faded(load->mean_ns, mean_half_ns, load->seen_at, now);

	return peak > mean * peak_times ? peak : mean;
}

void pool_note(struct pool_load *load, bool good, nsec_t took, nsec_t now)
{
	if (load->calls >= CALLS_KEPT) {
		load->calls /= 2;
		load->bad /= 2;
	}
	load->calls++;
	load->bad += good ? 0 : 1;
	if (took == 0)
		return;
	if (good) {
		/* What is old counts less than what is new. */
		const double kept =
			load->mean_ns == 0 ? 0
					   : faded(1 - mean_fade, mean_half_ns, load->seen_at, now);
		load->mean_ns = (double)took + kept * (load->mean_ns - (double)took);
	}
	raise_peak(load, took, now);
}

void pool_waited(struct pool_load *load, nsec_t waited, nsec_t now)
{
	if ((double)waited > expected(load, now))
		raise_peak(load, waited, now);
}

/* ---- picking --------------------------------------------------------------------------------- */

static bool has(uint64_t set, uint32_t n)
{
	return (set >> n & 1) != 0;
}

/* Without those ejected and those of other zones, unless nobody would be left. */
static uint64_t narrow(const struct pool_member *members, uint32_t count, uint64_t may, nsec_t now)
{
	uint64_t own = 0, ejected = 0;

	for (uint32_t i = 0; i < count; i++) {
		own |= (uint64_t)members[i].own_zone << i;
		ejected |= (uint64_t)(members[i].load->ejected_until > now) << i;
	}
	const uint64_t well = (may & ~ejected) != 0 ? may & ~ejected : may;
	const int near = __builtin_popcountll(own & well);
	return near > 0 && near * 2 >= __builtin_popcountll(own) ? own & well : well;
}

static int64_t weight_of(const struct pool_member *member)
{
	must(member->weight >= 1 && member->share >= 1 && member->share <= POOL_SHARE_FULL);
	return (int64_t)member->weight * member->share;
}

/* Sums over those who may be picked. */
struct all {
	int64_t weight;
	double in_flight;
};

/* Everybody gains his weight, the richest has his turn and pays for all: the turns of a heavy member
 * lie between those of the light ones. */
static uint32_t next_turn(struct pool_member *members, uint32_t count, uint64_t may,
			  struct all *all)
{
	uint32_t best = POOL_MEMBERS_MAX;

	*all = (struct all){ 0 };
	for (uint32_t i = 0; i < count; i++) {
		if (!has(may, i))
			continue;
		members[i].turn += weight_of(&members[i]);
		all->weight += weight_of(&members[i]);
		all->in_flight += members[i].load->in_flight;
		if (best == POOL_MEMBERS_MAX || members[i].turn > members[best].turn)
			best = i;
	}
	must(best != POOL_MEMBERS_MAX);
	members[best].turn -= all->weight;
	return best;
}

/* By weight, `not` excepted; `rest` is the sum of the others' weights. */
static uint32_t draw(const struct pool_member *members, uint32_t count, uint64_t may, uint32_t not,
		     int64_t rest, uint64_t random)
{
	int64_t at = (int64_t)(random % (uint64_t)rest);
	uint32_t last = not ;

	for (uint32_t i = 0; i < count && at >= 0; i++) {
		if (i == not || !has(may, i))
			continue;
		at -= weight_of(&members[i]);
		last = i;
	}
	return last;
}

/* Calls in flight beside those that would be its fair part of all. The slack is in calls, whatever the
 * weight: so few come and go by chance. */
static double cost(const struct pool_member *member, double latency_ns, const struct all *all)
{
	const double fair = all->in_flight * (double)weight_of(member) / (double)all->weight;

	return (latency_ns + latency_slack_ns) * (member->load->in_flight + flight_slack) /
	       (fair + flight_slack);
}

/* What one knows of each of the two. Fading makes equal to the other one at most, not better: a slow one
 * is tried when it has its turn, and who has few calls gets no more of them. */
static void compare(const struct pool_load *one, const struct pool_load *other, nsec_t now,
		    double *a, double *b)
{
	*a = *b = 0;
	if (one->peak_ns == 0 || other->peak_ns == 0)
		return; /* nobody is preferred for being unknown */
	const double x = expected(one, now), y = expected(other, now);
	*a = fmax(x, fmin(one->mean_ns, y));
	*b = fmax(y, fmin(other->mean_ns, x));
}

static struct pool_drawn drawn(uint32_t member, double ns)
{
	return (struct pool_drawn){ member, (float)(ns / 1e6) };
}

struct pool_choice pool_pick(struct pool_member *members, uint32_t count, uint64_t may, nsec_t now,
			     uint64_t random)
{
	struct all all;

	must(count >= 1 && count <= POOL_MEMBERS_MAX && may != 0);
	if ((may & (may - 1)) == 0) { /* one alone: nothing to choose, and nobody's turn is lost */
		const uint32_t only = (uint32_t)__builtin_ctzll(may);
		return (struct pool_choice){ .member = only };
	}
	may = narrow(members, count, may, now);
	const uint32_t first = next_turn(members, count, may, &all);
	const int64_t rest = all.weight - weight_of(&members[first]);
	if (rest == 0)
		return (struct pool_choice){ .member = first };
	const uint32_t second = draw(members, count, may, first, rest, random);
	double a, b;
	compare(members[first].load, members[second].load, now, &a, &b);
	a = cost(&members[first], a, &all);
	b = cost(&members[second], b, &all);
	return (struct pool_choice){
		.member = b < a * clearly ? second : first,
		.drawn = { drawn(first, a), drawn(second, b) },
		.drawn_count = 2,
	};
}

/* ---- outliers -------------------------------------------------------------------------------- */

/* The middle one of the others' figures; the lower of two. NAN: there are none. */
static double median_of_others(const double *values, uint32_t count, uint32_t not )
{
	double sorted[POOL_MEMBERS_MAX];
	uint32_t n = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (i == not || isnan(values[i]))
			continue;
		uint32_t at = n++;
		for (; at > 0 && sorted[at - 1] > values[i]; at--)
			sorted[at] = sorted[at - 1];
		sorted[at] = values[i];
	}
	return n == 0 ? NAN : sorted[(n - 1) / 2];
}

/* How far it is off its peers: 1 and more is too far. */
static double excess(const double *latency, const double *bad, uint32_t count, uint32_t i)
{
	const double peers_ns = median_of_others(latency, count, i);
	const double peers_bad = median_of_others(bad, count, i);
	double slow = 0, failing = 0;

	if (!isnan(latency[i]) && !isnan(peers_ns) && latency[i] - peers_ns >= slow_more_ns)
		slow = latency[i] / (peers_ns * SLOW_TIMES);
	if (!isnan(bad[i]) && !isnan(peers_bad))
		failing = (bad[i] - peers_bad) * 100 / BAD_MORE_PERCENT;
	return slow > failing ? slow : failing;
}

static void eject(struct pool_load *load, nsec_t now)
{
	load->ejected_until = now + (eject_for << load->ejections);
	if (load->ejections < EJECTIONS_MAX - 1)
		load->ejections++;
	load->calls = load->bad = 0; /* judged anew when it is back */
	load->mean_ns = 0;
}

void pool_review(struct pool_member *members, uint32_t count, nsec_t now)
{
	double latency[POOL_MEMBERS_MAX], bad[POOL_MEMBERS_MAX];
	uint32_t out = 0, worst = POOL_MEMBERS_MAX;
	double most = 1;

	must(count <= POOL_MEMBERS_MAX);
	for (uint32_t i = 0; i < count; i++) {
		const struct pool_load *load = members[i].load;
		const bool judged = load->calls >= CALLS_JUDGED && load->ejected_until <= now;
		latency[i] = judged && load->mean_ns != 0 ? load->mean_ns : NAN;
		bad[i] = judged ? (double)load->bad / load->calls : NAN;
		out += load->ejected_until > now;
	}
	for (uint32_t i = 0; i < count; i++) {
		const double far = excess(latency, bad, count, i);
		if (far >= most) {
			most = far;
			worst = i;
		} else if (!isnan(bad[i]) && members[i].load->ejections > 0) {
			members[i].load->ejections--; /* a while without a reason */
		}
	}
	/* One a time: without it the others look different. */
	if (worst != POOL_MEMBERS_MAX && (out + 1) * 2 <= count)
		eject(members[worst].load, now);
}
