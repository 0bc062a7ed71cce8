/* sha256.h - SHA-256 by libcrypto, and its hex forms. */
#ifndef CODEC_BASE_SHA256_H
#define CODEC_BASE_SHA256_H

#include "codec/base/slice.h"

#include <stdint.h>

enum { SHA256_BYTES = 32 };

void sha256(struct slice s, uint8_t digest[SHA256_BYTES]);

/* `count` lower-case hex digits of the digest's front into `out`; at most 64, no NUL. */
void sha256_hex(const uint8_t digest[SHA256_BYTES], size_t count, char *out);

#endif
