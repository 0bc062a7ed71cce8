/* fake_upstream.h - the provider's side. Stands in for upstream. */
#ifndef TESTS_FAULT_FAKE_UPSTREAM_H
#define TESTS_FAULT_FAKE_UPSTREAM_H

#include "tests/fault/world.h"

struct upstream {
	char unused;
};
struct upstream_pool {
	char unused;
};
static struct upstream the_upstream;
static struct upstream_pool the_pool;

const struct upstream_limits upstream_limits_default;

struct upstream *upstream_new(struct net_loop *loop, const struct upstream_limits *limits)
{
	(void)loop;
	(void)limits;
	return &the_upstream;
}

struct upstream_pool *upstream_pool_for(struct upstream *up, const struct endpoint *endpoint,
					char *problem, size_t room)
{
	(void)up;
	(void)endpoint;
	(void)snprintf(problem, room, "for a test");
	return &the_pool;
}

void upstream_set_prefetch(struct upstream *up, upstream_prefetch_fn *prefetch)
{
	(void)up;
	(void)prefetch;
}

void upstream_bound_answers(struct upstream *up, size_t bytes)
{
	(void)up;
	(void)bytes;
}

void upstream_mark(struct upstream *up)
{
	(void)up;
}

bool upstream_is_marked(const struct upstream *up, struct slice identity)
{
	(void)up;
	(void)identity;
	return false;
}

void upstream_sweep(struct upstream *up)
{
	(void)up;
}

void upstream_resolved(struct upstream *up, struct slice identity,
		       const struct upstream_address *addresses, uint32_t count)
{
	(void)up;
	(void)identity;
	(void)addresses;
	(void)count;
}

struct upstream_counts upstream_count(const struct upstream *up, struct slice identity)
{
	(void)up;
	(void)identity;
	return (struct upstream_counts){ 0 };
}

void upstream_start(struct upstream_pool *pool, struct upstream_call *call)
{
	must(pool == &the_pool && world.call == NULL && call->done != NULL);
	must(call->request_count > 0 && call->deadline > world.now);
	struct sha256_sum sum;
	sha256_begin(&sum);
	for (uint32_t i = 0; i < call->request_count; i++)
		sha256_add(&sum, slice_of(call->request[i].iov_base, call->request[i].iov_len));
	sha256_end(&sum, world.sent);
	world.call = call;
}

void upstream_cancel(struct upstream_call *call)
{
	if (world.call == call)
		world.call = NULL;
}

void upstream_pause(struct upstream_call *call)
{
	call->paused = true;
}

void upstream_resume(struct upstream_call *call)
{
	call->paused = false;
}

void upstream_holds(struct upstream_call *call, size_t bytes)
{
	must(call == world.call && call->in_pieces);
	call->kept = bytes;
}

void upstream_enough(struct upstream_call *call, bool good)
{
	must(call == world.call && call->in_pieces);
	call->wish = good ? UPSTREAM_ENOUGH : UPSTREAM_BAD;
}

bool upstream_is_sent(const struct upstream_call *call)
{
	(void)call;
	return true;
}

uint32_t upstream_address_count(const struct upstream_pool *pool)
{
	(void)pool;
	return 1;
}

void upstream_hold(struct upstream_pool *pool)
{
	(void)pool;
}

void upstream_let_go(struct upstream_pool *pool)
{
	(void)pool;
}

void upstream_finish(struct upstream_call *call)
{
	if (call->buffer == NULL)
		return;
	call->buffer = NULL;
	must(world.buffers > 0);
	world.buffers--;
}

#endif
