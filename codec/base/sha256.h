/* sha256.h - SHA-256 by libcrypto, and its hex forms. */
#ifndef CODEC_BASE_SHA256_H
#define CODEC_BASE_SHA256_H

#include "codec/base/slice.h"

#include <stdint.h>

enum { SHA256_BYTES = 32 };

void sha256(struct slice s, uint8_t digest[SHA256_BYTES]);

/* The same over pieces: sha256_begin, sha256_add as often as there are some, sha256_end. */
struct sha256_sum {
	uint64_t space[14]; /* libcrypto's context */
};
void sha256_begin(struct sha256_sum *sum);
void sha256_add(struct sha256_sum *sum, struct slice piece);
/* A text among others: its length goes before it, so that no two rows of texts give the same digest. */
void sha256_add_text(struct sha256_sum *sum, struct slice text);
void sha256_end(struct sha256_sum *sum, uint8_t digest[SHA256_BYTES]);

/* `count` lower-case hex digits of the digest's front into `out`; at most 64, no NUL. */
void sha256_hex(const uint8_t digest[SHA256_BYTES], size_t count, char *out);

#endif
