/* h2_guard_requests.c - what a connection may have begun, given up and kept waiting. */
#include "gateway/http/h2_guard.h"

/* A connection starts with all its tokens; time and answered requests give some back, so that an
 * honest client may cancel, ping and update as often as it likes, in proportion to its requests. */
enum { TOKENS_MAX = 1000, TOKENS_PER_S = 100, TOKENS_PER_ANSWER = 7 };

/* More aborted than answered requests: rapid reset (CVE-2023-44487), by which the client starts work
 * and pays nothing, or MadeYouReset (CVE-2025-8671), where h2o itself is made to reset. One that was at
 * a provider has cost a connection there, and counts twice. Those in flight count as if they were given
 * up: together they are never more than 100, which is also what one connection may have at once. Answers
 * may take long, so five a second may be given up without any. Answered requests count in advance too, up to
 * as many again: a client that works may stop at once what it has in flight.
 *
 * Who connects anew each time it is closed begins anew, too, and each time the most that is begun for nothing: so
 * a new connection has a third of that at once, and all of it after 272 ms. */
enum { ABORTED_MAX = 100, ABORTED_UNBEGUN = 1, ABORTED_GIVEN_UP = 2, BEGUN_MAX = 100 };
enum { ABORTED_PER_S = 5 * ABORTED_GIVEN_UP };
enum { BEGUN_FIRST = 32, ONE_MORE_PER = 4 * MSEC };

/* Likewise of bodies that do not end: a quarter at once, and all after this. Who has more is not closed for it, but waits. */
enum { BYTES_FIRST_PART = 4, ALL_BYTES_AFTER = 300 * MSEC };

/* A proxy that the operator trusts connects once, and stays: it is not made to wait for its age. */
enum { MANY = 16 };

const struct guard_bounds guard_one_caller = {
	.token_every = SEC / TOKENS_PER_S,
	.tokens_max = TOKENS_MAX,
	.aborted_max = ABORTED_MAX,
	.aborted_per_s = ABORTED_PER_S,
	.begun_first = BEGUN_FIRST,
	.begun_max = BEGUN_MAX,
	.bytes_times = 1,
};

const struct guard_bounds guard_many_callers = {
	.token_every = SEC / (MANY * TOKENS_PER_S),
	.tokens_max = MANY * TOKENS_MAX,
	.aborted_max = MANY * ABORTED_MAX,
	.aborted_per_s = MANY * ABORTED_PER_S,
	.begun_first = MANY * BEGUN_MAX,
	.begun_max = MANY * BEGUN_MAX,
	.bytes_times = MANY,
};

/* ---- requests that end ---- */
static void note_answered(struct h2_guard *guard)
{
	const struct guard_bounds *bounds = guard->bounds;

	guard->aborted -= ABORTED_GIVEN_UP;
	if (guard->aborted < -bounds->aborted_max)
		guard->aborted = -bounds->aborted_max;
	guard->tokens += TOKENS_PER_ANSWER;
	if (guard->tokens > bounds->tokens_max)
		guard->tokens = bounds->tokens_max;
}

void h2_guard_forgive(struct h2_guard *guard)
{
	if (guard->aborted <= 0)
		return;
	guard->aborted -= guard->bounds->aborted_per_s;
	if (guard->aborted < 0)
		guard->aborted = 0;
}

enum guard_verdict h2_guard_request_over(struct h2_guard *guard, enum guard_ending ending)
{
	switch (ending) {
	case GUARD_ANSWERED:
		note_answered(guard);
		return GUARD_PASS;
	case GUARD_UNBEGUN:
		guard->aborted += ABORTED_UNBEGUN;
		break;
	case GUARD_GIVEN_UP:
		guard->aborted += ABORTED_GIVEN_UP;
		break;
	}
	return guard->aborted > guard->bounds->aborted_max ? GUARD_ABORTED : GUARD_PASS;
}

/* ---- requests that begin ---- */
static uint32_t begun_max(const struct guard_bounds *bounds, nsec_t age)
{
	return age < (bounds->begun_max - bounds->begun_first) * (nsec_t)ONE_MORE_PER
		       ? bounds->begun_first + (uint32_t)(age / ONE_MORE_PER)
		       : bounds->begun_max;
}

bool h2_guard_may_begin(const struct h2_guard *guard, uint32_t begun, nsec_t age)
{
	const uint32_t aborted = guard->aborted > 0 ? (uint32_t)guard->aborted : 0;

	return aborted + ABORTED_GIVEN_UP * (begun + 1) <=
	       ABORTED_GIVEN_UP * begun_max(guard->bounds, age);
}

nsec_t h2_guard_more_in(const struct h2_guard *guard, nsec_t age)
{
	return begun_max(guard->bounds, age) < guard->bounds->begun_max
		       ? ONE_MORE_PER - age % ONE_MORE_PER
		       : 0;
}

/* ---- requests that wait ---- */
enum guard_verdict h2_guard_hold(struct h2_guard *guard, struct guard_budget *budget, size_t body,
				 nsec_t now)
{
	return guard_hold(budget, &guard->holder, body, h2_guard_bytes_max(guard, budget), now)
		       ? GUARD_PASS
		       : GUARD_UNFINISHED_BYTES;
}

void h2_guard_let_go(struct h2_guard *guard, struct guard_budget *budget, size_t body)
{
	guard_let_go(budget, &guard->holder, body);
}

nsec_t h2_guard_wait(const struct h2_guard *guard, const struct guard_budget *budget, nsec_t now)
{
	const size_t most = h2_guard_bytes_max(guard, budget);
	const size_t first = most / BYTES_FIRST_PART;
	const size_t has = guard->holder.bytes + guard->dropped;
	const nsec_t age = now - guard->began;
	if (has <= first || age >= ALL_BYTES_AFTER)
		return 0;
	const nsec_t due = (has - first) * ALL_BYTES_AFTER / (most - first);
	if (due <= age)
		return 0;
	return (due < ALL_BYTES_AFTER ? due : ALL_BYTES_AFTER) - age;
}
