/* settings_models.c - forms to configuration: the models. */
#include "gateway/settings_loader.h"

#include "codec/base/must.h"

_Static_assert(MAX_TOKENS_FIELD_MAX_TOKENS == 0 && MAX_TOKENS_FIELD_COMPLETION == 1,
	       "the order of choices in tbl/settings.h");
_Static_assert(ID_RULE_NONE == 0 && ID_RULE_MISTRAL9 == 1,
	       "the order of choices in tbl/settings.h");
_Static_assert((int)CATALOG_MODELS_MAX <= (int)BITSET_MAX, "plans name models by bit");

static bool is_openai(const struct provider *provider)
{
	for (uint32_t i = 0; i < provider->endpoint_count; i++)
		if (slice_eq(provider->endpoints[i].host, SLICE("api.openai.com")))
			return true;
	return false;
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
	out->audio = form->audio != 0;
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
	out->tools_need_effort_none = form->tools_need_effort_none != 0;
	out->replay_reasoning = form->replay_reasoning != 0;
	out->text_content_as_string = form->text_content_as_string != 0;
	out->user_after_tool = form->user_after_tool != 0;
	out->think_tags = form->think_tags != 0;
	out->id_rule = (enum id_rule)form->id_rule;
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
	if (dialect_get(provider->dialect)->version_header == NULL) {
		problem_below(&l->problems, form->node, "profile.version",
			      "has no meaning for this provider's dialect; remove it");
		return provider->version;
	}
	return loader_keep(l, form->version);
}

static void build_model(struct loader *l, const struct model_form *form, struct model *out,
			struct slice *version)
{
	int64_t provider = find_provider(l, form);
	const struct provider *owner;

	if (provider < 0)
		return;
	owner = &l->config->providers[provider];
	*version = model_version(l, form, owner);
	out->id = loader_keep(l, form->id);
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
	out->speed = form->speed;
	out->intelligence = form->intelligence;
	build_profile(form, owner, *version, &out->profile);
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
