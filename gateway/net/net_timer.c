#include "gateway/net/net_timer.h"

#include "codec/base/must.h"

#include <stdlib.h>

bool net_timer_heap_init(struct net_timer_heap *heap, uint32_t room)
{
	must(room >= 1);
	*heap = (struct net_timer_heap){ .room = room };
	heap->slots = malloc(((size_t)room + 1) * sizeof(*heap->slots));
	return heap->slots != NULL;
}

void net_timer_heap_fini(struct net_timer_heap *heap)
{
	free(heap->slots);
	*heap = (struct net_timer_heap){ .slots = NULL };
}

static void slot_put(struct net_timer_heap *heap, uint32_t place, struct net_timer_slot slot)
{
	heap->slots[place] = slot;
	slot.timer->place = place;
}

static void sift_up(struct net_timer_heap *heap, uint32_t place, struct net_timer_slot slot)
{
	while (place > 1 && slot.due < heap->slots[place / 2].due) {
		slot_put(heap, place, heap->slots[place / 2]);
		place /= 2;
	}
	slot_put(heap, place, slot);
}

static void sift_down(struct net_timer_heap *heap, uint32_t place, struct net_timer_slot slot)
{
	for (uint32_t child; (child = 2 * place) <= heap->count; place = child) {
		if (child < heap->count && heap->slots[child + 1].due < heap->slots[child].due)
			child++;
		if (slot.due <= heap->slots[child].due)
			break;
		slot_put(heap, place, heap->slots[child]);
	}
	slot_put(heap, place, slot);
}

/* `place` is free: the slot goes there, up or down. */
static void settle(struct net_timer_heap *heap, uint32_t place, struct net_timer_slot slot)
{
	if (place > 1 && slot.due < heap->slots[place / 2].due)
		sift_up(heap, place, slot);
	else
		sift_down(heap, place, slot);
}

static void grow(struct net_timer_heap *heap)
{
	must(heap->room <= UINT32_MAX / 4);
	heap->room *= 2;
	heap->slots = realloc(heap->slots, ((size_t)heap->room + 1) * sizeof(*heap->slots));
	must(heap->slots != NULL);
}

void net_timer_heap_set(struct net_timer_heap *heap, struct net_timer *timer, nsec_t due)
{
	uint32_t place = timer->place;
	must(place <= heap->count);
	timer->due = due;
	if (place != 0) {
		must(heap->slots[place].timer == timer);
	} else {
		if (heap->count == heap->room)
			grow(heap);
		place = ++heap->count;
	}
	settle(heap, place, (struct net_timer_slot){ due, timer });
}

void net_timer_heap_stop(struct net_timer_heap *heap, struct net_timer *timer)
{
	uint32_t place = timer->place;
	if (place == 0)
		return;
	must(place <= heap->count && heap->slots[place].timer == timer);
	timer->place = 0;
	struct net_timer_slot last = heap->slots[heap->count--];
	if (last.timer != timer)
		settle(heap, place, last);
}

nsec_t net_timer_heap_due(const struct net_timer_heap *heap)
{
	return heap->count == 0 ? NSEC_NEVER : heap->slots[1].due;
}

struct net_timer *net_timer_heap_pop(struct net_timer_heap *heap, nsec_t now)
{
	if (heap->count == 0 || heap->slots[1].due > now)
		return NULL;
	struct net_timer *timer = heap->slots[1].timer;
	net_timer_heap_stop(heap, timer);
	return timer;
}
