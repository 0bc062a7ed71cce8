#define OPENSSL_SUPPRESS_DEPRECATED /* SHA256() and EVP fetch and allocate on every call; these do \
				       not */
#include "codec/base/sha256.h"

#include "codec/base/must.h"

#include <endian.h>
#include <openssl/sha.h>

_Static_assert(sizeof(SHA256_CTX) <= sizeof(struct sha256_sum), "it fits");
_Static_assert(_Alignof(SHA256_CTX) <= _Alignof(struct sha256_sum), "it fits");

static SHA256_CTX *context(struct sha256_sum *sum)
{
	return (SHA256_CTX *)(void *)sum->space;
}

void sha256_begin(struct sha256_sum *sum)
{
	must(SHA256_Init(context(sum)) == 1);
}

void sha256_add(struct sha256_sum *sum, struct slice piece)
{
	must(SHA256_Update(context(sum), piece.at, piece.len) == 1);
}

void sha256_add_text(struct sha256_sum *sum, struct slice text)
{
	const uint64_t len = htole64(text.len);

	sha256_add(sum, slice_of((const char *)&len, sizeof(len)));
	sha256_add(sum, text);
}

void sha256_end(struct sha256_sum *sum, uint8_t digest[SHA256_BYTES])
{
	must(SHA256_Final(digest, context(sum)) == 1);
}

void sha256(struct slice s, uint8_t digest[SHA256_BYTES])
{
	struct sha256_sum sum;

	sha256_begin(&sum);
	sha256_add(&sum, s);
	sha256_end(&sum, digest);
}

void sha256_hex(const uint8_t digest[SHA256_BYTES], size_t count, char *out)
{
	must(count <= 2 * (size_t)SHA256_BYTES);
	for (size_t i = 0; i < count; i++)
		out[i] = "0123456789abcdef"[digest[i / 2] >> (i % 2 == 0 ? 4 : 0) & 15];
}
