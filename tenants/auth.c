#include "tenants/auth.h"

static uint64_t eight_at(const void *at)
{
	uint64_t eight;

	(void)memcpy(&eight, at, sizeof(eight));
	return eight;
}

/* Whether eight bytes are visible ASCII: none below '!', none above '~'. */
static bool eight_visible(const char *at)
{
	const uint64_t ones = UINT64_MAX / 255, high = ones << 7;
	const uint64_t eight = eight_at(at);

	return (((eight - ones * '!') | (eight + ones) | eight) & high) == 0;
}

static bool visible(struct slice s)
{
	if (s.len < 8) {
		for (size_t i = 0; i < s.len; i++)
			if (s.at[i] <= ' ' || s.at[i] > '~')
				return false;
		return true;
	}
	for (size_t i = 0; i + 8 < s.len; i += 8)
		if (!eight_visible(s.at + i))
			return false;
	return eight_visible(s.at + s.len - 8); /* some for the second time */
}

struct slice auth_credentials(struct slice header)
{
	static const struct slice absent = { NULL, 0 };
	const struct slice scheme = SLICE("Bearer "); /* as nearly all write it */

	header = slice_trim(header);
	if (header.len < scheme.len || !slice_eq_nocase(slice_of(header.at, scheme.len), scheme))
		return absent;
	/* One space or more (RFC 9110 11.4); none is part of a key. */
	const struct slice found =
		slice_trim(slice_of(header.at + scheme.len, header.len - scheme.len));
	return visible(found) ? found : absent;
}

/* All bits set when the digests are equal, else 0; no branch depends on their bytes. */
static uint32_t same_mask(const uint8_t a[SHA256_BYTES], const uint8_t b[SHA256_BYTES])
{
	uint64_t difference = 0;

	for (size_t i = 0; i < SHA256_BYTES; i += 8)
		difference |= eight_at(a + i) ^ eight_at(b + i);
	/* The highest bit of either is set, unless there is no difference. */
	return (uint32_t)(((difference | (0 - difference)) >> 63) - 1);
}

const struct tenant_key *auth_find_digest(const struct tenants *registry,
					  const uint8_t digest[SHA256_BYTES])
{
	static const uint8_t nobody[SHA256_BYTES] = { 0 }; /* what empty places compare with */
	uint32_t found = 0;

	const size_t place = tenants_digest_hash(digest);
	for (size_t i = 0; i < registry->digest_probes; i++) {
		const uint32_t entry = registry->by_digest[(place + i) & registry->digest_mask];
		const uint8_t *candidate = entry == 0 ? nobody : registry->keys[entry - 1].digest;
		found |= entry & same_mask(candidate, digest);
	}
	return found == 0 ? NULL : &registry->keys[found - 1];
}

const struct tenant_key *auth_find(const struct tenants *registry, struct slice key)
{
	uint8_t digest[SHA256_BYTES];

	sha256(key, digest);
	return auth_find_digest(registry, digest);
}
