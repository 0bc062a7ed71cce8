/* seal_secret.h - what texts are sealed with that callers keep for the gateway (identity/seal.h). */
#ifndef GATEWAY_BASE_SEAL_SECRET_H
#define GATEWAY_BASE_SEAL_SECRET_H

#include <stdint.h>

enum { SEAL_SECRET_BYTES = 32, SEAL_SECRETS_MAX = 16 };

/* Random bytes; never printed. */
struct seal_secret {
	uint8_t at[SEAL_SECRET_BYTES];
};

#endif
