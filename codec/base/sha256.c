#define OPENSSL_SUPPRESS_DEPRECATED /* SHA256() and EVP fetch and allocate on every call; these do \
				       not */
#include "codec/base/sha256.h"

#include "codec/base/must.h"

#include <openssl/sha.h>

void sha256(struct slice s, uint8_t digest[SHA256_BYTES])
{
	SHA256_CTX ctx;

	must(SHA256_Init(&ctx) == 1);
	must(SHA256_Update(&ctx, s.at, s.len) == 1);
	must(SHA256_Final(digest, &ctx) == 1);
}

void sha256_hex(const uint8_t digest[SHA256_BYTES], size_t count, char *out)
{
	must(count <= 2 * (size_t)SHA256_BYTES);
	for (size_t i = 0; i < count; i++)
		out[i] = "0123456789abcdef"[digest[i / 2] >> (i % 2 == 0 ? 4 : 0) & 15];
}
