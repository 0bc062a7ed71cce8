/* must.h - checks that stay on in release builds.
 *
 * must() states what only our own bug can break; what the world can cause is an enum err. It never
 * judges bytes from a socket, the store or a file. A failure calls the hook (the gateway's prints
 * step, tenant and slabs, and never a secret) and aborts. */
#ifndef CODEC_BASE_MUST_H
#define CODEC_BASE_MUST_H

#include <stdint.h>

#define must(condition) \
	((condition) ? (void)0 : must_failed(#condition, __FILE__, __LINE__, __func__))

/* `object` is not NULL and begins with the `magic` of its type. */
#define must_obj(object, expected_magic) \
	must((object) != NULL && (object)->magic == (uint32_t)(expected_magic))

typedef void must_hook_fn(const char *what, const char *file, int line, const char *function);

/* Called once, before abort(), on the thread that failed. NULL: only the line on stderr. */
void must_set_hook(must_hook_fn *hook);

_Noreturn void must_failed(const char *what, const char *file, int line, const char *function);

#endif
