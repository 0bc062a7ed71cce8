/* sha256.c - codec/base/sha256.h in plain C (FIPS 180-4), for architectures whose libcrypto is not
 * installed (integration/test_codec_neon.py). */
#include "codec/base/sha256.h"

#include "codec/base/must.h"

#include <string.h>

enum { BLOCK = 64, LENGTH_AT = 56, ROUNDS = 64 };

/* What struct sha256_sum holds here. */
struct sum {
	uint64_t bytes;
	uint32_t h[8];
	uint8_t block[BLOCK];
};
_Static_assert(sizeof(struct sum) <= sizeof(struct sha256_sum), "it fits");

static uint32_t turned(uint32_t x, unsigned by)
{
	return x >> by | x << (32 - by);
}

static uint32_t load_big(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void extend(const uint8_t *block, uint32_t w[ROUNDS])
{
	for (unsigned i = 0; i < 16; i++)
		w[i] = load_big(block + 4 * i);
	for (unsigned i = 16; i < ROUNDS; i++) {
		uint32_t a = w[i - 15], b = w[i - 2];
		w[i] = w[i - 16] + w[i - 7] + (turned(a, 7) ^ turned(a, 18) ^ a >> 3) +
		       (turned(b, 17) ^ turned(b, 19) ^ b >> 10);
	}
}

static void mix(struct sum *s)
{
	static const uint32_t k[ROUNDS] = {
		0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
		0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
		0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
		0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
		0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
		0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
		0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
		0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
		0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
		0xc67178f2
	};
	uint32_t w[ROUNDS], v[8];

	extend(s->block, w);
	(void)memcpy(v, s->h, sizeof(v));
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint32_t e = v[4], a = v[0];
		uint32_t one = v[7] + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) +
			       ((e & v[5]) ^ (~e & v[6])) + k[i] + w[i];
		uint32_t two = (turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) +
			       ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
		(void)memmove(v + 1, v, 7 * sizeof(v[0]));
		v[4] += one;
		v[0] = one + two;
	}
	for (unsigned i = 0; i < 8; i++)
		s->h[i] += v[i];
}

static struct sum *own(struct sha256_sum *sum)
{
	return (struct sum *)(void *)sum->space;
}

void sha256_begin(struct sha256_sum *sum)
{
	*own(sum) = (struct sum){ .h = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
					 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 } };
}

void sha256_add(struct sha256_sum *sum, struct slice piece)
{
	struct sum *s = own(sum);

	for (size_t i = 0; i < piece.len; i++) {
		s->block[s->bytes++ % BLOCK] = (uint8_t)piece.at[i];
		if (s->bytes % BLOCK == 0)
			mix(s);
	}
}

void sha256_end(struct sha256_sum *sum, uint8_t digest[SHA256_BYTES])
{
	static const char zeros[BLOCK] = { 0 };
	struct sum *s = own(sum);
	const uint64_t bits = 8 * s->bytes;
	char length[8];

	for (unsigned i = 0; i < 8; i++)
		length[i] = (char)(bits >> (56 - 8 * i));
	sha256_add(sum, SLICE("\x80"));
	sha256_add(sum, slice_of(zeros, (LENGTH_AT + BLOCK - s->bytes % BLOCK) % BLOCK));
	sha256_add(sum, slice_of(length, sizeof(length)));
	must(s->bytes % BLOCK == 0);
	for (unsigned i = 0; i < SHA256_BYTES; i++)
		digest[i] = (uint8_t)(s->h[i / 4] >> (24 - 8 * (i % 4)));
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
