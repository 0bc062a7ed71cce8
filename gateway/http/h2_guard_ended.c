#include "gateway/http/h2_guard_ended.h"

#include "gateway/http/h2_guard.h"

#include <stdlib.h>

void guard_ends_fini(struct guard_ends *ends)
{
	free(ends->list);
	*ends = (struct guard_ends){ .list = NULL };
}

struct guard_ended *guard_ends_find(const struct guard_ends *ends, uint32_t stream)
{
	for (uint32_t i = 0; i < ends->count; i++)
		if (ends->list[i].stream == stream)
			return &ends->list[i];
	return NULL;
}

/* A refused stream that h2o has not seen yet must stay: its request would be taken for whole. */
static struct guard_ended *replace(struct guard_ends *ends)
{
	for (uint32_t i = 0; i < GUARD_ENDED_MAX; i++) {
		struct guard_ended *ended = &ends->list[(ends->oldest + i) % GUARD_ENDED_MAX];
		if (ended->refused && !ended->eaten)
			continue;
		ends->oldest = (ends->oldest + i + 1) % GUARD_ENDED_MAX;
		return ended;
	}
	return NULL;
}

struct guard_ended *guard_ends_add(struct guard_ends *ends, uint32_t stream)
{
	struct guard_ended *ended = guard_ends_find(ends, stream);

	if (ended != NULL)
		return ended;
	if (ends->list == NULL)
		ends->list = malloc(GUARD_ENDED_MAX * sizeof(*ends->list));
	if (ends->list == NULL)
		return NULL;
	ended = ends->count < GUARD_ENDED_MAX ? &ends->list[ends->count++] : replace(ends);
	if (ended != NULL)
		*ended = (struct guard_ended){ .stream = stream };
	return ended;
}

struct guard_ended *guard_ends_late(const struct guard_ends *ends, uint32_t *at, nsec_t patience,
				    nsec_t now)
{
	for (; *at < ends->count; ++*at) {
		struct guard_ended *ended = &ends->list[*at];
		if (!ended->asked && !ended->over && guard_ended_late(ended, patience, now))
			return ended;
	}
	return NULL;
}

void guard_ends_ate(struct guard_ends *ends, uint32_t waiting)
{
	for (uint32_t i = ends->count; i-- != 0;) {
		if (ends->list[i].stream == waiting)
			continue;
		ends->list[i].eaten = true;
		if (ends->list[i].over)
			ends->list[i] = ends->list[--ends->count];
	}
	if (ends->count < GUARD_ENDED_MAX)
		ends->oldest = 0;
}

enum guard_verdict h2_guard_refuses(const struct h2_guard *guard, uint32_t stream)
{
	const struct guard_ended *ended = guard_ends_find(&guard->ends, stream);

	if (ended == NULL || !ended->refused)
		return GUARD_PASS;
	return ended->no_room ? GUARD_UPLOADS : GUARD_BODY_TOO_LARGE;
}

/* Some at a time: each is a frame. A connection's window begins with 64 KiB. */
uint32_t h2_guard_open_window(struct h2_guard *guard)
{
	enum { AT_ONCE = 32 << 10 };
	const uint32_t by = guard->unopened;

	if (by < AT_ONCE)
		return 0;
	guard->unopened = 0;
	return by;
}
