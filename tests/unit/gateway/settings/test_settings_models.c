#include "tests/unit/gateway/settings/settings_rig.h"

#include <string.h>

#define PROVIDERS                                                                                  \
	"providers:\n"                                                                             \
	"  a: {dialect: anthropic, endpoints: [{url: \"http://localhost\"}]}\n"                    \
	"  old: {dialect: anthropic, version: \"2023-06-01\", endpoints: [{url: \"http://b\"}]}\n" \
	"  o: {dialect: openai, endpoints: [{url: \"http://localhost/v1\"}]}\n"

static void a_known_model_needs_no_more_than_its_name(void **state)
{
	struct rig rig;
	(void)state;
	rig_load_good(&rig, PROVIDERS "models:\n"
				      "  - {id: opus, provider: a, name: claude-opus-5-5}\n"
				      "  - {id: gpt-5.4-mini, provider: o}\n"
				      "  - {id: mistral-small-latest, provider: o}\n");
	const struct model *m = rig.config->catalog.models;
	assert_int_equal(m[0].context, 1000000);
	assert_int_equal(m[0].price_input, 4000000);
	assert_int_equal(m[0].price_output, 20000000);
	assert_int_equal(m[0].price_cache_read, 200000);
	assert_int_equal(m[0].price_cache_write, 5000000);
	assert_int_equal(m[0].price_cache_write_1h, 8000000);
	assert_true(m[0].intelligence == 0.95 && m[0].speed == 0.45);
	assert_int_equal(m[0].profile.max_output, 128000);
	assert_true(m[0].profile.image && m[0].profile.structured_output);
	assert_true(m[0].profile.temperature_never);
	assert_false(m[0].profile.forced_tool || m[0].profile.audio || m[0].profile.prefill);
	assert_int_equal(m[0].profile.max_stop, 16);
	assert_int_equal(m[1].context, 272000); /* of its input */
	assert_int_equal(m[1].price_cache_write, 750000);
	assert_int_equal(m[1].profile.max_stop, 0);
	assert_int_equal(m[1].profile.max_tokens_field, MAX_TOKENS_FIELD_COMPLETION);
	assert_true(m[1].profile.reasoning && m[1].profile.tools_need_effort_none);
	assert_int_equal(m[2].profile.id_rule, ID_RULE_MISTRAL9);
	assert_false(m[2].profile.user_after_tool);
	assert_true(m[2].profile.audio_as_string && !m[2].profile.audio);
	assert_true(m[1].profile.stream_usage && !m[2].profile.stream_usage);
	assert_int_equal(m[2].profile.user_id_field, USER_ID_FIELD_NONE);
	assert_true(m[2].profile.temperature_min == 0 && m[2].profile.temperature_max == 1.5);
	assert_int_equal(m[1].profile.user_id_field, USER_ID_FIELD_OWN);
	assert_false(m[1].profile.audio_as_string);
	assert_int_equal(m[2].profile.max_stop, 4);
	assert_int_equal(m[2].profile.max_tokens_field, MAX_TOKENS_FIELD_MAX_TOKENS);
	rig_fini(&rig);
}

static void what_the_file_says_wins_over_the_catalogue(void **state)
{
	struct rig rig;
	(void)state;
	rig_load_good(&rig,
		      PROVIDERS "models:\n"
				"  - id: opus\n"
				"    provider: a\n"
				"    name: claude-opus-5-5\n"
				"    context: 5000\n"
				"    speed: 0\n"
				"    intelligence: 0.5\n"
				"    price: {input: 0, output: 0, cache_write_1h: 7}\n"
				"    profile: {max_output: 100, image: false, forced_tool: true,"
				" structured_output: false, temperature: [0, 1], max_stop: 3}\n");
	const struct model *m = rig.config->catalog.models;
	assert_int_equal(m->context, 5000);
	assert_true(m->speed == 0 && m->intelligence == 0.5);
	assert_int_equal(m->price_input, 0);
	assert_int_equal(m->price_output, 0);
	assert_int_equal(m->price_cache_read, 0); /* the catalogue's price is taken whole or not */
	assert_int_equal(m->price_cache_write, 0);
	assert_int_equal(m->price_cache_write_1h, 7000000);
	assert_int_equal(m->profile.max_output, 100);
	assert_int_equal(m->profile.max_stop, 3);
	assert_true(m->profile.forced_tool);
	assert_false(m->profile.image || m->profile.structured_output ||
		     m->profile.temperature_never);
	rig_fini(&rig);
}

static void a_version_still_decides_about_temperature_where_the_model_would_take_it(void **state)
{
	struct rig rig;
	(void)state;
	rig_load_good(&rig, PROVIDERS "models:\n"
				      "  - {id: claude-haiku-4-5, provider: a}\n"
				      "  - {id: h, provider: old, name: claude-haiku-4-5}\n"
				      "  - {id: s, provider: old, name: claude-sonnet-5}\n");
	const struct model *m = rig.config->catalog.models;
	assert_true(m[0].profile.temperature_never); /* nobody takes one under that version */
	assert_false(m[1].profile.temperature_never);
	assert_true(m[2].profile.temperature_never);
	assert_true(m[0].profile.prefill && m[1].profile.prefill);
	assert_false(m[2].profile.prefill);
	rig_fini(&rig);
}

static void what_is_missing_of_an_unknown_model_is_named_with_a_neighbour(void **state)
{
	struct rig rig;
	(void)state;
	rig_load(&rig, PROVIDERS "models:\n"
				 "  - {id: sonnet, provider: a, name: claude-sonnet-4.6,"
				 " price: {input: 1, output: 2}}\n"
				 "  - {id: own, provider: o, context: 8000}\n"
				 "  - {id: gpt-4.1, provider: o, price: {output: 1}}\n");
	assert_null(rig.config);
	assert_string_equal(
		rig.problems,
		"conf/sluice.yaml:6: models[0].context: is missing, and claude-sonnet-4.6 is no "
		"model that this version knows (claude-sonnet-4-6 is); write a whole number from 1 "
		"to 1000000000000\n"
		"conf/sluice.yaml:7: models[1].price.input: is missing, and own is no model that "
		"this version knows; write USD per million tokens from 0 to 1000000\n"
		"conf/sluice.yaml:7: models[1].price.output: is missing, and own is no model that "
		"this version knows; write USD per million tokens from 0 to 1000000\n"
		"conf/sluice.yaml:8: models[2].price.input: is missing; write USD per million "
		"tokens from 0 to 1000000\n");
	rig_fini(&rig);
}

static void who_says_what_is_in_force_is_told_on_demand(void **state)
{
	static const char text[] = PROVIDERS "models:\n"
					     "  - {id: opus, provider: a, name: claude-opus-4-8,"
					     " context: 9, aliases: [o]}\n"
					     "  - {id: own, provider: o, context: 8, price: "
					     "{input: 1.5, output: 2}}\n";
	static const char *const lines[] = {
		"models[0] opus: claude-opus-4-8 of anthropic is in the catalogue (models.dev@",
		"  context                          9                        file\n",
		"  price.output                     25                       catalogue\n",
		"  speed                            0.45                     catalogue\n",
		"  profile.temperature              null                     catalogue\n",
		"  profile.text_content_as_string   false                    default\n",
		"models[1] own\n",
		"  price.input                      1.5                      file\n",
		"  price.cache_read                 (price.input)            default\n",
		"  intelligence                     0.5                      default\n",
		"  profile.id_rule                  none                     default\n",
	};
	const struct config_file file = { SLICE("sluice.yaml"), slice_str(text) };
	struct settings_source source = { .path = "sluice.yaml", .files = &file, .file_count = 1 };
	char *said = NULL;
	size_t len = 0;
	(void)state;
	source.models = open_memstream(&said, &len);
	struct config *config = settings_load(&source, stderr);
	assert_non_null(config);
	assert_int_equal(fclose(source.models), 0);
	const char *at = said;
	for (size_t i = 0; i < COUNT_OF(lines); i++) {
		at = strstr(at, lines[i]);
		if (at == NULL)
			fail_msg("there is no line \"%s\" in its place in:\n%s", lines[i], said);
	}
	free(said);
	settings_free(&config);
}

static void hints_may_mean_other_models_as_the_plan_or_the_tenant_says(void **state)
{
	struct rig rig;
	(void)state;
	rig_load_good(&rig, RIG_PROVIDERS RIG_MODELS
		      "plans:\n"
		      "  basic: {models: {allow: [\"*\"], aliases: ["
		      "{hint: \"Claude-*\", models: [large, \"g*\", \"later-*\"]},"
		      " {hint: o3, models: [small]}]}}\n"
		      "tenants:\n"
		      "  - {id: a, plan: basic}\n"
		      "  - {id: b, plan: basic, models: {aliases: [{hint: x, models: [gpt]}]}}\n"
		      "  - {id: c, plan: basic, limits: {concurrent: 3},"
		      " servers: {s: {models: {aliases: []}}}}\n");
	const struct plan *a = tenants_by_id(&rig.config->tenants, SLICE("a"))->plan;
	const struct plan *b = tenants_by_id(&rig.config->tenants, SLICE("b"))->plan;
	const struct plan *c = tenants_by_id(&rig.config->tenants, SLICE("c"))->plan;
	assert_int_equal(a->alias_count, 2);
	assert_slice(a->aliases[0].hint, "claude-*");
	assert_false(bitset_has(&a->aliases[0].models, 0));
	assert_true(bitset_has(&a->aliases[0].models, 1));
	assert_true(bitset_has(&a->aliases[0].models, 2));
	assert_slice(a->aliases[1].hint, "o3");
	assert_true(bitset_has(&a->aliases[1].models, 0));
	assert_int_equal(b->alias_count, 1);
	assert_slice(b->aliases[0].hint, "x");
	assert_true(bitset_has(&b->models, 0)); /* allow stays the plan's */
	assert_int_equal(c->alias_count, 2);
	assert_int_equal(plan_for(c, SLICE("s"))->alias_count, 0);
	rig_fini(&rig);
}

static void names_that_mislead_are_told(void **state)
{
	static const char text[] = PROVIDERS
		"models:\n"
		"  - {id: auto, provider: o, context: 1, price: {input: 0, output: 0}}\n"
		"  - {id: b, provider: o, context: 1, price: {input: 0, output: 0}, aliases: "
		"[\"claude-*\", Auto]}\n";
	const struct config_file file = { SLICE("sluice.yaml"), slice_str(text) };
	struct settings_source source = { .path = "sluice.yaml", .files = &file, .file_count = 1 };
	char *said = NULL;
	size_t len = 0;
	struct rig rig;

	(void)state;
	source.warnings = open_memstream(&said, &len);
	struct config *config = settings_load(&source, stderr);
	assert_non_null(config);
	assert_int_equal(fclose(source.warnings), 0);
	assert_string_equal(
		said,
		"sluice.yaml:6: models[0].id: has the name auto, by which the direct APIs leave "
		"the choice to the gateway, so that it means no model there; write another\n"
		"sluice.yaml:7: models[1].aliases: has the name Auto, by which the direct APIs "
		"leave the choice to the gateway, so that it means no model there; write "
		"another\n");
	free(said);
	settings_free(&config);
	rig_load(&rig, PROVIDERS "models:\n"
				 "  - {id: b, provider: o, context: 1, price: {input: 0, output: "
				 "0}, aliases: [\"?*\"]}\n");
	assert_null(rig.config);
	assert_string_equal(
		rig.problems,
		"conf/sluice.yaml:6: models[0].aliases: has ?*, which would make the model "
		"everybody's answer to a name that nobody has; write what the names begin with, "
		"such as claude-haiku-*\n");
	rig_fini(&rig);
}

static void a_models_ways_can_be_said_one_by_one(void **state)
{
	struct rig rig;
	(void)state;
	rig_load_good(
		&rig, PROVIDERS
		"models:\n"
		"  - {id: mistral-small-latest, provider: o,"
		" profile: {audio_as_string: false, user_id_field: user, temperature: [0, 1]}}\n"
		"  - {id: nine, provider: o, context: 1, price: {input: 0, output: 0},"
		" profile: {id_rule: alnum9, audio: true}}\n"
		"  - {id: quiet, provider: a, context: 1, price: {input: 0, output: 0},"
		" profile: {user_id_field: none, count_tokens: false}}\n"
		"  - {id: m, name: mistral-large-latest, provider: a}\n"
		"  - {id: gemini-2.5-pro, provider: o}\n"
		"  - {id: hosted, name: gemini-2.5-pro, provider: a}\n");
	const struct model *m = rig.config->catalog.models;
	assert_false(m[0].profile.audio_as_string);
	assert_false(m[0].profile.stream_usage);
	assert_int_equal(m[0].profile.user_id_field, USER_ID_FIELD_USER);
	assert_true(m[0].profile.temperature_max == 1);
	assert_false(m[1].profile.audio_as_string); /* ids are another matter */
	assert_true(m[1].profile.stream_usage);
	assert_int_equal(m[1].profile.user_id_field, USER_ID_FIELD_OWN);
	assert_int_equal(m[2].profile.user_id_field, USER_ID_FIELD_NONE);
	assert_true(m[3].profile.count_tokens);
	assert_false(m[0].profile.count_tokens || m[2].profile.count_tokens);
	assert_true(m[1].profile.audio);
	assert_true(m[4].profile.audio);
	assert_false(
		m[5].profile.audio); /* or it would be chosen for what its dialect cannot say */
	rig_fini(&rig);
}

static void tokens_are_counted_by_anthropics_format_alone(void **state)
{
	struct rig rig;
	(void)state;
	rig_load(&rig, PROVIDERS "models:\n  - {id: gpt-5.4-mini, provider: o, profile: "
				 "{count_tokens: true}}\n");
	assert_null(rig.config);
	assert_non_null(strstr(rig.problems, "profile.count_tokens"));
	assert_non_null(strstr(rig.problems, "has no meaning for this provider's dialect"));
	rig_fini(&rig);
}

static void openai_takes_128_tools_and_other_hosts_what_the_file_says(void **state)
{
	struct rig rig;
	(void)state;
	rig_load_good(&rig, "providers:\n"
			    "  o: {dialect: openai, keys: [k], endpoints: [{url: "
			    "\"https://api.openai.com/v1\"}]}\n"
			    "  r: {dialect: openai-responses, keys: [k], endpoints: [{url: "
			    "\"https://api.openai.com/v1\"}]}\n"
			    "  z: {dialect: openai, keys: [k], endpoints: [{url: "
			    "\"https://me.openai.azure.com/openai/v1\"}]}\n"
			    "  v: {dialect: openai, keys: [k], endpoints: [{url: "
			    "\"http://vllm.example:8000/v1\"}]}\n"
			    "models:\n"
			    "  - {id: a, name: gpt-4.1, provider: o}\n"
			    "  - {id: b, name: gpt-4.1, provider: r}\n"
			    "  - {id: c, name: gpt-4.1, provider: z}\n"
			    "  - {id: d, name: gpt-4.1, provider: v}\n"
			    "  - {id: e, name: gpt-4.1, provider: v, profile: {max_tools: 64, "
			    "merge_same_role: true}}\n"
			    "  - {id: f, name: gpt-4.1, provider: o, profile: {max_tools: 512}}\n");
	static const uint32_t most[] = { 128, 128, 128, 0, 64, 512 };
	const struct model *m = rig.config->catalog.models;
	for (size_t i = 0; i < COUNT_OF(most); i++) {
		assert_int_equal(m[i].profile.max_tools, most[i]);
		assert_int_equal(m[i].profile.merge_same_role, i == 4);
	}
	rig_fini(&rig);
}

static void what_the_body_says_is_sent_as_it_stands(void **state)
{
	struct rig rig;
	(void)state;
	rig_load_good(
		&rig,
		"providers:\n"
		"  r: {dialect: openai-responses, endpoints: [{url: \"http://localhost/v1\"}]}\n"
		"  o: {dialect: openai, endpoints: [{url: \"http://localhost/v1\"}]}\n"
		"models:\n"
		"  - {id: a, provider: r, context: 1, price: {input: 0, output: 0},\n"
		"     profile: {body: '{ \"reasoning\": {\"effort\": \"high\"}, \"x\":[1] }'}}\n"
		"  - {id: b, provider: o, context: 1, price: {input: 0, output: 0},\n"
		"     profile: {body: '{\"top_k\": 1}'}}\n"
		"  - {id: c, provider: o, context: 1, price: {input: 0, output: 0},\n"
		"     profile: {body: '{}'}}\n"
		"  - {id: gpt-5.4, provider: r}\n"
		"  - {id: d, name: gpt-5.4, provider: o}\n");
	const struct model *m = rig.config->catalog.models;
	assert_slice(m[0].profile.body, " \"reasoning\": {\"effort\": \"high\"}, \"x\":[1]");
	assert_true(m[0].profile.effort_said);
	assert_slice(m[1].profile.body, "\"top_k\": 1");
	assert_false(m[1].profile.effort_said);
	assert_int_equal(m[2].profile.body.len, 0);
	/* tools beside an effort are what Responses is there for */
	assert_false(m[3].profile.tools_need_effort_none);
	assert_true(m[4].profile.tools_need_effort_none);
	rig_fini(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_known_model_needs_no_more_than_its_name),
		cmocka_unit_test(what_the_file_says_wins_over_the_catalogue),
		cmocka_unit_test(
			a_version_still_decides_about_temperature_where_the_model_would_take_it),
		cmocka_unit_test(what_is_missing_of_an_unknown_model_is_named_with_a_neighbour),
		cmocka_unit_test(who_says_what_is_in_force_is_told_on_demand),
		cmocka_unit_test(hints_may_mean_other_models_as_the_plan_or_the_tenant_says),
		cmocka_unit_test(names_that_mislead_are_told),
		cmocka_unit_test(a_models_ways_can_be_said_one_by_one),
		cmocka_unit_test(tokens_are_counted_by_anthropics_format_alone),
		cmocka_unit_test(openai_takes_128_tools_and_other_hosts_what_the_file_says),
		cmocka_unit_test(what_the_body_says_is_sent_as_it_stands),
	};
	return cmocka_run_group_tests_name("settings_models", tests, NULL, NULL);
}
