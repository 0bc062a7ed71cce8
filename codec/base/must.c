#include "codec/base/must.h"

#include <stdio.h>
#include <stdlib.h>

static must_hook_fn *must_hook;

void must_set_hook(must_hook_fn *hook)
{
	must_hook = hook;
}

_Noreturn void must_failed(const char *what, const char *file, int line, const char *function)
{
	must_hook_fn *hook = must_hook;

	must_hook = NULL; /* a failure inside the hook must not come back here */
	(void)fprintf(stderr, "sluice: %s:%d: %s: must(%s) failed\n", file, line, function, what);
	if (hook != NULL)
		hook(what, file, line, function);
	abort();
}
