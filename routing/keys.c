#include "routing/keys.h"

#include "codec/base/must.h"
#include "routing/rate_reset.h"

static const nsec_t rate_first = 1 * SEC, rate_most = 60 * SEC;
static const nsec_t said_most = 3600 * SEC; /* whatever the provider says */
static const nsec_t refused_for = 60 * SEC;
static const nsec_t spent_for = 3600 * SEC, spent_again = 60 * SEC;
enum { STRIKES_MAX = 16, SCARCE_PERCENT = 2 };

/* ---- cooling --------------------------------------------------------------------------------- */

static nsec_t least(nsec_t a, nsec_t b)
{
	return a < b ? a : b;
}

static nsec_t rate_wait(const struct key *key, int64_t retry_after_ms)
{
	if (retry_after_ms >= 0)
		return least((nsec_t)retry_after_ms * MSEC, said_most);
	return least(rate_first << key->strikes, rate_most);
}

/* A second refusal never shortens what the first one began: they come from calls side by side. */
static void cool(struct key *key, enum err why, nsec_t until, nsec_t again)
{
	if (key->why != ERR_OK && key->until >= until)
		return;
	key->why = why;
	key->until = until;
	key->again = again;
}

/* Calls side by side are refused side by side: that is one strike. */
static void limited(struct key *key, int64_t retry_after_ms, nsec_t now)
{
	const bool cools = key->why == ERR_PROVIDER_RATE && key_cools(key, now) != 0;

	if (cools && retry_after_ms < 0)
		return;
	const nsec_t until = now + rate_wait(key, retry_after_ms);
	if (!cools && key->strikes < STRIKES_MAX)
		key->strikes++;
	cool(key, ERR_PROVIDER_RATE, until, until);
}

void key_refused(struct key *key, enum err why, int64_t retry_after_ms, nsec_t now)
{
	switch (why) {
	case ERR_PROVIDER_RATE:
		limited(key, retry_after_ms, now);
		break;
	case ERR_PROVIDER_OPERATOR:
		cool(key, why, now + refused_for, now);
		break;
	default:
		must(why == ERR_PROVIDER_BILLING);
		cool(key, why, now + spent_for, now + spent_again);
		key->again = now + spent_again;
	}
}

void key_accepted(struct key *key, nsec_t now)
{
	if (key->why == ERR_PROVIDER_RATE && key_cools(key, now) != 0)
		return; /* it began before the refusal */
	key->why = ERR_OK;
	key->strikes = 0;
	key->until = 0;
}

nsec_t key_cools(const struct key *key, nsec_t now)
{
	return key->why != ERR_OK && key->until > now ? key->until - now : 0;
}

/* ---- head-room ------------------------------------------------------------------------------- */

static bool scarce(const struct key *key, nsec_t now)
{
	for (uint32_t i = 0; i < RATE_KINDS; i++) {
		const struct key_room *room = &key->rooms[i];
		if (room->known && room->renewed > now &&
		    (room->left == 0 || room->left * 100 < room->limit * SCARCE_PERCENT))
			return true;
	}
	return false;
}

void key_began(struct key *key, nsec_t now)
{
	struct key_room *requests = &key->rooms[RATE_REQUESTS];

	if (requests->known && requests->renewed > now && requests->left > 0)
		requests->left--;
}

void key_note_rates(struct key *key, const struct rate_header rates[RATE_KINDS], nsec_t now,
		    uint64_t wall_ns)
{
	for (uint32_t i = 0; i < RATE_KINDS; i++) {
		struct key_room *room = &key->rooms[i];
		uint64_t left, limit = 0;
		nsec_t in;

		if (!slice_to_u64(slice_trim(rates[i].remaining), &left))
			continue; /* not sent, or nothing that could be relied on */
		if (!slice_to_u64(slice_trim(rates[i].limit), &limit) || limit > UINT64_MAX / 100)
			limit = 0;
		if (!rate_reset(slice_trim(rates[i].reset), wall_ns, &in))
			in = rate_first; /* until the next answer says more */
		*room = (struct key_room){ true, limit, least(left, UINT64_MAX / 100),
					   now + least(in, said_most) };
	}
}

/* ---- picking --------------------------------------------------------------------------------- */

/* How gladly it is taken; 0: not at all. */
static uint32_t rank(const struct key *key, bool tried, nsec_t now)
{
	if (key_cools(key, now) == 0)
		return (tried ? 3u : 5u) + (scarce(key, now) ? 0 : 1);
	return key->again > now ? 0 : tried ? 1 : 2;
}

enum err keys_pick(struct key *const *keys, uint32_t count, uint32_t tried, uint32_t turn,
		   nsec_t now, uint32_t *picked, nsec_t *wait)
{
	const struct key *first_back = NULL;
	uint32_t best = 0;

	must(count >= 1 && count <= KEYS_MAX);
	for (uint32_t n = 0; n < count; n++) {
		const uint32_t i = (turn + n) % count;
		const uint32_t here = rank(keys[i], (tried >> i & 1) != 0, now);
		if (here > best) {
			best = here;
			*picked = i;
		}
		if (here == 0 && (first_back == NULL || keys[i]->again < first_back->again))
			first_back = keys[i];
	}
	if (best != 0)
		return ERR_OK;
	*wait = first_back->again - now;
	return first_back->why;
}

bool keys_any(struct key *const *keys, uint32_t count, nsec_t now)
{
	for (uint32_t i = 0; i < count; i++)
		if (rank(keys[i], false, now) != 0)
			return true;
	return count == 0;
}
