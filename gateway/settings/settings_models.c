/* settings_models.c - forms to configuration: the models.
 *
 * What the file says wins; what it leaves out is taken from the catalogue of known models, if that knows
 * what the provider calls this one, and else from the dialect. */
#include "codec/dialects.h"
#include "codec/set.h"
#include "gateway/settings/settings_loader.h"

#include "codec/base/must.h"
#include "gateway/settings/settings_value.h"
#include "routing/known.h"
#include "routing/name.h"

#include <inttypes.h>

_Static_assert(MAX_TOKENS_FIELD_MAX_TOKENS == 0 && MAX_TOKENS_FIELD_COMPLETION == 1,
	       "the order of choices in tbl/settings.h");
_Static_assert(ID_RULE_NONE == 0 && ID_RULE_MISTRAL9 == 1,
	       "the order of choices in tbl/settings.h");
_Static_assert(USER_ID_FIELD_OWN == 0 && USER_ID_FIELD_USER == 1 && USER_ID_FIELD_NONE == 2,
	       "the order of choices in tbl/settings.h");
_Static_assert((int)CATALOG_MODELS_MAX <= (int)BITSET_MAX, "plans name models by bit");

/* ---- known models ---- */

enum { FACTS_MAX = 24 };

/* What the catalogue says where the file does not: the key, and the number for the form's field. */
struct fact {
	const char *key;
	size_t field;
	uint64_t value; /* FORM_UNSET: nothing after all */
};

#define FACT(key, field, value)                                  \
	{                                                        \
		key, offsetof(struct model_form, field), (value) \
	}
_Static_assert(FORM_UNSET == KNOWN_UNSAID, "what is not said is not set");

static size_t known_facts(const struct known_model *known, struct fact out[FACTS_MAX])
{
	const struct fact facts[] = {
		FACT("context", context, known->context),
		FACT("price.input", price_input, known->price_input),
		FACT("price.output", price_output, known->price_output),
		FACT("price.cache_read", price_cache_read, known->price_cache_read),
		FACT("price.cache_write", price_cache_write, known->price_cache_write),
		FACT("profile.max_output", max_output, known->max_output),
		FACT("profile.max_stop", max_stop, known->stops_never ? 0 : FORM_UNSET),
		FACT("profile.image", image, known->image),
		FACT("profile.audio", audio, known->audio),
		FACT("profile.forced_tool", forced_tool, known->forced_tool),
		FACT("profile.structured_output", structured_output, known->structured_output),
		FACT("profile.prefill", prefill, known->prefill),
		FACT("profile.max_tokens_field", max_tokens_field,
		     known->completion_tokens ? MAX_TOKENS_FIELD_COMPLETION : FORM_UNSET),
		FACT("profile.reasoning", reasoning, known->reasoning),
		FACT("profile.tools_need_effort_none", tools_need_effort_none,
		     known->tools_need_effort_none),
		FACT("profile.user_after_tool", user_after_tool, known->user_after_tool),
		FACT("profile.think_tags", think_tags, known->think_tags),
		FACT("profile.id_rule", id_rule,
		     known->nine_character_ids ? ID_RULE_MISTRAL9 : ID_RULE_NONE),
		FACT("profile.audio_as_string", audio_as_string, known->audio_as_string),
		FACT("profile.stream_usage", stream_usage, known->stream_usage),
		FACT("profile.user_id_field", user_id_field,
		     known->user_id_never ? USER_ID_FIELD_NONE : FORM_UNSET),
	};

	_Static_assert(COUNT_OF(facts) <= FACTS_MAX, "all of them fit");
	(void)memcpy(out, facts, sizeof(facts));
	return COUNT_OF(facts);
}

/* A price of tokens is taken as a whole: half of somebody's own beside half of the list would be nobody's. What a server
 * tool costs stands beside it. */
static bool file_says(const struct model_form *form, const char *key)
{
	static const char tool[] = "price.server_tool";
	const struct node *price = node_find(form->node, "price");

	if (strncmp(key, "price.", strlen("price.")) != 0 || strcmp(key, tool) == 0)
		return node_find(form->node, key) != NULL;
	return price != NULL && (price->kind != NODE_MAP || price->count != 1 ||
				 node_find(form->node, tool) == NULL);
}

/* Whether it says something of temperature. */
static bool has_range(const struct known_model *known)
{
	return known->temperature_never || known->temperature_max != 0;
}

static void take_known(struct model_form *form, const struct known_model *known)
{
	struct fact facts[FACTS_MAX];
	const size_t count = known_facts(known, facts);

	for (size_t i = 0; i < count; i++)
		if (facts[i].value != FORM_UNSET && !file_says(form, facts[i].key))
			(void)memcpy((char *)form + facts[i].field, &facts[i].value,
				     sizeof(facts[i].value));
	if (!file_says(form, "speed"))
		form->speed = known->speed;
	if (!file_says(form, "intelligence"))
		form->intelligence = known->intelligence;
	if (has_range(known) && !file_says(form, "profile.temperature"))
		form->temperature = (struct form_range){ .set = true,
							 .never = known->temperature_never,
							 .max = known->temperature_max };
}

/* Says that `key` is missing, and who could have known it. */
static void miss(struct loader *l, const struct model_form *form, const char *key,
		 const struct known_model *known)
{
	const struct slice name = slice_absent(form->name) ? form->id : form->name;
	const struct known_model *nearest = known_nearest(name);
	char expects[128];
	bool group;

	setting_expects(settings_row(SCOPE_MODEL, SLICE(""), slice_str(key), &group), expects,
			sizeof(expects));
	if (known != NULL || slice_absent(name))
		problem_below(&l->problems, form->node, key, "is missing; write %s", expects);
	else
		problem_below(&l->problems, form->node, key,
			      "is missing, and %.*s is no model that this version knows%s%s%s; "
			      "write %s",
			      (int)name.len, name.at, nearest == NULL ? "" : " (",
			      nearest == NULL ? "" : nearest->name, nearest == NULL ? "" : " is)",
			      expects);
}

static void check_complete(struct loader *l, const struct model_form *form,
			   const struct known_model *known)
{
	const struct {
		const char *key;
		uint64_t value;
	} needed[] = {
		{ "context", form->context },
		{ "price.input", form->price_input },
		{ "price.output", form->price_output },
	};

	/* one that stands there and is wrong was reported when it was read */
	for (size_t i = 0; i < COUNT_OF(needed); i++)
		if (needed[i].value == FORM_UNSET && node_find(form->node, needed[i].key) == NULL)
			miss(l, form, needed[i].key, known);
}

/* ---- sluice check --verbose: what is in force, and who says so ---- */

static const char *origin(const struct model_form *form, const struct setting *row,
			  const struct known_model *known)
{
	struct fact facts[FACTS_MAX];
	const size_t count = known == NULL ? 0 : known_facts(known, facts);

	if (node_find(form->node, row->key) != NULL)
		return "file";
	if (file_says(form, row->key)) /* a price, of which this is not said */
		return "default";
	for (size_t i = 0; i < count; i++)
		if (facts[i].value != FORM_UNSET && strcmp(facts[i].key, row->key) == 0)
			return "catalogue";
	if (known != NULL &&
	    (row->type == TYPE_FRACTION || (row->type == TYPE_RANGE && has_range(known))))
		return "catalogue";
	return "default";
}

static void print_range(FILE *out, const struct form_range *range, const char *preset)
{
	if (!range->set)
		(void)fprintf(out, "%-24s", preset);
	else if (range->never)
		(void)fprintf(out, "%-24s", "null");
	else
		(void)fprintf(out, "[%g, %g]%*s", range->min, range->max, 14, "");
}

static void print_value(FILE *out, const struct setting *row, const void *field)
{
	char text[128];
	uint64_t number;
	double fraction;
	struct slice s;
	bool later;

	setting_preset_text(row, text, sizeof(text));
	if (row->type == TYPE_RANGE) {
		print_range(out, field, text);
		return;
	}
	if (row->type == TYPE_FRACTION) {
		(void)memcpy(&fraction, field, sizeof(fraction));
		(void)fprintf(out, "%-24g", fraction);
		return;
	}
	if (row->type >= TYPE_ID) {
		(void)memcpy(&s, field, sizeof(s));
		s = slice_absent(s) ? slice_str(text) : s;
	} else {
		(void)memcpy(&number, field, sizeof(number));
		if (number != FORM_UNSET && row->type != TYPE_CHOICE)
			value_format(row->type, number, text, sizeof(text));
		s = number == FORM_UNSET || row->type != TYPE_CHOICE
			    ? slice_str(text)
			    : setting_choice(row, number, &later);
	}
	(void)fprintf(out, "%-24.*s", (int)s.len, s.at);
}

static void print_model(FILE *out, const struct model_form *form, const struct known_model *known)
{
	size_t count;
	const struct setting *rows = settings_rows(SCOPE_MODEL, &count);

	(void)fprintf(out, "models[%u] %.*s", form->node->index, (int)form->id.len, form->id.at);
	if (known != NULL)
		(void)fprintf(out, ": %s of %s is in the catalogue (%s)", known->name,
			      known->vendor, known->source);
	(void)fputs("\n", out);
	for (size_t i = 0; i < count; i++) {
		if (rows[i].form != FORM_VALUE)
			continue;
		(void)fprintf(out, "  %-32s ", rows[i].key);
		print_value(out, &rows[i], (const char *)form + rows[i].offset);
		(void)fprintf(out, " %s\n", origin(form, &rows[i], known));
	}
}

/* ---- models ---- */

static bool is_openai(const struct provider *provider)
{
	for (uint32_t i = 0; i < provider->endpoint_count; i++)
		if (slice_eq(provider->endpoints[i].host, SLICE("api.openai.com")))
			return true;
	return false;
}

/* How many tools the provider takes: OpenAI, and Azure's OpenAI, refuse a request with more. */
static uint32_t tools_most(const struct provider *provider)
{
	static const struct slice azure = SLICE_INIT(".openai.azure.com");
	enum { OPENAI_TOOLS_MAX = 128 };

	if (is_openai(provider))
		return OPENAI_TOOLS_MAX;
	for (uint32_t i = 0; i < provider->endpoint_count; i++) {
		const struct slice host = provider->endpoints[i].host;
		if (host.len > azure.len &&
		    memcmp(host.at + host.len - azure.len, azure.at, azure.len) == 0)
			return OPENAI_TOOLS_MAX;
	}
	return 0;
}

/* What the dialects write; beside it, a second one of the name would make the body ambiguous. */
static const struct slice written_members[] = {
	SLICE_INIT("model"),
	SLICE_INIT("messages"),
	SLICE_INIT("input"),
	SLICE_INIT("system"),
	SLICE_INIT("instructions"),
	SLICE_INIT("max_tokens"),
	SLICE_INIT("max_completion_tokens"),
	SLICE_INIT("max_output_tokens"),
	SLICE_INIT("stream"),
	SLICE_INIT("stream_options"),
	SLICE_INIT("temperature"),
	SLICE_INIT("stop"),
	SLICE_INIT("stop_sequences"),
	SLICE_INIT("metadata"),
	SLICE_INIT("safety_identifier"),
	SLICE_INIT("store"),
	SLICE_INIT("include"),
	SLICE_INIT("tools"),
	SLICE_INIT("tool_choice"),
	SLICE_INIT("parallel_tool_calls"),
	SLICE_INIT("response_format"),
	SLICE_INIT("output_config"),
	SLICE_INIT("text"),
};

/* What is wrong with a member's name, or NULL. */
static const char *judge_member(struct slice key, struct profile *out)
{
	if (out->user_id_field == USER_ID_FIELD_USER && json_str_eq(key, SLICE("user")))
		return "has a user beside profile.user_id_field, which writes one; leave one of "
		       "them out";
	for (size_t i = 0; i < COUNT_OF(written_members); i++)
		if (json_str_eq(key, written_members[i]))
			return "has a member that the gateway writes itself; leave that out";
	out->effort_said |= profile_is_effort(key);
	return NULL;
}

/* NULL, or what is wrong with the members. */
static const char *read_body(struct slice text, struct json_work *work, struct profile *out)
{
	static const char no_object[] = "is not a JSON object; write one in quotes, such as "
					"'{\"reasoning_effort\": \"high\"}'";
	const char *wrong = NULL;
	struct json_reader r;
	struct slice key;

	if (!json_valid(text, NULL, work, NULL))
		return no_object;
	json_open(&r, text, NULL, work);
	if (json_peek(&r) != JSON_OBJECT || !json_enter_object(&r))
		return no_object;
	const uint32_t begin = json_offset(&r);
	uint32_t end = begin;
	while (wrong == NULL && json_next_key(&r, &key)) {
		wrong = judge_member(key, out);
		(void)json_skip(&r, NULL);
		end = json_offset(&r);
	}
	out->body = slice_of(text.at + begin, end - begin);
	return wrong;
}

static void build_body(struct loader *l, const struct model_form *form, struct profile *out)
{
	if (slice_absent(form->body))
		return;
	struct json_work *work = json_work_new(codec_set_best());
	if (work == NULL) {
		loader_out_of_memory(l);
		return;
	}
	const char *wrong = read_body(form->body, work, out);
	if (wrong != NULL)
		problem_below(&l->problems, form->node, "profile.body", "%s", wrong);
	else
		out->body = loader_keep(l, out->body);
	json_work_free(work);
}

/* What the file says over what the dialect has. */
static void build_profile(const struct model_form *form, const struct provider *provider,
			  struct slice version, struct profile *out)
{
	profile_defaults(out, provider->dialect, version);
	out->max_output = (uint32_t)form->max_output;
	if (form->max_stop != FORM_UNSET)
		out->max_stop = (uint32_t)form->max_stop;
	out->image = form->image != 0;
	out->audio = form->audio != 0 &&
		     provider->dialect == DIALECT_OPENAI; /* others have no such part */
	out->forced_tool = form->forced_tool != 0;
	out->structured_output = form->structured_output != 0;
	out->prefill = form->prefill != 0;
	if (form->temperature.set) {
		out->temperature_never = form->temperature.never;
		out->temperature_min = form->temperature.min;
		out->temperature_max = form->temperature.max;
	}
	if (form->max_tokens_field != FORM_UNSET)
		out->max_tokens_field = (enum max_tokens_field)form->max_tokens_field;
	else if (is_openai(provider))
		out->max_tokens_field = MAX_TOKENS_FIELD_COMPLETION;
	out->reasoning = form->reasoning != 0;
	/* a fact about Chat Completions: with Responses, tools take any effort */
	out->tools_need_effort_none = form->tools_need_effort_none != 0 &&
				      (provider->dialect != DIALECT_RESPONSES ||
				       file_says(form, "profile.tools_need_effort_none"));
	out->replay_reasoning = form->replay_reasoning != 0;
	out->text_content_as_string = form->text_content_as_string != 0;
	out->user_after_tool = form->user_after_tool != 0;
	out->think_tags = form->think_tags != 0;
	out->id_rule = (enum id_rule)form->id_rule;
	out->audio_as_string = form->audio_as_string != 0;
	out->stream_usage = form->stream_usage != 0;
	out->count_tokens = out->count_tokens && form->count_tokens != 0;
	out->max_tools =
		form->max_tools != FORM_UNSET ? (uint32_t)form->max_tools : tools_most(provider);
	out->merge_same_role = form->merge_same_role != 0;
	if (form->user_id_field != FORM_UNSET)
		out->user_id_field = (enum user_id_field)form->user_id_field;
}

/* Settings of the file that only other dialects know; the catalogue's are passed over. */
static void check_dialect(struct loader *l, const struct model_form *form,
			  const struct provider *provider)
{
	static const char user[] = "profile.user_id_field", counts[] = "profile.count_tokens";
	const struct {
		const char *key;
		bool said;
	} of_chat[] = {
		{ "profile.audio", form->audio == 1 },
		{ "profile.audio_as_string", form->audio_as_string == 1 },
		{ "profile.stream_usage", form->stream_usage == 0 },
		{ "profile.merge_same_role", form->merge_same_role == 1 },
	};

	if (provider->dialect == DIALECT_ANTHROPIC && file_says(form, user) &&
	    form->user_id_field != FORM_UNSET && form->user_id_field != USER_ID_FIELD_NONE)
		problem_below(&l->problems, form->node, user,
			      "is no member of this provider's dialect; write none, or remove it");
	if (provider->dialect != DIALECT_ANTHROPIC && file_says(form, counts))
		problem_below(&l->problems, form->node, counts,
			      "has no meaning for this provider's dialect; remove it");
	for (size_t i = 0; i < COUNT_OF(of_chat); i++)
		if (provider->dialect != DIALECT_OPENAI && of_chat[i].said &&
		    file_says(form, of_chat[i].key))
			problem_below(&l->problems, form->node, of_chat[i].key,
				      "has no meaning for this provider's dialect; remove it");
}

/* ---- names ---- */

static bool means_everything(struct slice alias)
{
	for (size_t i = 0; i < alias.len; i++)
		if (alias.at[i] != '*' && alias.at[i] != '?')
			return false;
	return alias.len != 0;
}

static void warn_of_auto(struct loader *l, const struct model_form *form, const char *key,
			 struct slice name)
{
	if (l->warnings.out != NULL && name_is_auto(name))
		problem_below(&l->warnings, form->node, key,
			      "has the name %.*s, by which the direct APIs leave the choice to the "
			      "gateway, so that it means no model there; write another",
			      (int)name.len, name.at);
}

static void check_names(struct loader *l, const struct model_form *form)
{
	warn_of_auto(l, form, "id", form->id);
	for (uint32_t i = 0; i < form->aliases.count; i++) {
		const struct slice alias = form->aliases.at[i];
		warn_of_auto(l, form, "aliases", alias);
		if (means_everything(alias))
			problem_below(
				&l->problems, form->node, "aliases",
				"has %.*s, which would make the model everybody's answer to a "
				"name that nobody has; write what the names begin with, such "
				"as claude-haiku-*",
				(int)alias.len, alias.at);
	}
}

/* Index of the provider, or -1 after a problem. */
static int64_t find_provider(struct loader *l, const struct model_form *form)
{
	if (slice_absent(form->provider))
		return -1; /* reported when it was read */
	for (uint32_t i = 0; i < l->config->provider_count; i++)
		if (slice_eq(l->config->providers[i].name, form->provider))
			return i;
	problem_below(&l->problems, form->node, "provider",
		      "there is no provider %.*s; write a name under providers",
		      (int)form->provider.len, form->provider.at);
	return -1;
}

/* The anthropic-version in force; absent for other dialects. */
static struct slice model_version(struct loader *l, const struct model_form *form,
				  const struct provider *provider)
{
	if (slice_absent(form->version))
		return provider->version;
	if (slice_absent(dialect_get(provider->dialect)->version_header)) {
		problem_below(&l->problems, form->node, "profile.version",
			      "has no meaning for this provider's dialect; remove it");
		return provider->version;
	}
	return loader_keep(l, form->version);
}

static void build_model(struct loader *l, const struct model_form *read, struct model *out,
			struct slice *version)
{
	struct model_form own = *read, *form = &own;
	const struct known_model *known =
		known_find(slice_absent(form->name) ? form->id : form->name);
	int64_t provider = find_provider(l, form);
	const struct provider *owner;

	if (known != NULL)
		take_known(form, known);
	check_complete(l, form, known);
	if (l->source->models != NULL)
		print_model(l->source->models, form, known);
	out->id = loader_keep(l, form->id); /* plans may name it, whatever else is wrong with it */
	if (provider < 0)
		return;
	owner = &l->config->providers[provider];
	*version = model_version(l, form, owner);
	out->name = slice_absent(form->name) ? out->id : loader_keep(l, form->name);
	out->aliases = loader_keep_list(l, &form->aliases);
	out->alias_count = form->aliases.count;
	out->provider = (uint32_t)provider;
	out->enabled = form->enabled != 0 && owner->enabled;
	out->context = form->context;
	out->price_input = form->price_input;
	out->price_output = form->price_output;
	out->price_cache_read =
		form->price_cache_read == FORM_UNSET ? form->price_input : form->price_cache_read;
	out->price_cache_write =
		form->price_cache_write == FORM_UNSET ? form->price_input : form->price_cache_write;
	out->price_cache_write_1h = form->price_cache_write_1h == FORM_UNSET
					    ? 2 * form->price_input
					    : form->price_cache_write_1h;
	_Static_assert(CATALOG_NO_PRICE == FORM_UNSET, "what is not said has none");
	out->price_server_tool = form->price_server_tool;
	out->speed = form->speed;
	out->intelligence = form->intelligence;
	build_profile(form, owner, *version, &out->profile);
	check_dialect(l, form, owner);
	check_names(l, form);
	build_body(l, form, &out->profile);
}

void loader_build_models(struct loader *l, const struct main_form *form)
{
	const struct model_form *forms = form->models.at;
	uint32_t count = form->models.count;
	struct model *out = loader_zero(l, &l->config->arena, count, sizeof(*out));
	struct slice *versions = loader_zero(l, &l->config->arena, count, sizeof(*versions));

	if (out == NULL || versions == NULL)
		return;
	for (uint32_t i = 0; i < count && !l->failed; i++) {
		build_model(l, &forms[i], &out[i], &versions[i]);
		for (uint32_t j = 0; j < i; j++)
			if (!slice_absent(forms[i].id) && slice_eq(forms[i].id, forms[j].id))
				problem_below(&l->problems, forms[i].node, "id",
					      "is also that of the model in line %u; write another",
					      forms[j].node->line);
	}
	l->config->model_versions = versions;
	l->config->catalog = (struct catalog){ .models = out, .count = count };
	if (!catalog_index(&l->config->catalog, &l->config->arena))
		loader_out_of_memory(l);
}
