/* health_parts.h - the states behind health.h: private to health*.c. */
#ifndef GATEWAY_PROVIDERS_HEALTH_PARTS_H
#define GATEWAY_PROVIDERS_HEALTH_PARTS_H

#include "codec/base/sha256.h"
#include "gateway/providers/health.h"
#include "routing/keys.h"
#include "routing/lessons.h"
#include "routing/retry_table.h"

enum { HEALTH_BUCKETS = 256 };

enum health_kind { HEALTH_PROVIDER, HEALTH_ENDPOINT, HEALTH_KEY, HEALTH_MODEL, HEALTH_KINDS };

/* The beginning of every state: what it belongs to, and how many refer to it. */
struct health_entry {
	struct health_entry *next; /* of its bucket */
	uint32_t refs;             /* views and calls in flight; freed at 0 */
	enum health_kind kind;
	bool troubled; /* counted in health->troubles */
	uint8_t id[SHA256_BYTES];
};

struct provider_state {
	struct health_entry entry;
	struct breaker_settings breaker; /* of its endpoints, by the newest view */
	struct retry_budget retries;
};

struct endpoint_state {
	struct health_entry entry;
	struct breaker breaker;
	struct pool_load load;
	nsec_t uncounted_until; /* it counts no tokens; 0: nobody has found that */
};

struct key_state {
	struct health_entry entry;
	struct key key;
	struct key_lanes lanes;
};

struct model_state {
	struct health_entry entry;
	struct speed speed;
	struct lessons lessons;
};

struct health {
	struct health_entry *buckets[HEALTH_KINDS][HEALTH_BUCKETS];
	uint32_t states;             /* all there are */
	uint32_t troubles;           /* endpoints whose breaker is not closed, and keys that cool */
	uint64_t changes;            /* of these, counted */
	struct retry_settings retry; /* by the newest view */
	struct retry_table tenants;
};

/* A provider's keys, as one endpoint knows them. */
struct health_keys {
	struct key_state *with[CONFIG_KEYS_MAX];
	struct key *at[CONFIG_KEYS_MAX]; /* within those */
	uint32_t count, turn;
};

struct health_provider {
	struct provider_state *state;
	struct endpoint_state *endpoints[CONFIG_ENDPOINTS_MAX];
	struct pool_member members[CONFIG_ENDPOINTS_MAX];
	uint32_t endpoint_count;
	struct health_keys *keys;                 /* of each endpoint */
	uint32_t calls_max[CONFIG_ENDPOINTS_MAX]; /* in flight and waiting, of this worker */
};

struct health_view {
	struct health *health;
	const struct catalog *catalog;
	struct health_provider *providers;
	uint32_t provider_count;
	struct model_state **models;
	uint32_t model_count;
	struct model_speed *speeds;
	struct hint_memory hints;
	/* What health_down found: as long as nothing changed, for a little while. */
	struct bitset down;
	bool any_down;
	uint64_t down_for; /* a tenant that a breaker treats by itself; 0: all others */
	uint64_t alone;    /* such tenants: a bit each, by their tag's first six bits */
	uint64_t down_changes;
	nsec_t down_until;
};

/* One reference more. */
void health_hold(struct health_entry *entry);
/* One less; `entry` may be gone afterwards. */
void health_let_go(struct health *health, struct health_entry *entry);

/* What stands for a state where 8 bytes have to do: of its digest; not 0. */
uint64_t health_tag(const struct health_entry *entry);

/* Whether keys_pick would find one of them for the model, and if not, why and for how long. */
MUST_USE enum err health_key_for(const struct health_keys *keys, uint64_t model, uint32_t tried,
				 nsec_t now, uint32_t *picked, nsec_t *wait);

/* To be called after whatever may have changed the state's breaker or cool-down. A rate limit that merely
 * ends in time is seen at the next tick. */
void health_trouble(struct health *health, struct health_entry *entry, bool troubled);

#endif
