#include "routing/keys.h"

#include "codec/base/must.h"
#include "routing/rate_reset.h"

static const nsec_t rate_first = 1 * SEC, rate_most = 60 * SEC;
static const nsec_t said_most = 3600 * SEC; /* whatever the provider says */
static const nsec_t refused_for = 60 * SEC;
static const nsec_t spent_for = 3600 * SEC, spent_again = 60 * SEC;
enum { STRIKES_MAX = 16, SCARCE_PERCENT = 2 };

static nsec_t least(nsec_t a, nsec_t b)
{
	return a < b ? a : b;
}

/* ---- whole keys ------------------------------------------------------------------------------ */

void key_refused(struct key *key, enum err why, nsec_t now)
{
	const bool spent = why == ERR_PROVIDER_BILLING;
	const nsec_t until = now + (spent ? spent_for : refused_for);

	must(spent || why == ERR_PROVIDER_OPERATOR);
	key->again = spent ? now + spent_again : now;
	if (key_cools(key, now) != 0 && key->until >= until)
		return; /* of calls side by side: never shorter than the first one said */
	key->why = why;
	key->until = until;
}

void key_accepted(struct key *key)
{
	key->why = ERR_OK;
	key->until = 0;
}

nsec_t key_cools(const struct key *key, nsec_t now)
{
	return key->why != ERR_OK && key->until > now ? key->until - now : 0;
}

/* ---- lanes ----------------------------------------------------------------------------------- */

/* Calls side by side are refused side by side: that is one strike. */
void key_lane_limited(struct key_lane *lane, int64_t retry_after_ms, nsec_t now)
{
	const bool cools = key_lane_cools(lane, now) != 0;
	const bool said = retry_after_ms > 0; /* 0 is a date that has passed, or says nothing */

	if (cools && !said)
		return;
	const nsec_t until = now + (said ? least((nsec_t)retry_after_ms * MSEC, said_most)
					 : least(rate_first << lane->strikes, rate_most));
	if (!cools && lane->strikes < STRIKES_MAX)
		lane->strikes++;
	if (until > lane->until)
		lane->until = until;
}

nsec_t key_lane_cools(const struct key_lane *lane, nsec_t now)
{
	return lane->until > now ? lane->until - now : 0;
}

static bool scarce(const struct key_lane *lane, nsec_t now)
{
	for (uint32_t i = 0; i < RATE_KINDS; i++) {
		const struct key_room *room = &lane->rooms[i];
		if (room->known && room->renewed > now &&
		    (room->left == 0 || room->left * 100 < room->limit * SCARCE_PERCENT))
			return true;
	}
	return false;
}

void key_lane_note_rates(struct key_lane *lane, const struct rate_header rates[RATE_KINDS],
			 nsec_t now, uint64_t wall_ns)
{
	for (uint32_t i = 0; i < RATE_KINDS; i++) {
		uint64_t left, limit = 0;
		nsec_t in;

		if (!slice_to_u64(slice_trim(rates[i].remaining), &left))
			continue; /* not sent, or nothing that could be relied on */
		if (!slice_to_u64(slice_trim(rates[i].limit), &limit) || limit > UINT64_MAX / 100)
			limit = 0;
		if (!rate_reset(slice_trim(rates[i].reset), wall_ns, &in))
			in = rate_first; /* until the next answer says more */
		lane->rooms[i] = (struct key_room){ true, limit, least(left, UINT64_MAX / 100),
						    now + least(in, said_most) };
	}
}

/* KEY_LANES: it has none. */
static uint32_t lane_index(const struct key_lanes *lanes, uint64_t model)
{
	for (uint32_t i = 0; i < KEY_LANES && lanes->models[i] != 0; i++)
		if (lanes->models[i] == model)
			return i;
	return KEY_LANES;
}

const struct key_lane *key_lane_of(const struct key_lanes *lanes, uint64_t model)
{
	static const struct key_lane empty;
	const uint32_t i = lane_index(lanes, model);

	return i == KEY_LANES ? &empty : &lanes->lanes[i];
}

void key_lanes_began(struct key_lanes *lanes, uint64_t model, nsec_t now)
{
	const uint32_t i = lane_index(lanes, model);

	if (i == KEY_LANES)
		return;
	struct key_room *requests = &lanes->lanes[i].rooms[RATE_REQUESTS];
	if (requests->known && requests->renewed > now && requests->left > 0)
		requests->left--;
}

void key_lanes_accepted(struct key_lanes *lanes, uint64_t model, nsec_t now)
{
	const uint32_t i = lane_index(lanes, model);

	/* While it cools: that call began before the refusal. */
	if (i != KEY_LANES && key_lane_cools(&lanes->lanes[i], now) == 0)
		lanes->lanes[i].strikes = 0;
}

/* They are filled from the front and never freed. */
struct key_lane *key_lane_for(struct key_lanes *lanes, uint64_t model)
{
	uint32_t place = 0;

	must(model != 0);
	for (uint32_t i = 0; i < KEY_LANES; i++) {
		if (lanes->models[i] == model)
			return &lanes->lanes[i];
		if (lanes->models[i] == 0) {
			place = i;
			break;
		}
		if (lanes->lanes[i].until < lanes->lanes[place].until)
			place = i;
	}
	lanes->models[place] = model;
	lanes->lanes[place] = (struct key_lane){ 0 };
	return &lanes->lanes[place];
}

nsec_t key_lanes_cool(const struct key_lanes *lanes, nsec_t now)
{
	nsec_t longest = 0;

	for (uint32_t i = 0; i < KEY_LANES && lanes->models[i] != 0; i++) {
		const nsec_t cools = key_lane_cools(&lanes->lanes[i], now);
		longest = cools > longest ? cools : longest;
	}
	return longest;
}

/* ---- picking --------------------------------------------------------------------------------- */

/* How gladly it is taken; 0: not at all, before *back for the reason *why. */
static uint32_t rank(const struct key *key, const struct key_lane *lane, bool tried, nsec_t now,
		     nsec_t *back, enum err *why)
{
	if (key_lane_cools(lane, now) != 0) {
		*back = lane->until;
		*why = ERR_PROVIDER_RATE;
		return 0;
	}
	if (key_cools(key, now) == 0)
		return (tried ? 3u : 5u) + (scarce(lane, now) ? 0 : 1);
	*back = key->again;
	*why = key->why;
	return key->again > now ? 0 : tried ? 1 : 2;
}

bool key_is_free(const struct key *key, const struct key_lane *lane, nsec_t now)
{
	return key_cools(key, now) == 0 && key_lane_cools(lane, now) == 0 && !scarce(lane, now);
}

enum err keys_pick(struct key *const *keys, const struct key_lane *const *lanes, uint32_t count,
		   uint32_t tried, uint32_t turn, nsec_t now, uint32_t *picked, nsec_t *wait)
{
	nsec_t first = NSEC_NEVER, back = 0;
	enum err first_why = ERR_OK, why = ERR_OK;
	uint32_t best = 0;

	must(count >= 1 && count <= KEYS_MAX);
	for (uint32_t n = 0; n < count; n++) {
		const uint32_t i = (turn + n) % count;
		const uint32_t here =
			rank(keys[i], lanes[i], (tried >> i & 1) != 0, now, &back, &why);
		if (here > best) {
			best = here;
			*picked = i;
		} else if (here == 0 && back < first) {
			first = back;
			first_why = why;
		}
	}
	if (best != 0)
		return ERR_OK;
	*wait = first - now;
	return first_why;
}

bool keys_any(struct key *const *keys, const struct key_lane *const *lanes, uint32_t count,
	      nsec_t now)
{
	nsec_t back;
	enum err why;

	for (uint32_t i = 0; i < count; i++)
		if (rank(keys[i], lanes[i], false, now, &back, &why) != 0)
			return true;
	return count == 0;
}
