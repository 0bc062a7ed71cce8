/* tenant.h - who may do what: immutable records in a registry that is replaced as a whole.
 *
 * Built by the configuration, read by every worker, never changed. Everything lives in the memory
 * of the snapshot that owns the registry. Tenants that only name a plan share its record. */
#ifndef TENANTS_TENANT_H
#define TENANTS_TENANT_H

#include "codec/api/api_grants.h"
#include "codec/base/attr.h"
#include "codec/base/bitset.h"
#include "codec/base/clock.h"
#include "codec/base/sha256.h"
#include "codec/base/slice.h"
#include "codec/mcp/hint_alias.h"
#include "tenants/quota.h"

struct capabilities {
	bool tools, context, images, audio;
};

struct tenant_limits {
	bool count_only;             /* enforce: false; counts and refuses nothing */
	struct quota_limit requests; /* requests a minute; per_minute 0: no such limit */
	struct quota_limit tokens;   /* tokens a minute; likewise */
	uint32_t concurrent;         /* requests in flight; UINT32_MAX: no such limit */
	uint32_t max_tokens;         /* cap on maxTokens */
	bool max_tokens_refuse;      /* max_tokens_mode: refuse; else clamp */
	uint32_t tool_rounds;
	bool tool_rounds_refuse;             /* tool_rounds_action: refuse; else final */
	bool unknown_calls_refuse;           /* unknown_tool_calls: refuse; else accept */
	uint64_t loop_tokens;                /* of a tool loop; UINT64_MAX: no such limit */
	uint64_t loop_usd;                   /* nano-USD of a tool loop; likewise */
	uint64_t usd_per_day, usd_per_month; /* nano-USD; UINT64_MAX: no such limit */
	nsec_t deadline;                     /* of a whole request */
	nsec_t deadline_progress;            /* of one whose caller is told about progress */
	/* on_store_failure: what happens while the shared store is not there */
	bool away_rates_closed; /* rates: closed; else local */
	uint64_t away_usd;      /* budget: nano-USD a day and gateway; 0: closed */
};

/* Of a tenant's system prompt: what the provider gets. */
enum system_rule { SYSTEM_AS_SENT, SYSTEM_PREFIXED, SYSTEM_FIXED };
enum metadata_rule { METADATA_PASS, METADATA_DROP, METADATA_REFUSE };

#define POLICY_ANY UINT64_MAX /* no bound */

/* What a request may look like; zero but for the bounds: everything. */
struct policy {
	uint64_t messages_max, blocks_max, tools_max; /* POLICY_ANY: as many as fit */
	uint64_t schema_bytes_max, image_bytes_max, system_bytes_max;
	const struct slice *tools_allow, *tools_deny; /* globs over tool names; no allow: all */
	uint32_t tools_allow_count, tools_deny_count;
	bool no_auto, no_required, no_none; /* toolChoice modes that are refused */
	enum metadata_rule user_id;         /* metadata.user_id */
	enum system_rule system_rule;
	struct slice system; /* of PREFIXED and FIXED: the inside of a JSON string */
};

/* limits.per_model: some models, by glob. */
struct model_limits {
	struct slice glob;
	uint8_t part[16]; /* tenant_part(glob): with the tenant's limit_key its slot's name */
	struct bitset models;
	struct tenant_limits limits;
};

/* What callers may come by: /v1/sampling, /mcp/{server}, the direct APIs. A set of them has a bit for each. */
enum { FRONT_SAMPLING = 1, FRONT_MCP = 2, FRONT_DIRECT = 4, FRONTS_ALL = 7 };

enum { PLAN_ROUNDS_ANY = UINT32_MAX };

/* What callers of the direct APIs may have beside what every front grants: plans.*.direct. */
struct plan_direct {
	struct api_grants grants;
	const uint64_t
		*tier_factors; /* of the price of tokens, in millionths, of each of grants.tiers */
	uint32_t tool_rounds;  /* of a tool loop; PLAN_ROUNDS_ANY: they do not count */
};

enum { PLAN_MODEL_LIMITS_MAX = 2 }; /* globs of limits.per_model that one model may match */

enum { PLAN_MAGIC = 0x504c414e, TENANT_MAGIC = 0x54454e41 };

struct plan_server;

/* What a plan grants, with a tenant's own keys merged in. */
struct plan {
	uint32_t magic;
	struct capabilities capabilities;
	struct bitset models;             /* permitted, by catalogue index: allow minus deny */
	int32_t default_model;            /* catalogue index, -1: none */
	const struct hint_alias *aliases; /* what else hints may mean, in order */
	uint32_t alias_count;
	struct policy policy;
	struct tenant_limits limits;
	struct quota_limit counts; /* of requests that only count tokens; the tenant's */
	bool server_limited;       /* there are limits of each MCP server */
	struct tenant_limits server_limits;
	const struct model_limits *model_limits;
	uint32_t model_limit_count;
	const struct plan_server *servers; /* by name */
	uint32_t server_count;
	uint8_t fronts; /* bits FRONT_*, never 0 */
	/* Globs over the names of MCP servers that may be reached at /mcp/{name}; deny wins, no allow: none. */
	const struct slice *mcp_allow, *mcp_deny;
	uint32_t mcp_allow_count, mcp_deny_count;
	/* Of the tenant. Where limits.count_only is set, these two count only as well. */
	uint64_t mcp_messages_per_minute; /* each gateway counts alone */
	uint32_t mcp_sessions;            /* at once, of all gateways together */
	const struct plan_direct *direct; /* NULL: nothing beside */
};

/* What one MCP server is granted where that differs from the others. */
struct plan_server {
	struct slice name;
	struct plan plan; /* has no servers of its own */
};

struct tenant {
	uint32_t magic;
	bool disabled;
	bool named; /* has aliases, so that its id is no name for it */
	struct slice id;
	const struct plan *plan;
	uint8_t limit_key[16]; /* names its slot in the limit table: front of SHA-256("tenant\0" id)
				*/
};

/* One key of a tenant: what authentication finds. */
struct tenant_key {
	uint8_t digest[SHA256_BYTES];
	const struct tenant *tenant;
	struct slice server; /* the MCP server that uses the key; absent when not said */
};

/* One name that certificates and tokens have for a tenant. */
struct tenant_alias {
	struct slice name;
	const struct tenant *tenant; /* its `named` is set */
};

/* Registry. `keys`, `aliases` and `tenants` belong to the snapshot's memory; the tables are built by
 * tenants_init from them. */
struct tenants {
	const struct tenant *tenants;
	size_t count;
	const struct tenant_key *keys;
	size_t key_count;
	const struct tenant_alias *aliases;
	size_t alias_count;
	uint32_t *by_digest; /* open addressing, index + 1 */
	uint32_t *by_id, *by_alias;
	size_t digest_mask, id_mask, alias_mask;
	size_t digest_probes; /* places that every look-up of a key visits, known or not */
};

struct arena;

/* private to tenants/: where in by_digest the run of a digest begins, before the mask. */
static inline size_t tenants_digest_hash(const uint8_t digest[SHA256_BYTES])
{
	size_t hash;

	(void)memcpy(&hash, digest, sizeof(hash)); /* a digest's bytes are chance enough */
	return hash;
}

/* Fills limit_key. */
void tenant_name(struct tenant *tenant, struct slice id);

/* Names of a tenant's further slots: that of a part (one server, one glob) is the tenant's limit_key
 * combined with the part's digest. SESSIONS: of all that it begins, MCP: of all messages to MCP servers, COUNTS: of all
 * requests that only count tokens; these without a name. */
enum tenant_part {
	TENANT_PART_SERVER,
	TENANT_PART_MODELS,
	TENANT_PART_SESSIONS,
	TENANT_PART_MCP,
	TENANT_PART_COUNTS
};
void tenant_part(enum tenant_part kind, struct slice name, uint8_t part[16]);
void tenant_part_key(const struct tenant *tenant, const uint8_t part[16], uint8_t key[16]);

/* What `server` is granted (absent: a caller that named none): the plan itself unless it says more. */
const struct plan *plan_for(const struct plan *plan, struct slice server);

/* Whether the plan's tenant may reach that MCP server. */
bool plan_may_use_mcp(const struct plan *plan, struct slice server);

/* The bit of a front by its name: sampling, mcp, direct. 0: there is no such front. */
uint8_t front_bit(struct slice name);

/* Index of the first one that is there twice, SIZE_MAX when none is. */
struct tenants_duplicates {
	size_t tenant, key;
	size_t alias; /* or the id of a tenant without aliases */
};

/* Builds the look-up tables over tenants, keys and aliases (already set) in `into`. False: memory.
 * Ids, digests and names must be unique: *duplicates says whether they are. */
MUST_USE bool tenants_init(struct tenants *registry, struct arena *into,
			   struct tenants_duplicates *duplicates);

/* NULL when unknown. */
const struct tenant *tenants_by_id(const struct tenants *registry, struct slice id);

/* The tenant that has this alias, or this id and no alias; NULL when unknown. */
const struct tenant *tenants_by_name(const struct tenants *registry, struct slice name);

#endif
