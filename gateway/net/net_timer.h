/* net_timer.h - the heap behind net_timer_set: timers by due time, earliest first.
 *
 * A binary heap of pairs, so that sifting does not touch the timers themselves. It knows no clock
 * and no loop: its caller says what time it is. */
#ifndef GATEWAY_NET_NET_TIMER_H
#define GATEWAY_NET_NET_TIMER_H

#include "gateway/net/net.h"

struct net_timer_slot {
	nsec_t due;
	struct net_timer *timer;
};

struct net_timer_heap {
	struct net_timer_slot
		*slots; /* slots[0] is unused: a timer's place is its index, 0 is none */
	uint32_t count, room;
};

/* An empty heap with room for `room` timers (at least 1). False when memory is refused. */
MUST_USE bool net_timer_heap_init(struct net_timer_heap *heap, uint32_t room);
/* Forgets all timers; they keep their places and must not be used again. */
void net_timer_heap_fini(struct net_timer_heap *heap);

/* Sets or moves. The heap grows when it must; out of memory ends the process, as in h2o. */
void net_timer_heap_set(struct net_timer_heap *heap, struct net_timer *timer, nsec_t due);
/* Harmless when not set. */
void net_timer_heap_stop(struct net_timer_heap *heap, struct net_timer *timer);

/* When the earliest timer is due; NSEC_NEVER when there is none. */
nsec_t net_timer_heap_due(const struct net_timer_heap *heap);
/* Takes out one timer that is due at `now`, the earliest; NULL when none is. Timers due at the same
 * time come in any order. */
MUST_USE struct net_timer *net_timer_heap_pop(struct net_timer_heap *heap, nsec_t now);

#endif
