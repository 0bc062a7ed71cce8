/* worker_control.c - what the control thread tells a worker: snapshots, addresses, leaving. */
#include "gateway/worker/worker_parts.h"

#include "codec/base/must.h"
#include "gateway/front/mcp/mcp_removed.h"
#include "gateway/worker/descriptors.h"

#include <stdatomic.h>
#include <stdlib.h>

/* ---- snapshots ---- */
static void providers_free(struct sampling_providers *providers)
{
	health_view_free(providers->health);
	free(providers->pools);
	free(providers->firsts);
	*providers = (struct sampling_providers){ 0 };
}

/* NULL, and a line on stderr, where there can be none. */
static struct upstream_pool *pool_for(struct worker *worker, const struct endpoint *endpoint,
				      const char *kind, struct slice name)
{
	char problem[256];
	struct upstream_pool *pool =
		upstream_pool_for(worker->upstream, endpoint, problem, sizeof(problem));

	if (pool == NULL)
		(void)fprintf(stderr, "sluice: %s %.*s: %s\n", kind, (int)name.len, name.at,
			      problem);
	return pool;
}

static void fill_provider(struct worker *worker, struct sampling_providers *fresh, uint32_t p)
{
	const struct provider *provider = &worker->core.config->providers[p];

	for (uint32_t e = 0; e < provider->endpoint_count; e++) {
		if (!upstream_is_marked(worker->upstream, provider->endpoints[e].identity))
			fresh->firsts[p] |= UINT64_C(1) << e;
		fresh->pools[p][e] =
			pool_for(worker, &provider->endpoints[e], "provider", provider->name);
	}
}

/* After the providers: what they share with MCP servers is theirs in `firsts`. */
static void fill_mcp(struct worker *worker, const struct mcp_server *server,
		     struct upstream_pool *pools[CONFIG_ENDPOINTS_MAX])
{
	for (uint32_t e = 0; server->enabled && e < server->endpoint_count; e++)
		pools[e] = pool_for(worker, &server->endpoints[e], "MCP server", server->name);
}

/* Requests do not hold the snapshot while they wait, so that it can be let go of at once. */
bool worker_use_config(struct worker *worker, const struct config *config, uint64_t seq)
{
	struct sampling *core = &worker->core;
	struct sampling_providers fresh = {
		.health = health_view_new(core->health, config, worker->args.count),
		.pools = calloc(config->provider_count + 1, sizeof(*fresh.pools)),
		.firsts = calloc(config->provider_count + 1, sizeof(*fresh.firsts)),
	};
	struct upstream_pool *(*mcp_pools)[CONFIG_ENDPOINTS_MAX] =
		calloc(config->mcp_server_count + 1, sizeof(*mcp_pools));

	if (fresh.health == NULL || fresh.pools == NULL || fresh.firsts == NULL ||
	    mcp_pools == NULL || !worker_use_seals(worker, config) ||
	    !worker_join_peers(worker, config)) {
		providers_free(&fresh);
		free(mcp_pools);
		return false;
	}
	mcp_removed_note(&worker->mcp, config);
	worker->fronts.config = config;
	sampling_use_config(core, config, fresh.health);
	jwt_checker_use_config(core->tokens, config);
	upstream_bound_answers(worker->upstream, config->unfinished_bytes_max / worker->args.count);
	mcp_shares_bound(&worker->mcp.shares, config->unfinished_bytes_max / worker->args.count);
	core->bodies.bound =
		(struct fair_bound){ config->held_bytes_max / worker->args.count, BODY_SMALL };
	upstream_mark(worker->upstream);
	for (uint32_t p = 0; p < config->provider_count; p++)
		fill_provider(worker, &fresh, p);
	worker_use_mcp_servers(worker, config);
	for (uint32_t i = 0; i < config->mcp_server_count; i++)
		fill_mcp(worker, &config->mcp_servers[i], mcp_pools[i]);
	upstream_sweep(worker->upstream);
	providers_free(&core->providers);
	core->providers = fresh;
	free(worker->fronts.mcp_pools);
	worker->fronts.mcp_pools = mcp_pools;
	mcp_host_use_config(&worker->mcp);
	atomic_store_explicit(&worker->shared.config_seq, seq, memory_order_release);
	atomic_store_explicit(&worker->shared.config_oldest_seq, seq, memory_order_release);
	return true;
}

struct http_limits worker_http_limits(const struct worker *worker, const struct config *config)
{
	uint32_t share = descriptors_callers(config) / worker->args.count;

	return (struct http_limits){
		.body_bytes_max = config->body_bytes_max,
		.unfinished_bytes_max = config->unfinished_bytes_max / worker->args.count,
		.connections_max = share == 0 ? 1 : share,
	};
}

/* ---- messages from the control thread ---- */
struct config_message {
	struct net_message message;
	const struct config *config;
	uint64_t seq;
};

static void run_config(struct net_message *message, void *owner)
{
	struct config_message *m = CONTAINER_OF(message, struct config_message, message);
	struct worker *worker = owner;

	must_obj(worker, WORKER_MAGIC);
	if (worker_use_config(worker, m->config, m->seq)) {
		const struct http_limits limits = worker_http_limits(worker, m->config);
		http_set_limits(worker->http, &limits);
		for (uint32_t i = 0; i < m->config->listen_count; i++)
			http_set_tls(worker->http, i, m->config->listen[i].tls);
		if (worker->redis != NULL)
			redis_client_use_login(worker->redis, &m->config->store);
	} else {
		(void)fprintf(stderr, "sluice: no memory for a new configuration\n");
	}
	free(m);
}

void worker_set_config(struct worker *worker, const struct config *config, uint64_t seq)
{
	struct config_message *m = calloc(1, sizeof(*m));

	must(m != NULL); /* a control thread without memory for 40 bytes cannot go on */
	m->message.run = run_config;
	m->config = config;
	m->seq = seq;
	net_post(worker->loop, &m->message);
}

struct addresses_message {
	struct net_message message;
	struct slice identity; /* absent: the store */
	uint32_t count;
	struct upstream_address addresses[];
};

static void store_resolved(struct redis_client *redis, const struct upstream_address *addresses,
			   uint32_t count)
{
	struct redis_target targets[REDIS_ADDRESSES_MAX];

	count = count < REDIS_ADDRESSES_MAX ? count : REDIS_ADDRESSES_MAX;
	for (uint32_t i = 0; i < count; i++)
		targets[i] = (struct redis_target){ addresses[i].address, addresses[i].len };
	redis_client_resolved(redis, targets, count);
}

static void run_addresses(struct net_message *message, void *owner)
{
	struct addresses_message *m = CONTAINER_OF(message, struct addresses_message, message);
	struct worker *worker = owner;

	must_obj(worker, WORKER_MAGIC);
	if (!slice_absent(m->identity))
		upstream_resolved(worker->upstream, m->identity, m->addresses, m->count);
	else if (worker->redis != NULL)
		store_resolved(worker->redis, m->addresses, m->count);
	free(m);
}

void worker_set_addresses(struct worker *worker, struct slice identity,
			  const struct upstream_address *addresses, uint32_t count)
{
	size_t list = count * sizeof(*addresses);
	struct addresses_message *m = calloc(1, sizeof(*m) + list + identity.len);

	must(m != NULL);
	m->message.run = run_addresses;
	m->count = count;
	if (count != 0)
		(void)memcpy(m->addresses, addresses, list);
	char *text = (char *)m->addresses + list;
	if (!slice_absent(identity)) {
		(void)memcpy(text, identity.at, identity.len);
		m->identity = slice_of(text, identity.len);
	}
	net_post(worker->loop, &m->message);
}

void worker_set_store_addresses(struct worker *worker, const struct upstream_address *addresses,
				uint32_t count)
{
	worker_set_addresses(worker, (struct slice){ NULL, 0 }, addresses, count);
}

/* ---- keys of issuers ---- */
struct keys_message {
	struct net_message message;
	struct jwt_keys *keys;
	size_t place_len;
	char place[];
};

static void run_keys(struct net_message *message, void *owner)
{
	struct keys_message *m = CONTAINER_OF(message, struct keys_message, message);
	struct worker *worker = owner;

	must_obj(worker, WORKER_MAGIC);
	jwt_checker_set_keys(worker->core.tokens, slice_of(m->place, m->place_len), &m->keys);
	free(m);
}

void worker_set_keys(struct worker *worker, struct slice place, struct jwt_keys **keys)
{
	struct keys_message *m = calloc(1, sizeof(*m) + place.len);

	must(m != NULL);
	m->message.run = run_keys;
	m->keys = *keys;
	*keys = NULL;
	m->place_len = place.len;
	(void)memcpy(m->place, place.at, place.len);
	net_post(worker->loop, &m->message);
}

uint32_t worker_take_refetches(struct worker *worker)
{
	return jwt_checker_take_refetches(worker->core.tokens);
}

uint64_t worker_token_count(const struct worker *worker, uint32_t result)
{
	return jwt_checker_count(worker->core.tokens, result);
}

/* ---- active checks ---- */
struct endpoint_up_message {
	struct net_message message;
	struct slice provider, identity, path; /* in `texts` */
	bool up;
	char texts[];
};

static void run_endpoint_up(struct net_message *message, void *owner)
{
	struct endpoint_up_message *m = CONTAINER_OF(message, struct endpoint_up_message, message);
	struct worker *worker = owner;

	must_obj(worker, WORKER_MAGIC);
	health_checked(worker->core.health, m->provider, m->identity, m->path, m->up,
		       net_now(worker->loop));
	free(m);
}

static struct slice put_text(char **at, struct slice s)
{
	const struct slice copy = slice_of(*at, s.len);

	(void)memcpy(*at, s.at, s.len);
	*at += s.len;
	return copy;
}

void worker_set_endpoint_up(struct worker *worker, struct slice provider, struct slice identity,
			    struct slice path, bool up)
{
	struct endpoint_up_message *m =
		calloc(1, sizeof(*m) + provider.len + identity.len + path.len + 1);

	must(m != NULL);
	char *at = m->texts;
	m->message.run = run_endpoint_up;
	m->provider = put_text(&at, provider);
	m->identity = put_text(&at, identity);
	m->path = put_text(&at, path);
	m->up = up;
	net_post(worker->loop, &m->message);
}

/* ---- questions ---- */
struct question_message {
	struct net_message message;
	struct limiter_query *question;
};

static void run_question(struct net_message *message, void *owner)
{
	struct question_message *m = CONTAINER_OF(message, struct question_message, message);
	struct worker *worker = owner;

	must_obj(worker, WORKER_MAGIC);
	if (worker->shared_limits != NULL)
		limiter_redis_ask(worker->shared_limits, m->question);
	else
		limiter_query_answer(m->question, LIMITER_SAID_AWAY);
	free(m);
}

void worker_ask_store(struct worker *worker, struct limiter_query *question)
{
	struct question_message *m = calloc(1, sizeof(*m));

	if (m == NULL) {
		limiter_query_answer(question, LIMITER_SAID_AWAY);
		return;
	}
	m->message.run = run_question;
	m->question = question;
	net_post(worker->loop, &m->message);
}

/* ---- leaving ---- */
static void run_quiet(struct net_message *message, void *owner)
{
	struct worker *worker = owner;

	http_quiet(worker->http);
	free(message);
}

static void run_stop_accepting(struct net_message *message, void *owner)
{
	struct worker *worker = owner;

	http_stop_accepting(worker->http);
	mcp_host_leave(&worker->mcp);
	free(message);
}

static void run_shutdown(struct net_message *message, void *owner)
{
	struct worker *worker = owner;

	http_shutdown(worker->http);
	free(message);
}

static void run_give_up(struct net_message *message, void *owner)
{
	struct worker *worker = owner;

	must_obj(worker, WORKER_MAGIC);
	worker_refuse_waiting(worker);
	free(message);
}

static void post_plain(struct worker *worker, void (*run)(struct net_message *, void *))
{
	struct net_message *message = calloc(1, sizeof(*message));

	must(message != NULL);
	message->run = run;
	net_post(worker->loop, message);
}

void worker_quiet(struct worker *worker)
{
	post_plain(worker, run_quiet);
}

void worker_stop_accepting(struct worker *worker)
{
	post_plain(worker, run_stop_accepting);
}

void worker_shutdown(struct worker *worker)
{
	post_plain(worker, run_shutdown);
}

void worker_give_up(struct worker *worker)
{
	post_plain(worker, run_give_up);
}
