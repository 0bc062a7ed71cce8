/* wrap_own.h - a gateway of the wrapper's own, for a provider's key alone: the same binary with a configuration made here,
 * on a UNIX socket in a private directory. It has the memory store and one worker, and ends with this process however that
 * ends. */
#ifndef GATEWAY_WRAP_WRAP_OWN_H
#define GATEWAY_WRAP_WRAP_OWN_H

#include "codec/base/attr.h"
#include "gateway/wrap/wrap_text.h"

#include <stdbool.h>
#include <sys/types.h>

/* A provider by the name that --provider takes. */
struct wrap_provider {
	const char *name, *variable; /* the environment variable that has its key */
	const char *base_url;
};

/* NULL: there is none of that name. */
const struct wrap_provider *wrap_provider_find(const char *name);

struct wrap_own_ask {
	const struct wrap_provider *provider;
	const char *model;       /* NULL: the cheapest that the catalogue has of it */
	const char *base_url;    /* NULL: the provider's own */
	const char *usd_per_day; /* a number's text */
};

struct wrap_own {
	pid_t pid; /* 0: none was started */
	char directory[64];
	char url[128]; /* unix:PATH */
	char key[33];
};

/* Starts it and waits until it can be asked. The provider's key is in the environment. False after putting what is wrong
 * into `problem`, of `room` bytes; wrap_own_stop is right in any case. */
MUST_USE bool wrap_own_start(struct wrap_own *own, const struct wrap_own_ask *ask, char *problem,
			     size_t room);

/* Ends it and removes its files. */
void wrap_own_stop(struct wrap_own *own);

/* Its configuration, as JSON, for tests. `digest` is of its key, in hex. False: the model is not known, and where. */
MUST_USE bool wrap_own_settings(struct wrap_text *out, const struct wrap_own_ask *ask,
				const char *socket, const char *digest, char *problem, size_t room);

#endif
