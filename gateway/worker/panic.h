/* panic.h - last words: the hook of must(), and of abort() from anywhere else.
 *
 * Whoever works on a request says so in a context of its own thread. When a promise breaks, its step,
 * tenant and slabs are printed to stderr before the process aborts; never a body, never a key. What
 * runs then takes no lock and no memory. */
#ifndef GATEWAY_WORKER_PANIC_H
#define GATEWAY_WORKER_PANIC_H

#include "codec/base/slab.h"

struct panic_slab {
	const char *name;
	const struct slab *slab;
};

struct flow;

struct panic_context {
	const struct flow *const
		*flow; /* the one that is worked on, NULL inside: none; may be NULL */
	const struct panic_slab *slabs; /* of this thread; may be NULL */
	size_t slab_count;
};

/* This thread's context from now on; it must stay where it is, and its owner may change it at any
 * time. NULL: none. */
void panic_set_context(const struct panic_context *context);

/* Once per process: sets must()'s hook, and a handler of SIGABRT unless there is one already. */
void panic_install(void);

/* Writes the context's line to `fd`: what the hook prints. NULL: writes nothing. */
void panic_print(const struct panic_context *context, int fd);

#endif
