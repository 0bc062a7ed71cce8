/* direct_auto.c - `model: "auto"`: the caller leaves the choice to routing, and says what it prefers in the header
 * Sluice-Preferences. */
#include "gateway/front/api/direct.h"

#include "codec/api/api_preferences.h"

#include <math.h>

enum { NAMED_MAX = 512 }; /* bytes of a name in the log */

static const struct slice header = SLICE_INIT("sluice-preferences");

static bool is_auto(struct slice name)
{
	enum { AUTO_MAX = 32 };
	char buffer[AUTO_MAX];

	return sampling_name_is_auto(json_str_fit(name, buffer, sizeof(buffer)));
}

static bool has_two(const struct http_incoming *in)
{
	struct http_field field;
	size_t at = 0, count = 0;

	while (http_next_header(in, &at, &field))
		count += slice_eq(field.name, header);
	return count > 1;
}

/* A priority that is not said weighs nothing. Then all of them are in the log line, by which `sluice explain` knows that
 * no name was asked for. */
static void fill(struct model_preferences *prefer)
{
	double *const priorities[] = { &prefer->cost, &prefer->speed, &prefer->intelligence };

	for (size_t i = 0; i < COUNT_OF(priorities); i++)
		if (isnan(*priorities[i]))
			*priorities[i] = 0;
}

/* The names of all hints live in the header. */
static enum err read_preferences(struct direct_call *call, struct fault *fault)
{
	const struct slice text = http_find_header(call->in, header);
	struct model_preferences *prefer = &call->asked->view.prefer;
	bool busy = false;

	*fault = (struct fault){ .err = ERR_PREFERENCES,
				 .offset = FAULT_NO_OFFSET,
				 .path = SLICE("Sluice-Preferences"),
				 .detail = "is there twice" };
	if (!slice_absent(text) && has_two(call->in))
		return ERR_PREFERENCES;
	*prefer = (struct model_preferences){ .hint_count = 0 };
	if (slice_absent(text))
		return ERR_OK;
	fault->detail = api_preferences_read(text, &call->arena, prefer, &busy);
	if (fault->detail != NULL)
		return busy ? ERR_BUSY : ERR_PREFERENCES;
	fill(prefer);
	return ERR_OK;
}

enum err direct_read_model(struct direct_call *call, struct fault *fault)
{
	struct direct_asked *asked = call->asked;

	call->named = api_string(&asked->request, API_MODEL);
	asked->raw.model = call->named;
	if (!is_auto(call->named))
		return ERR_OK;
	asked->raw.model = slice_of(NULL, 0);
	return read_preferences(call, fault);
}

struct slice direct_preferences(const struct direct_call *call)
{
	if (call->asked == NULL || !slice_absent(call->asked->raw.model))
		return slice_of(NULL, 0);
	return http_find_header(call->in, header);
}

void direct_report_name(const struct direct_call *call, struct log_request *line)
{
	if (call->asked != NULL && call->named.len <= NAMED_MAX && slice_absent(line->route.hint))
		line->route.hint = call->asked->raw.model;
}
