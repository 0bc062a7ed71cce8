/* settings_form.h - what the rows of tbl/settings.h fill: the file as typed values, before anything is
 * resolved.
 *
 * Private to settings*.c. Numbers, switches and choices are uint64_t; FORM_UNSET where the key is
 * absent and the default is not a plain value. Texts are slices of the tree, absent when unset;
 * resolved ones (secrets, addresses) live in the configuration's arena. */
#ifndef GATEWAY_SETTINGS_SETTINGS_FORM_H
#define GATEWAY_SETTINGS_SETTINGS_FORM_H

#include "gateway/settings/settings_tree.h"
#include "tenants/limit.h"

#define FORM_UNSET UINT64_MAX

_Static_assert(FORM_UNSET == LIMIT_NONE, "an absent limit is no limit");

struct form_values {
	struct slice *at;
	uint32_t count;
};

/* A value and its name, which is the node's key. */
struct form_pair {
	const struct node *node;
	struct slice value;
	uint64_t number; /* of TYPE_FACTOR, instead */
};

struct form_pairs {
	struct form_pair *at;
	uint32_t count;
};

/* `at` is an array of the entry scope's struct. */
struct form_entries {
	void *at;
	uint32_t count;
};

struct form_range {
	bool set, never; /* never: null */
	double min, max;
};

struct main_form {
	const struct node *node;
	struct form_entries listen, jwt, providers, models, mcp_servers, plans;
	const struct node *tenants;
	struct slice admin_address, admin_socket, zone, user, store_url, store_ca, public_url;
	uint64_t workers, reload_watch, body_bytes, unfinished_bytes, held_bytes, connections,
		drain, store_kind, store_deadline, store_patience, blocks_bytes, blocks_each,
		blocks_ttl, metrics_tenants;
	uint64_t certificates_san, attempts, retry_floor;
	double retry_budget;
	struct form_values admin_names, origins, seal_keys;
};

struct listen_form {
	const struct node *node;
	struct slice address, tls_cert, tls_key, tls_client_ca;
	uint64_t trusted_proxy;
	struct form_values fronts;
};

struct issuer_form {
	const struct node *node;
	struct slice issuer, audience, jwks, ca, tenant_claim, server_claim;
	struct form_values algorithms;
	uint64_t skew, refresh;
};

/* Of a provider; of an MCP server without bounds. */
struct endpoint_form {
	const struct node *node;
	struct slice url, zone;
	uint64_t weight, concurrent, queue, queue_deadline;
};

struct provider_form {
	const struct node *node;
	uint64_t dialect, key_header, enabled, connect, first_byte, idle, total;
	uint64_t breaker_failures, breaker_calls, breaker_window, breaker_open, breaker_open_max,
		breaker_slow_start;
	double breaker_ratio;
	struct slice check_path;
	uint64_t check_interval, check_timeout, check_unhealthy, check_healthy;
	struct slice version, query, ca;
	struct form_entries endpoints;
	struct form_values keys, refused;
};

struct mcp_server_form {
	const struct node *node;
	struct slice url, authorization, ca;
	struct form_entries endpoints;
	uint64_t transport, sampling, auth, unsolicited;
	struct form_pairs headers;
	struct form_values pass_headers;
	uint64_t connect, first_byte, idle, sessions, enabled;
};

struct model_form {
	const struct node *node;
	struct slice id, provider, name, version;
	struct form_values aliases;
	uint64_t context, price_input, price_output, price_cache_read, price_cache_write;
	uint64_t price_cache_write_1h, price_server_tool;
	double speed, intelligence;
	uint64_t enabled;
	/* profile */
	uint64_t max_output, max_stop, image, audio, forced_tool, structured_output, prefill;
	struct form_range temperature;
	uint64_t max_tokens_field, reasoning, tools_need_effort_none, replay_reasoning;
	uint64_t text_content_as_string, user_after_tool, think_tags, id_rule;
	uint64_t audio_as_string, stream_usage, user_id_field, max_tools, merge_same_role;
	uint64_t count_tokens;
	struct slice body;
};

/* Limits of a part of a tenant; unset: no such limit. */
struct limits_form {
	const struct node *node;
	uint64_t limits[LIMIT_COUNT];
	uint64_t enforce;
};

/* Also what a plan's server is read into, over the plan's own. */
struct plan_form {
	const struct node *node;
	uint64_t tools, context, images, audio;
	struct form_values allow, deny;
	struct form_entries aliases;
	struct slice default_model;
	/* policy */
	uint64_t max_messages, max_blocks, max_tools, schema_bytes, image_bytes, system_bytes;
	struct form_values tools_allow, tools_deny;
	uint64_t choice_auto, choice_required, choice_none, user_id;
	struct slice system_prefix, system_fixed;
	/* limits */
	uint64_t limits[LIMIT_COUNT];
	uint64_t max_tokens_mode, tool_rounds_action, unknown_tool_calls, enforce, away_rates,
		away_usd;
	uint64_t mcp_messages_per_minute, mcp_sessions;
	struct form_values fronts, mcp_allow, mcp_deny;
	/* direct */
	struct form_values server_tools;
	struct form_pairs service_tiers;
	uint64_t remote_files, answers, direct_rounds;
	struct limits_form per_server;
	const struct node *per_model, *servers; /* read later: maps merge key by key */
};

struct alias_form {
	const struct node *node;
	struct slice hint;
	struct form_values models;
};

struct tenant_form {
	const struct node *node;
	struct slice id, plan_name, files;
	struct form_entries keys;
	struct form_values names;
	uint64_t disabled;
	struct plan_form plan;
};

struct tenant_key_form {
	const struct node *node;
	struct slice sha256, server;
};

#endif
