#include "codec/dialects.h"
#include "tests/unit/gateway/settings/settings_rig.h"

/* ---- what the file says ---- */

static void settings_of_the_process_are_taken_over(void **state)
{
	(void)state;
	struct rig rig;
	rig_load_whole(&rig);
	const struct config *c = rig.config;
	assert_int_equal(c->listen_count, 2);
	assert_slice(c->listen[0].text, "0.0.0.0:8080");
	assert_string_equal(c->listen[0].host.at, "0.0.0.0");
	assert_int_equal(c->listen[0].port, 8080);
	assert_string_equal(c->listen[1].host.at, "::");
	assert_false(c->listen[0].trusted_proxy);
	assert_true(c->listen[1].trusted_proxy);
	assert_slice(c->admin.host, "127.0.0.1");
	assert_int_equal(c->admin.port, 9090);
	assert_slice(c->admin_socket, "conf/admin.sock");
	assert_int_equal(c->workers, 3);
	assert_int_equal(c->body_bytes_max, 8 << 20);
	assert_int_equal(c->connections_max, 500);
	assert_int_equal(c->drain, 10 * SEC);
	assert_int_equal(c->origin_count, 1);
	assert_slice(c->origins[0], "https://app.example");
	assert_int_equal(c->metrics_tenants, 7);
	rig_fini(&rig);
}

static void endpoints_are_taken_apart(void **state)
{
	(void)state;
	struct rig rig;
	rig_load_whole(&rig);
	const struct provider *p = &rig.config->providers[0];
	assert_slice(p->name, "anthropic");
	assert_int_equal(p->dialect, DIALECT_ANTHROPIC);
	assert_slice(p->version, "2023-06-01");
	assert_int_equal(p->endpoint_count, 2);
	const struct endpoint *e = &p->endpoints[0];
	assert_true(e->tls);
	assert_string_equal(e->host.at, "api.anthropic.com");
	assert_int_equal(e->port, 443);
	assert_int_equal(e->path.len, 0);
	assert_slice(e->authority, "api.anthropic.com");
	assert_slice(e->identity, "https|api.anthropic.com|443|");
	assert_int_equal(e->weight, 3);
	e = &p->endpoints[1];
	assert_false(e->tls);
	assert_string_equal(e->host.at, "2001:db8::1");
	assert_slice(e->path, "/base");
	assert_slice(e->authority, "[2001:db8::1]:8000");
	assert_slice(e->identity, "http|2001:db8::1|8000|");
	assert_int_equal(e->weight, 1);
	assert_int_equal(p->timeouts.connect, 1 * SEC);
	assert_int_equal(p->timeouts.first_byte, 2 * SEC);
	assert_int_equal(p->timeouts.idle, 3 * SEC);
	assert_int_equal(p->timeouts.total, 240 * SEC);
	rig_fini(&rig);
}

static void keys_come_literally_from_the_environment_and_from_files(void **state)
{
	(void)state;
	struct rig rig;
	rig_load_whole(&rig);
	const struct provider *p = &rig.config->providers[0];
	assert_int_equal(p->key_count, 3);
	assert_slice(p->keys[0], "literal-key");
	assert_slice(p->keys[1], "key-from-environment");
	assert_slice(p->keys[2], "key-from-file"); /* without its newline */
	assert_slice(rig.config->providers[1].endpoints[0].url, "https://api.openai.com/v1");
	assert_int_equal(rig.config->providers[1].key_count, 0);
	rig_fini(&rig);
}

static void models_have_their_prices_and_profiles(void **state)
{
	(void)state;
	struct rig rig;
	rig_load_whole(&rig);
	const struct catalog *catalog = &rig.config->catalog;
	assert_int_equal(catalog->count, 3);
	const struct model *m = &catalog->models[0];
	assert_slice(m->name, "claude-sonnet-4-6");
	assert_int_equal(m->alias_count, 2);
	assert_slice(m->aliases[1], "s");
	assert_int_equal(m->provider, 0);
	assert_true(m->enabled);
	assert_int_equal(m->context, 1000000);
	assert_int_equal(m->price_input, 3000000);
	assert_int_equal(m->price_output, 15000000);
	assert_int_equal(m->price_cache_read, 300000);
	assert_int_equal(m->price_cache_write, 3750000);
	assert_int_equal(m->price_cache_write_1h, 6000000); /* twice the input's */
	assert_true(m->speed > 0.599 && m->speed < 0.601);
	assert_true(m->intelligence > 0.849 && m->intelligence < 0.851);
	assert_int_equal(m->profile.max_output, 64000);
	assert_int_equal(m->profile.max_stop, 8);
	assert_true(m->profile.image && m->profile.structured_output && m->profile.forced_tool);
	assert_false(m->profile.audio || m->profile.prefill);
	m = &catalog->models[1];
	assert_slice(m->name, "claude-new"); /* the id */
	assert_int_equal(m->price_input, 1);
	assert_int_equal(m->price_output, 0);
	assert_int_equal(m->price_cache_read, 1); /* the input's */
	assert_int_equal(m->price_cache_write, 1);
	assert_int_equal(m->price_cache_write_1h, 2);
	assert_false(catalog->models[2].enabled);
	rig_fini(&rig);
}

static void versions_and_endpoints_decide_profile_defaults(void **state)
{
	(void)state;
	struct rig rig;
	rig_load_whole(&rig);
	const struct model *m = rig.config->catalog.models;
	assert_slice(rig.config->model_versions[0], "2023-06-01");
	assert_false(m[0].profile.temperature_never);
	assert_true(m[0].profile.temperature_max > 0.99 && m[0].profile.temperature_max < 1.01);
	assert_int_equal(m[0].profile.max_tokens_field, MAX_TOKENS_FIELD_MAX_TOKENS);
	assert_slice(rig.config->model_versions[1], "2026-10-21");
	assert_true(m[1].profile.temperature_never);
	assert_int_equal(m[1].profile.max_stop, 16);
	assert_null(rig.config->model_versions[2].at);
	assert_int_equal(m[2].profile.max_stop, 4);
	assert_int_equal(m[2].profile.max_tokens_field, MAX_TOKENS_FIELD_COMPLETION);
	assert_true(m[2].profile.temperature_max > 1.99 && m[2].profile.temperature_max < 2.01);
	rig_fini(&rig);
}

static void plans_grant_what_they_say(void **state)
{
	(void)state;
	struct rig rig;
	rig_load_whole(&rig);
	const struct tenant *t = tenants_by_id(&rig.config->tenants, SLICE("acme"));
	assert_non_null(t);
	assert_true(t->disabled);
	const struct plan *p = t->plan;
	assert_int_equal(p->magic, PLAN_MAGIC);
	assert_true(p->capabilities.tools && p->capabilities.images);
	assert_true(p->capabilities.context);
	assert_false(p->capabilities.audio);
	assert_true(bitset_has(&p->models, 0));
	assert_false(bitset_has(&p->models, 1)); /* denied */
	assert_false(bitset_has(&p->models, 2)); /* "gpt" is not "gpt-*" */
	assert_int_equal(p->default_model, 0);
	assert_int_equal(p->limits.requests.per_minute, 600);
	assert_int_equal(p->limits.requests.burst, 70);
	assert_int_equal(p->limits.tokens.per_minute, 200000);
	assert_int_equal(p->limits.tokens.burst, 300000);
	assert_int_equal(p->limits.concurrent, 64);
	assert_int_equal(p->limits.max_tokens, 5000);
	assert_true(p->limits.max_tokens_refuse);
	assert_int_equal(p->limits.tool_rounds, 11);
	assert_true(p->limits.tool_rounds_refuse);
	assert_int_equal(p->limits.loop_tokens, 12345);
	assert_int_equal(p->limits.loop_usd, 250000000);
	assert_true(p->limits.unknown_calls_refuse);
	assert_int_equal(p->limits.usd_per_day, 50000000000);
	assert_int_equal(p->limits.usd_per_month, 1000500000000);
	assert_int_equal(p->limits.deadline, 56 * SEC);
	rig_fini(&rig);
}

static void tenant_files_are_read_in_order_and_found_by_pattern(void **state)
{
	(void)state;
	struct rig rig;
	rig_load_whole(&rig);
	const struct tenants *all = &rig.config->tenants;
	assert_int_equal(all->count, 3);
	assert_slice(all->tenants[0].id, "acme");
	assert_slice(all->tenants[1].id, "alpha");
	assert_slice(all->tenants[2].id, "beta");
	assert_int_equal(all->key_count, 2);
	assert_ptr_equal(all->keys[1].tenant, &all->tenants[1]);
	assert_slice(all->keys[0].server, "billing");
	assert_null(all->keys[1].server.at);
	assert_int_equal(all->keys[1].digest[31], 0xbb);
	rig_fini(&rig);
}

/* ---- what it does not say ---- */

static void defaults_are_those_of_the_design(void **state)
{
	(void)state;
	struct rig rig;
	rig_load_good(&rig, RIG_PROVIDERS RIG_MODELS "tenants: [{id: acme}]\n");
	const struct config *c = rig.config;
	assert_int_equal(c->listen_count, 1);
	assert_slice(c->listen[0].text, "127.0.0.1:8080");
	assert_null(c->admin.host.at);
	assert_null(c->admin_socket.at);
	assert_true(c->workers >= 1 && c->workers <= 256);
	assert_int_equal(c->body_bytes_max, 16 << 20);
	assert_int_equal(c->connections_max, 20000);
	assert_int_equal(c->drain, 630 * SEC); /* the longest total and 30 s */
	assert_int_equal(c->origin_count, 0);
	assert_int_equal(c->metrics_tenants, 1000);
	assert_true(c->providers[0].enabled);
	assert_int_equal(c->providers[0].timeouts.connect, 2 * SEC);
	assert_int_equal(c->providers[0].timeouts.first_byte, 60 * SEC);
	assert_int_equal(c->providers[0].timeouts.idle, 30 * SEC);
	assert_int_equal(c->providers[0].timeouts.total, 600 * SEC);
	const struct plan *p = c->tenants.tenants[0].plan;
	const struct tenant_limits preset = limit_defaults();
	assert_int_equal(p->default_model, -1);
	for (uint32_t i = 0; i < c->catalog.count; i++)
		assert_false(bitset_has(&p->models, i));
	assert_int_equal(p->limits.requests.per_minute, preset.requests.per_minute);
	assert_int_equal(p->limits.requests.burst, 6);
	assert_int_equal(p->limits.tokens.per_minute, 100000);
	assert_int_equal(p->limits.tokens.burst, 100000);
	assert_int_equal(p->limits.concurrent, 8);
	assert_int_equal(p->limits.max_tokens, 4096);
	assert_false(p->limits.max_tokens_refuse || p->limits.tool_rounds_refuse);
	assert_int_equal(p->limits.loop_tokens, 200000);
	assert_int_equal(p->limits.loop_usd, UINT64_MAX);
	assert_false(p->limits.unknown_calls_refuse);
	assert_int_equal(p->limits.usd_per_day, 5000000000);
	assert_int_equal(p->limits.usd_per_month, UINT64_MAX);
	assert_int_equal(p->limits.deadline, 55 * SEC);
	assert_int_equal(p->limits.deadline_progress, 600 * SEC);
	rig_fini(&rig);
}

static void anthropic_version_has_a_default(void **state)
{
	(void)state;
	struct rig rig;
	rig_load_good(
		&rig,
		"providers:\n"
		"  main: {dialect: anthropic, endpoints: [{url: \"http://localhost:1\"}]}\n"
		"models: [{id: m, provider: main, context: 1, price: {input: 0, output: 0}}]\n");
	assert_slice(rig.config->providers[0].version, "2026-10-21");
	assert_slice(rig.config->model_versions[0], "2026-10-21");
	rig_fini(&rig);
}

/* The table repeats for its readers what codec has for its own; they must not differ. */
static void profile_defaults_are_those_of_codec(void **state)
{
	static const char *const dialects[] = { "anthropic", "openai", "openai-responses" };
	(void)state;
	for (size_t i = 0; i < COUNT_OF(dialects); i++) {
		char text[512];
		struct rig rig;
		struct profile expected;
		(void)snprintf(text, sizeof(text),
			       "providers:\n"
			       "  main: {dialect: %s, endpoints: [{url: \"http://localhost:1\"}]}\n"
			       "models: [{id: m, provider: main, context: 1,"
			       " price: {input: 0, output: 0}}]\n",
			       dialects[i]);
		rig_load_good(&rig, text);
		(void)memset(&expected, 0, sizeof(expected));
		profile_defaults(&expected, (enum dialect_id)i, SLICE("2026-10-21"));
		const struct profile *p = &rig.config->catalog.models[0].profile;
		assert_int_equal(p->max_output, expected.max_output);
		assert_int_equal(p->max_stop, expected.max_stop);
		assert_int_equal(p->image, expected.image);
		assert_int_equal(p->audio, expected.audio);
		assert_int_equal(p->forced_tool, expected.forced_tool);
		assert_int_equal(p->structured_output, expected.structured_output);
		assert_int_equal(p->prefill, expected.prefill);
		assert_int_equal(p->temperature_never, expected.temperature_never);
		assert_int_equal(p->max_tokens_field, expected.max_tokens_field);
		assert_int_equal(p->reasoning, expected.reasoning);
		assert_int_equal(p->tools_need_effort_none, expected.tools_need_effort_none);
		assert_int_equal(p->text_content_as_string, expected.text_content_as_string);
		assert_int_equal(p->user_after_tool, expected.user_after_tool);
		assert_int_equal(p->stream_usage, expected.stream_usage);
		assert_int_equal(p->count_tokens, expected.count_tokens);
		assert_int_equal(p->think_tags, expected.think_tags);
		assert_int_equal(p->id_rule, expected.id_rule);
		rig_fini(&rig);
	}
}

static void a_profile_of_the_file_wins_over_every_default(void **state)
{
	(void)state;
	struct rig rig;
	rig_load_good(
		&rig,
		"providers:\n"
		"  main: {dialect: openai, endpoints: [{url: \"https://api.openai.com/v1\"}]}\n"
		"models:\n"
		"  - {id: a, provider: main, context: 1, price: {input: 0, output: 0}, profile: {"
		"temperature: null, max_tokens_field: max_tokens, max_stop: 0, id_rule: alnum9, "
		"user_after_tool: false, reasoning: true, think_tags: true}}\n"
		"  - {id: b, provider: main, context: 1, price: {input: 0, output: 0}, profile: {"
		"temperature: [0.5, 1.5]}}\n");
	const struct profile *p = &rig.config->catalog.models[0].profile;
	assert_true(p->temperature_never);
	assert_int_equal(p->max_tokens_field, MAX_TOKENS_FIELD_MAX_TOKENS);
	assert_int_equal(p->max_stop, 0);
	assert_int_equal(p->id_rule, ID_RULE_MISTRAL9);
	assert_false(p->user_after_tool);
	assert_true(p->reasoning && p->think_tags);
	p = &rig.config->catalog.models[1].profile;
	assert_false(p->temperature_never);
	assert_true(p->temperature_min > 0.49 && p->temperature_min < 0.51);
	assert_true(p->temperature_max > 1.49 && p->temperature_max < 1.51);
	rig_fini(&rig);
}

static void models_of_a_disabled_provider_are_disabled(void **state)
{
	(void)state;
	struct rig rig;
	rig_load_good(&rig, "providers:\n"
			    "  main: {dialect: openai, endpoints: [{url: \"http://localhost\"}], "
			    "enabled: false}\n" RIG_MODELS);
	assert_false(rig.config->providers[0].enabled);
	assert_false(rig.config->catalog.models[0].enabled);
	rig_fini(&rig);
}

static void json_is_read_too(void **state)
{
	(void)state;
	struct rig rig;
	rig_load_good(&rig,
		      "{\"providers\": {\"main\": {\"dialect\": \"openai\", \"endpoints\": "
		      "[{\"url\": \"https://llm.example/v1\"}]}},\n \"models\": [{\"id\": \"m\", "
		      "\"provider\": \"main\", \"context\": 1e3, \"price\": {\"input\": 25e-2, "
		      "\"output\": 1}, \"enabled\": true}]}\n");
	assert_int_equal(rig.config->catalog.models[0].context, 1000);
	assert_int_equal(rig.config->catalog.models[0].price_input, 250000);
	rig_fini(&rig);
}

/* ---- restart ---- */

static void changes_that_need_a_restart_are_named(void **state)
{
#define REST RIG_PROVIDERS RIG_MODELS
	static const char base[] = "listen: [{address: \"0.0.0.0:80\"}]\nworkers: 2\n"
				   "admin: {address: \"127.0.0.1:9\", socket: s}\n" REST;
	static const struct {
		const char *text, *key;
		uint32_t line;
	} rows[] = {
		{ base, NULL, 0 },
		{ "drain: 1s\nlisten: [{address: \"0.0.0.0:80\"}]\nworkers: 2\n"
		  "admin: {address: \"127.0.0.1:9\", socket: s}\nmetrics: {tenants: 1}\n" REST,
		  NULL, 0 },
		{ "listen: [{address: \"0.0.0.0:81\"}]\nworkers: 2\n"
		  "admin: {address: \"127.0.0.1:9\", socket: s}\n" REST,
		  "listen", 1 },
		{ "listen: [{address: \"0.0.0.0:80\", trusted_proxy: true}]\nworkers: 2\n"
		  "admin: {address: \"127.0.0.1:9\", socket: s}\n" REST,
		  "listen", 1 },
		{ "listen: [{address: \"0.0.0.0:80\"}, {address: \"[::]:80\"}]\nworkers: 2\n"
		  "admin: {address: \"127.0.0.1:9\", socket: s}\n" REST,
		  "listen", 1 },
		{ "listen: [{address: \"0.0.0.0:80\"}]\nworkers: 2\nadmin: {socket: s}\n" REST,
		  "admin", 3 },
		{ "listen: [{address: \"0.0.0.0:80\"}]\nworkers: 2\n"
		  "admin: {address: \"127.0.0.1:9\"}\n" REST,
		  "admin", 3 },
		{ "listen: [{address: \"0.0.0.0:80\"}]\nworkers: 3\n"
		  "admin: {address: \"127.0.0.1:9\", socket: s}\n" REST,
		  "workers", 2 },
		{ "listen: [{address: \"0.0.0.0:80\"}]\nworkers: 2\n"
		  "admin: {address: \"127.0.0.1:9\", socket: s}\nstore: {blocks: {ttl: 2h}}\n" REST,
		  "store.blocks", 4 },
		{ "listen: [{address: \"0.0.0.0:80\"}]\nworkers: 2\n"
		  "admin: {address: \"127.0.0.1:9\", socket: s}\nuser: nobody\n" REST,
		  "user", 4 },
	};
	struct rig running, fresh;
	(void)state;
	rig_load_good(&running, base);
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		rig_load_good(&fresh, rows[i].text);
		uint32_t line;
		const char *key = settings_needs_restart(running.config, fresh.config, &line);
		if (rows[i].key == NULL) {
			assert_null(key);
		} else {
			assert_string_equal(key, rows[i].key);
			assert_int_equal(line, rows[i].line);
		}
		rig_fini(&fresh);
	}
	rig_fini(&running);
}

static void a_byte_order_mark_before_the_text_does_no_harm(void **state)
{
	struct rig rig;
	(void)state;
	rig_load_good(&rig, "\xef\xbb\xbf# from an editor that writes one\nworkers: 2\n" REST);
	assert_int_equal(rig.config->workers, 2);
	assert_int_equal(rig.config->workers_line, 2);
	rig_fini(&rig);
}

static void of_the_store_only_user_and_password_may_change(void **state)
{
#define STORE(url) "store: {kind: redis, url: \"" url "\"}\n" REST
	static const struct {
		const char *text, *key;
	} rows[] = {
		{ STORE("redis://other:new@r:1/2"), NULL },
		{ STORE("redis://r:1/2"), NULL },
		{ STORE("redis://u:p@s:1/2"), "store.url" },
		{ STORE("redis://u:p@r:3/2"), "store.url" },
		{ STORE("redis://u:p@r:1/0"), "store.url" },
		{ STORE("rediss://u:p@r:1/2"), "store.url" },
		{ "store: {kind: redis, url: \"redis://u:p@r:1/2\", deadline: 21ms}\n" REST,
		  "store.deadline" },
		{ REST, "store.kind" },
	};
	struct rig running, fresh;
	uint32_t line;
	(void)state;
	rig_load_good(&running, STORE("redis://u:p@r:1/2"));
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		rig_load_good(&fresh, rows[i].text);
		const char *key = settings_needs_restart(running.config, fresh.config, &line);
		assert_int_equal(key == NULL, rows[i].key == NULL);
		if (key != NULL)
			assert_string_equal(key, rows[i].key);
		rig_fini(&fresh);
	}
	rig_fini(&running);
}

/* A container's CPUs may change while the gateway runs. */
static void auto_workers_are_those_that_run(void **state)
{
	const char *const text = "workers: auto\n" RIG_PROVIDERS RIG_MODELS;
	const struct config_file file = { SLICE("sluice.yaml"), slice_str(text) };
	struct settings_source source = { .path = "sluice.yaml", .files = &file, .file_count = 1 };
	uint32_t line;
	(void)state;
	source.auto_workers = 77;
	struct config *running = settings_load(&source, stderr);
	struct config *fresh = settings_load(&source, stderr);
	assert_non_null(running);
	assert_non_null(fresh);
	assert_true(running->workers_auto);
	assert_int_equal(running->workers, 77);
	assert_null(settings_needs_restart(running, fresh, &line));
	settings_free(&fresh);
	source.auto_workers = 0;
	fresh = settings_load(&source, stderr);
	assert_non_null(fresh);
	assert_true(fresh->workers >= 1 && fresh->workers <= 256);
	settings_free(&fresh);
	settings_free(&running);
}

static void freeing_nothing_is_allowed(void **state)
{
	struct config *config = NULL;
	(void)state;
	settings_free(&config);
	assert_null(config);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(settings_of_the_process_are_taken_over),
		cmocka_unit_test(endpoints_are_taken_apart),
		cmocka_unit_test(keys_come_literally_from_the_environment_and_from_files),
		cmocka_unit_test(models_have_their_prices_and_profiles),
		cmocka_unit_test(versions_and_endpoints_decide_profile_defaults),
		cmocka_unit_test(plans_grant_what_they_say),
		cmocka_unit_test(tenant_files_are_read_in_order_and_found_by_pattern),
		cmocka_unit_test(defaults_are_those_of_the_design),
		cmocka_unit_test(anthropic_version_has_a_default),
		cmocka_unit_test(profile_defaults_are_those_of_codec),
		cmocka_unit_test(a_profile_of_the_file_wins_over_every_default),
		cmocka_unit_test(models_of_a_disabled_provider_are_disabled),
		cmocka_unit_test(json_is_read_too),
		cmocka_unit_test(changes_that_need_a_restart_are_named),
		cmocka_unit_test(a_byte_order_mark_before_the_text_does_no_harm),
		cmocka_unit_test(of_the_store_only_user_and_password_may_change),
		cmocka_unit_test(auto_workers_are_those_that_run),
		cmocka_unit_test(freeing_nothing_is_allowed),
	};
	return cmocka_run_group_tests_name("settings", tests, NULL, NULL);
}
