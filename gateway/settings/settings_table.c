#include "gateway/settings/settings_table.h"

#include "codec/base/attr.h"
#include "codec/base/must.h"
#include "gateway/base/config.h"
#include "gateway/settings/settings_form.h"
#include "gateway/settings/settings_value.h"
#include "gateway/state/state.h"

#include <stdio.h>

#define MAIN_FORM struct main_form
#define LISTEN_FORM struct listen_form
#define ISSUER_FORM struct issuer_form
#define PROVIDER_FORM struct provider_form
#define ENDPOINT_FORM struct endpoint_form
#define MODEL_FORM struct model_form
#define PLAN_FORM struct plan_form
#define TENANT_FORM struct tenant_form
#define TENANT_KEY_FORM struct tenant_key_form
#define MODEL_LIMITS_FORM struct limits_form
#define SERVER_FORM struct plan_form
#define ALIAS_FORM struct alias_form
#define MCP_SERVER_FORM struct mcp_server_form
#define MCP_ENDPOINT_FORM struct endpoint_form

#define NEEDED NULL
#define WITH_GROUP PRESET_WITH_GROUP
#define RESTART true
#define RELOAD false
#define FORM_LIST_OF FORM_SCOPES
#define FORM_MAP_OF FORM_SCOPE_MAP
#define FORM_LATE_LIST_OF FORM_LATE_LIST
#define FORM_LATE_MAP_OF FORM_LATE_MAP
#define LIMIT_TYPE(unit)                                           \
	(__builtin_strcmp(unit, "ns") == 0         ? TYPE_DURATION \
	 : __builtin_strcmp(unit, "nano-USD") == 0 ? TYPE_USD      \
						   : TYPE_COUNT)

const struct setting settings_table[] = {
#define SETTING(in, path, as, field, low, value, high, when, text) \
	{ .scope = SCOPE_##in,                                     \
	  .key = path,                                             \
	  .form = FORM_VALUE,                                      \
	  .type = TYPE_##as,                                       \
	  .offset = offsetof(in##_FORM, field),                    \
	  .minimum = low,                                          \
	  .maximum = high,                                         \
	  .preset = value,                                         \
	  .restart = when,                                         \
	  .meaning = text },
#define CHOICE(in, path, field, words, value, when, text) \
	{ .scope = SCOPE_##in,                            \
	  .key = path,                                    \
	  .form = FORM_VALUE,                             \
	  .type = TYPE_CHOICE,                            \
	  .offset = offsetof(in##_FORM, field),           \
	  .preset = value,                                \
	  .choices = words,                               \
	  .restart = when,                                \
	  .meaning = text },
#define MANY(in, path, how, as, field, most, empty, when, text) \
	{ .scope = SCOPE_##in,                                  \
	  .key = path,                                          \
	  .form = how,                                          \
	  .type = TYPE_##as,                                    \
	  .offset = offsetof(in##_FORM, field),                 \
	  .maximum = most,                                      \
	  .preset = empty,                                      \
	  .restart = when,                                      \
	  .meaning = text },
#define LIST(in, path, as, field, most, when, text) \
	MANY(in, path, FORM_LIST, as, field, most, "[]", when, text)
#define VALUES(in, path, as, field, most, when, text) \
	MANY(in, path, FORM_VALUE_MAP, as, field, most, "{}", when, text)
#define ENTRIES(in, path, as, field, of, least, value, most, when, text) \
	{ .scope = SCOPE_##in,                                           \
	  .key = path,                                                   \
	  .form = FORM_##as##_OF,                                        \
	  .offset = offsetof(in##_FORM, field),                          \
	  .entry = SCOPE_##of,                                           \
	  .minimum = least,                                              \
	  .maximum = most,                                               \
	  .preset = value,                                               \
	  .restart = when,                                               \
	  .meaning = text },
#define LATER(in, path) { .scope = SCOPE_##in, .key = path, .form = FORM_LATER },
#define LIMIT_SETTING(in, limit, unit, low, value, high, text)  \
	{ .scope = SCOPE_##in,                                  \
	  .key = "limits." #limit,                              \
	  .form = FORM_VALUE,                                   \
	  .type = LIMIT_TYPE(unit),                             \
	  .offset = offsetof(in##_FORM, limits[LIMIT_##limit]), \
	  .minimum = low,                                       \
	  .maximum = high,                                      \
	  .preset = PRESET_RAW,                                 \
	  .preset_raw = value,                                  \
	  .meaning = text },
#define PART_LIMIT(in, prefix, field, limit, unit, low, value, high, text)     \
	{ .scope = SCOPE_##in,                                                 \
	  .key = prefix #limit,                                                \
	  .form = FORM_VALUE,                                                  \
	  .type = LIMIT_TYPE(unit),                                            \
	  .offset = offsetof(in##_FORM, field[LIMIT_##limit]),                 \
	  .minimum = low,                                                      \
	  .maximum = high,                                                     \
	  .preset = PRESET_RAW,                                                \
	  .preset_raw = (value) == LIMIT_DERIVED ? LIMIT_DERIVED : LIMIT_NONE, \
	  .meaning = text },
#include "gateway/settings/tbl/settings.h"
#undef SETTING
#undef CHOICE
#undef LIST
#undef VALUES
#undef MANY
#undef ENTRIES
#undef LATER
#undef LIMIT_SETTING
#undef PART_LIMIT
};
const size_t settings_table_count = COUNT_OF(settings_table);

static const struct settings_scope_info scope_info[SCOPE_COUNT] = {
	[SCOPE_MAIN] = { .name = "file",
			 .path = "",
			 .what = "the file",
			 .size = sizeof(MAIN_FORM) },
	[SCOPE_LISTEN] = { .name = "listen",
			   .path = "listen[]",
			   .what = "an address",
			   .size = sizeof(LISTEN_FORM) },
	[SCOPE_ISSUER] = { .name = "issuer",
			   .path = "identity.jwt[]",
			   .what = "an issuer",
			   .size = sizeof(ISSUER_FORM) },
	[SCOPE_PROVIDER] = { .name = "provider",
			     .path = "providers.*",
			     .what = "a provider",
			     .size = sizeof(PROVIDER_FORM) },
	[SCOPE_ENDPOINT] = { .name = "endpoint",
			     .path = "providers.*.endpoints[]",
			     .what = "an endpoint",
			     .size = sizeof(ENDPOINT_FORM) },
	[SCOPE_MODEL] = { .name = "model",
			  .path = "models[]",
			  .what = "a model",
			  .size = sizeof(MODEL_FORM) },
	[SCOPE_PLAN] = { .name = "plan",
			 .path = "plans.*",
			 .what = "a plan",
			 .size = sizeof(PLAN_FORM) },
	[SCOPE_TENANT] = { .name = "tenant",
			   .path = "tenants[]",
			   .what = "a tenant",
			   .size = sizeof(TENANT_FORM),
			   .extends = SCOPE_PLAN,
			   .extends_at = offsetof(TENANT_FORM, plan) },
	[SCOPE_TENANT_KEY] = { .name = "tenant_key",
			       .path = "tenants[].keys[]",
			       .what = "a key",
			       .size = sizeof(TENANT_KEY_FORM) },
	[SCOPE_MODEL_LIMITS] = { .name = "model_limits",
				 .path = "plans.*.limits.per_model.*",
				 .what = "limits of models",
				 .size = sizeof(MODEL_LIMITS_FORM) },
	[SCOPE_SERVER] = { .name = "server",
			   .path = "plans.*.servers.*",
			   .what = "a server",
			   .size = sizeof(SERVER_FORM),
			   .instead = "(the tenant's)" },
	[SCOPE_ALIAS] = { .name = "alias",
			  .path = "plans.*.models.aliases[]",
			  .what = "an alias",
			  .size = sizeof(ALIAS_FORM) },
	[SCOPE_MCP_SERVER] = { .name = "mcp_server",
			       .path = "mcp_servers.*",
			       .what = "an MCP server",
			       .size = sizeof(MCP_SERVER_FORM) },
	[SCOPE_MCP_ENDPOINT] = { .name = "mcp_endpoint",
				 .path = "mcp_servers.*.endpoints[]",
				 .what = "an endpoint",
				 .size = sizeof(MCP_ENDPOINT_FORM) },
};

const struct settings_scope_info *settings_scope_info(enum settings_scope scope)
{
	must(scope < SCOPE_COUNT);
	return &scope_info[scope];
}

const struct setting *settings_rows(enum settings_scope scope, size_t *count)
{
	size_t first = 0, n = 0;

	while (first < COUNT_OF(settings_table) && settings_table[first].scope != scope)
		first++;
	while (first + n < COUNT_OF(settings_table) && settings_table[first + n].scope == scope)
		n++;
	must(n > 0);
	*count = n;
	return &settings_table[first];
}

/* What of `path` follows `prefix`; absent when it does not begin with it. */
static struct slice below(const char *path, struct slice prefix)
{
	struct slice whole = slice_str(path);

	if (!slice_starts(whole, prefix))
		return (struct slice){ NULL, 0 };
	return slice_of(whole.at + prefix.len, whole.len - prefix.len);
}

const struct setting *settings_row(enum settings_scope scope, struct slice prefix, struct slice key,
				   bool *group)
{
	size_t count;
	const struct setting *rows = settings_rows(scope, &count);

	*group = false;
	for (size_t i = 0; i < count; i++) {
		struct slice rest = below(rows[i].key, prefix);
		if (slice_absent(rest) || !slice_starts(rest, key))
			continue;
		if (rest.len == key.len)
			return &rows[i];
		if (rest.at[key.len] == '.')
			*group = true;
	}
	return NULL;
}

/* ---- the nearest key ---- */

struct slice settings_nearest(enum settings_scope scope, struct slice prefix, struct slice key)
{
	struct slice nearest = { NULL, 0 };
	size_t best = 4, count;
	const struct setting *rows = settings_rows(scope, &count);

	for (size_t i = 0; i < count; i++) {
		struct slice rest = below(rows[i].key, prefix);
		struct slice name = slice_cut(&rest, '.');
		if (rows[i].form == FORM_LATER || name.len == 0)
			continue;
		const size_t edits = slice_edits(key, name);
		/* "cb" is not like "ca": more than a third of the key changed is another word */
		if (edits < best && edits * 3 <= name.len) {
			best = edits;
			nearest = name;
		}
	}
	return nearest;
}

/* ---- words ---- */

bool setting_has_value(const struct setting *row)
{
	if (row->preset == NULL || row->preset[0] == '\0' || row->preset[0] == '(' ||
	    scope_info[row->scope].instead != NULL || strcmp(row->preset, PRESET_WITH_GROUP) == 0)
		return false;
	if (strcmp(row->preset, PRESET_RAW) == 0)
		return row->preset_raw != LIMIT_DERIVED && row->preset_raw != LIMIT_NONE;
	return true;
}

bool setting_needed_with(const struct setting *row, char *group, size_t room)
{
	if (row->preset == NULL || strcmp(row->preset, PRESET_WITH_GROUP) != 0)
		return false;
	const char *dot = strrchr(row->key, '.');
	must(dot != NULL);
	(void)snprintf(group, room, "%.*s", (int)(dot - row->key), row->key);
	return true;
}

void setting_preset_text(const struct setting *row, char *out, size_t room)
{
	char group[64];
	const char *text = row->preset == NULL ? "" : row->preset;

	if (setting_needed_with(row, group, sizeof(group)))
		(void)snprintf(out, room, "(needed in %s)", group);
	else if (scope_info[row->scope].instead != NULL)
		(void)snprintf(out, room, "%s", scope_info[row->scope].instead);
	else if (strcmp(text, PRESET_RAW) != 0)
		(void)snprintf(out, room, "%s", text);
	else if (setting_has_value(row))
		value_format(row->type, row->preset_raw, out, room);
	else
		(void)snprintf(out, room, "%s",
			       row->preset_raw == LIMIT_NONE ? "(no limit)" : "(from the rate)");
}

struct slice setting_choice(const struct setting *row, size_t n, bool *later)
{
	struct slice rest = slice_str(row->choices), word;

	do
		word = slice_cut(&rest, '|');
	while (n-- > 0 && !slice_absent(word));
	*later = word.len > 0 && word.at[0] == '!';
	return *later ? slice_of(word.at + 1, word.len - 1) : word;
}

static void expects_choice(const struct setting *row, char *out, size_t room)
{
	size_t len = 0;
	bool later;

	for (size_t i = 0;; i++) {
		struct slice word = setting_choice(row, i, &later);
		if (slice_absent(word) || len + word.len + 8 > room)
			return;
		if (!later)
			len += (size_t)snprintf(out + len, room - len, "%s%.*s",
						len == 0 ? "" : " or ", (int)word.len, word.at);
	}
}

/* How each type is named where nothing else is said of it; numbers are followed by their bounds. */
static const char *const type_words[] = {
	[TYPE_BOOL] = "true or false",
	[TYPE_COUNT] = "a whole number",
	[TYPE_AUTO_COUNT] = "auto or a whole number",
	[TYPE_SIZE] = "a size such as 16MiB",
	[TYPE_DURATION] = "a duration such as 55s",
	[TYPE_USD] = "an amount in USD",
	[TYPE_PRICE] = "USD per million tokens",
	[TYPE_CHOICE] = "",
	[TYPE_FRACTION] = "a number",
	[TYPE_AWAY_USD] = "closed, or {local: USD} with an amount",
	[TYPE_RANGE] = "null or [lowest, highest]",
	[TYPE_FACTOR] = "a number from 0 to 1000",
	[TYPE_ID] = "a name: visible ASCII without quotes and backslashes",
	[TYPE_TEXT] = "a text without control characters",
	[TYPE_PROMPT] = "a text",
	[TYPE_DATE] = "a date such as \"2026-10-21\"",
	[TYPE_GLOB] = "a name, * and ? allowed",
	[TYPE_ORIGIN] = "an origin such as \"https://app.example\"",
	[TYPE_ALGORITHM] = "RS256, ES256 or EdDSA",
	[TYPE_FRONT] = "sampling, mcp or direct",
	[TYPE_HEADER_NAME] = "the name of a header",
	[TYPE_PATH] = "a path, relative to this file or absolute",
	[TYPE_FILES] = "a path with * and ?, relative to this file or absolute",
	[TYPE_SHA256] = "64 lower-case hex digits, as `sluice key` prints them",
	[TYPE_ADDRESS] = "\"IP:PORT\", ${NAME} or file:PATH",
	[TYPE_URL] = "an http or https URL, ${NAME} or file:PATH",
	[TYPE_SECRET] = "a text, ${NAME} or file:PATH",
	[TYPE_HEADER_VALUE] = "a header's value, ${NAME} or file:PATH",
};

void setting_expects(const struct setting *row, char *out, size_t room)
{
	char low[48], high[48];

	if (row->type == TYPE_CHOICE) {
		expects_choice(row, out, room);
		return;
	}
	if (row->type == TYPE_BOOL || row->type > TYPE_RANGE) {
		(void)snprintf(out, room, "%s", type_words[row->type]);
		return;
	}
	value_format(row->type, row->minimum, low, sizeof(low));
	value_format(row->type, row->maximum, high, sizeof(high));
	(void)snprintf(out, room, "%s%s from %s to %s", type_words[row->type],
		       row->type == TYPE_RANGE ? "," : "", low, high);
}
