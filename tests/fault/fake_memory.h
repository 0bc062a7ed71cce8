/* fake_memory.h - an arena of which every take can be made to fail.
 *
 * Stands in for codec/base/arena, whose object the linker therefore leaves out. */
#ifndef TESTS_FAULT_FAKE_MEMORY_H
#define TESTS_FAULT_FAKE_MEMORY_H

#include "codec/base/arena.h"

#define arena_take_more true_arena_take_more
#define arena_init_in true_arena_init_in
#define arena_give_end true_arena_give_end
#include "codec/base/arena.c"
#undef arena_take_more
#undef arena_init_in
#undef arena_give_end

/* The takes of a run, counted; the `fail`-th has no memory. 0: none has to fail. */
static struct {
	size_t count, fail;
} takes;

static bool take_fails(void)
{
	return ++takes.count == takes.fail;
}

void arena_init_in(struct arena *arena, struct arena_pool *pool, size_t cap, void *room,
		   size_t room_bytes)
{
	(void)room;
	(void)room_bytes;
	arena_init(arena, pool, cap);
}

void arena_give_end(struct arena *arena, char *from, char *end)
{
	(void)arena;
	(void)from;
	(void)end;
}

/* Every take comes here: an arena never has room left that could be taken in line. */
void *arena_take_more(struct arena *arena, size_t size)
{
	void *bytes = take_fails() ? NULL : true_arena_take_more(arena, size);

	arena->end = arena->at;
	return bytes;
}

#endif
