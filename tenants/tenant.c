#include "tenants/tenant.h"

#include "codec/base/arena.h"
#include "codec/base/must.h"
#include "tenants/globs.h"

/* Four places a key keep the runs short: look-ups visit as many places as the longest run has. */
enum { PLACES_PER_KEY = 4, PLACES_PER_TENANT = 2, LIMIT_KEY_TEXT_MAX = 512 };

/* Front of the digest of `kind`, hashed with its NUL, which no name holds, and `name`. */
static void slot_name(const char *kind, struct slice name, uint8_t out[16])
{
	char text[LIMIT_KEY_TEXT_MAX];
	uint8_t digest[SHA256_BYTES];
	const size_t kind_len = strlen(kind) + 1, room = sizeof(text) - kind_len;

	if (name.len >
	    room) { /* nobody has such a name; if somebody does, its digest stands for it */
		sha256(name, digest);
		name = slice_of((const char *)digest, sizeof(digest));
	}
	(void)memcpy(text, kind, kind_len);
	if (name.len != 0)
		(void)memcpy(text + kind_len, name.at, name.len);
	sha256(slice_of(text, kind_len + name.len), digest);
	(void)memcpy(out, digest, 16);
}

void tenant_name(struct tenant *tenant, struct slice id)
{
	slot_name("tenant", id, tenant->limit_key);
}

void tenant_part(enum tenant_part kind, struct slice name, uint8_t part[16])
{
	static const char *const kinds[] = {
		[TENANT_PART_SERVER] = "server",     [TENANT_PART_MODELS] = "models",
		[TENANT_PART_SESSIONS] = "sessions", [TENANT_PART_MCP] = "mcp",
		[TENANT_PART_COUNTS] = "counts",
	};

	slot_name(kinds[kind], name, part);
}

/* Both are fronts of digests, so that two pairs are as unlikely to meet as two digests are. */
void tenant_part_key(const struct tenant *tenant, const uint8_t part[16], uint8_t key[16])
{
	for (size_t i = 0; i < 16; i++)
		key[i] = tenant->limit_key[i] ^ part[i];
}

const struct plan *plan_for(const struct plan *plan, struct slice server)
{
	uint32_t low = 0, high = plan->server_count;

	while (!slice_absent(server) && low < high) {
		const uint32_t mid = low + (high - low) / 2;
		const struct plan_server *found = &plan->servers[mid];
		const int order = slice_order(server, found->name);

		if (order == 0)
			return &found->plan;
		if (order < 0)
			high = mid;
		else
			low = mid + 1;
	}
	return plan;
}

bool plan_may_use_mcp(const struct plan *plan, struct slice server)
{
	return globs_match(plan->mcp_allow, plan->mcp_allow_count, server) &&
	       !globs_match(plan->mcp_deny, plan->mcp_deny_count, server);
}

uint8_t front_bit(struct slice name)
{
	static const struct {
		struct slice name;
		uint8_t bit;
	} fronts[] = {
		{ SLICE_INIT("sampling"), FRONT_SAMPLING },
		{ SLICE_INIT("mcp"), FRONT_MCP },
		{ SLICE_INIT("direct"), FRONT_DIRECT },
	};

	for (size_t i = 0; i < COUNT_OF(fronts); i++)
		if (slice_eq(name, fronts[i].name))
			return fronts[i].bit;
	return 0;
}

/* A table of zeros with `per_entry` places for each entry, a power of two. NULL: memory. */
static uint32_t *places_new(struct arena *into, size_t count, size_t per_entry, size_t *mask)
{
	size_t places = 4;

	must(count < UINT32_MAX);
	while (places < count * per_entry)
		places *= 2;
	*mask = places - 1;
	return arena_zero(into, places * sizeof(uint32_t));
}

/* FNV-1a; ids and names are the operator's own, so nobody can make them collide. */
static size_t text_hash(struct slice text)
{
	uint64_t hash = UINT64_C(14695981039346656037);

	for (size_t i = 0; i < text.len; i++)
		hash = (hash ^ (uint8_t)text.at[i]) * UINT64_C(1099511628211);
	return (size_t)(hash ^ hash >> 32);
}

/* The place of that id: its entry's, or the free one where it belongs. */
static uint32_t *id_place(const struct tenants *registry, struct slice id)
{
	for (size_t i = text_hash(id);; i++) {
		uint32_t *place = &registry->by_id[i & registry->id_mask];
		if (*place == 0 || slice_eq(registry->tenants[*place - 1].id, id))
			return place;
	}
}

/* The same for a name that is no id. */
static uint32_t *alias_place(const struct tenants *registry, struct slice name)
{
	for (size_t i = text_hash(name);; i++) {
		uint32_t *place = &registry->by_alias[i & registry->alias_mask];
		if (*place == 0 || slice_eq(registry->aliases[*place - 1].name, name))
			return place;
	}
}

/* The same for a key's digest; *probes becomes the number of places visited. Only while building:
 * it stops early, which auth_find must not. */
static uint32_t *digest_place(const struct tenants *registry, const uint8_t digest[SHA256_BYTES],
			      size_t *probes)
{
	const size_t first = tenants_digest_hash(digest);

	for (size_t i = first;; i++) {
		uint32_t *place = &registry->by_digest[i & registry->digest_mask];
		*probes = i - first + 1;
		if (*place == 0 ||
		    memcmp(registry->keys[*place - 1].digest, digest, SHA256_BYTES) == 0)
			return place;
	}
}

/* Puts entry `i` into its place, unless there is one like it. */
static void claim(uint32_t *place, size_t i, size_t *duplicate)
{
	if (*place == 0)
		*place = (uint32_t)i + 1;
	else if (*duplicate == SIZE_MAX)
		*duplicate = i;
}

static void add_keys(struct tenants *registry, size_t *duplicate)
{
	registry->digest_probes = 1;
	for (size_t i = 0; i < registry->key_count; i++) {
		size_t probes = 0;
		claim(digest_place(registry, registry->keys[i].digest, &probes), i, duplicate);
		if (probes > registry->digest_probes)
			registry->digest_probes = probes;
	}
}

/* After the tenants: an id may stand in an alias's way. */
static void add_aliases(struct tenants *registry, size_t *duplicate)
{
	for (size_t i = 0; i < registry->alias_count; i++) {
		const struct tenant_alias *alias = &registry->aliases[i];
		must(alias->tenant->named);
		const struct tenant *same = tenants_by_id(registry, alias->name);
		if (same != NULL && !same->named && *duplicate == SIZE_MAX)
			*duplicate = i;
		claim(alias_place(registry, alias->name), i, duplicate);
	}
}

bool tenants_init(struct tenants *registry, struct arena *into,
		  struct tenants_duplicates *duplicates)
{
	*duplicates = (struct tenants_duplicates){ SIZE_MAX, SIZE_MAX, SIZE_MAX };
	registry->by_id = places_new(into, registry->count, PLACES_PER_TENANT, &registry->id_mask);
	registry->by_digest =
		places_new(into, registry->key_count, PLACES_PER_KEY, &registry->digest_mask);
	registry->by_alias =
		places_new(into, registry->alias_count, PLACES_PER_TENANT, &registry->alias_mask);
	if (registry->by_id == NULL || registry->by_digest == NULL || registry->by_alias == NULL)
		return false;

	for (size_t i = 0; i < registry->count; i++) {
		must_obj(&registry->tenants[i], TENANT_MAGIC);
		claim(id_place(registry, registry->tenants[i].id), i, &duplicates->tenant);
	}
	add_keys(registry, &duplicates->key);
	add_aliases(registry, &duplicates->alias);
	return true;
}

const struct tenant *tenants_by_id(const struct tenants *registry, struct slice id)
{
	const uint32_t entry = *id_place(registry, id);

	return entry == 0 ? NULL : &registry->tenants[entry - 1];
}

const struct tenant *tenants_by_name(const struct tenants *registry, struct slice name)
{
	const uint32_t entry = *alias_place(registry, name);

	if (entry != 0)
		return registry->aliases[entry - 1].tenant;
	const struct tenant *tenant = tenants_by_id(registry, name);
	return tenant == NULL || tenant->named ? NULL : tenant;
}
