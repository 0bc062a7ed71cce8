#include "gateway/state/state.h"

#include "codec/base/sha256.h"

static bool same_loop(const struct state_loop *a, const struct state_loop *b)
{
	return state_key_none(&a->id) == state_key_none(&b->id) && a->known == b->known &&
	       a->rounds == b->rounds && a->tokens == b->tokens && a->usd == b->usd &&
	       memcmp(&a->target, &b->target, sizeof(a->target)) == 0;
}

static bool same_text(struct slice a, struct slice b)
{
	return slice_absent(a) == slice_absent(b) && slice_eq(a, b);
}

bool state_load_same(const struct state_load *guess, const struct state_load *answer)
{
	if (!same_loop(&guess->loop, &answer->loop) || guess->cut != answer->cut ||
	    (guess->found == NULL) != (answer->found == NULL))
		return false;
	for (uint32_t i = 0; guess->found != NULL && i < guess->block_count; i++)
		if (!same_text(guess->found[i], answer->found[i]))
			return false;
	return true;
}

struct state_key state_key_of(enum state_kind kind, struct slice tenant, struct slice server,
			      struct slice session, struct slice name)
{
	const char first = (char)kind;
	uint8_t digest[SHA256_BYTES];
	struct sha256_sum sum;
	struct state_key key;

	sha256_begin(&sum);
	sha256_add(&sum, slice_of(&first, 1));
	sha256_add_text(&sum, tenant);
	sha256_add_text(&sum, server);
	sha256_add_text(&sum, session);
	sha256_add_text(&sum, name);
	sha256_end(&sum, digest);
	(void)memcpy(key.at, digest, sizeof(key.at));
	return key;
}
