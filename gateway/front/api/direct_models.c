/* direct_models.c - `GET /v1/models` and `GET /v1/models/{id}`: what the caller may name as `model`. */
#include "gateway/front/api/direct_now.h"

#include "codec/api/api_models.h"
#include "codec/set.h"
#include "gateway/front/front_caller.h"

static const struct slice list_path = SLICE_INIT("/v1/models");
static const struct slice absent = { NULL, 0 };

/* All of Anthropic's clients say the version of its API. */
static enum api_models_shape shape_of(const struct direct_call *call)
{
	return slice_absent(http_find_header(call->in, SLICE("anthropic-version")))
		       ? API_MODELS_OPENAI
		       : API_MODELS_ANTHROPIC;
}

/* Nobody knows when a model was made: both APIs then say the beginning of the epoch. */
static struct api_model model_of(const struct direct_call *call, const struct sampling_name *name)
{
	const uint64_t permitted = call->caller.plan->limits.max_tokens;

	return (struct api_model){
		.id = name->name,
		.input_max = name->context_max,
		.output_max = name->output_max < permitted ? name->output_max : permitted,
	};
}

/* ---- the list ---- */

static const char *fault_of(const char *member)
{
	_Static_assert(API_MODELS_PAGE_MAX == 1000, "what is said");
	return slice_eq(slice_str(member), SLICE("limit")) ? "must be a whole number from 1 to 1000"
							   : "is no model of this list";
}

static void write_page(struct direct_call *call, const struct api_model *models, size_t count)
{
	struct fault fault = { .err = ERR_FIELD, .offset = FAULT_NO_OFFSET };
	struct api_models_page page;
	const char *wrong;

	if (!api_models_find(shape_of(call), call->in->query, models, count, &call->arena, &page,
			     &wrong)) {
		fault.path = slice_str(wrong);
		fault.detail = fault_of(wrong);
		(void)direct_refuse(call, &fault, NULL);
		return;
	}
	direct_begin_answer(call, 200, SLICE("application/json"));
	api_models_write(&call->answer.body, shape_of(call), models, &page);
	direct_now_end(call);
}

static void write_list(struct direct_call *call)
{
	struct sampling_name *names;
	struct api_model *models = NULL;
	size_t count = 0;

	if (sampling_names(call->host->core, &call->caller, &call->arena, &names, &count))
		models = arena_take(&call->arena, (count + 1) * sizeof(*models));
	if (models == NULL) {
		(void)direct_refuse_err(call, ERR_BUSY);
		return;
	}
	for (size_t i = 0; i < count; i++)
		models[i] = model_of(call, &names[i]);
	write_page(call, models, count);
}

/* ---- one ---- */

/* The name as the inside of a JSON string; absent: it is no text, or too long to be anybody's. */
static struct slice named(struct direct_call *call, struct slice id)
{
	enum { ID_MAX = 1024 };
	struct gather text;

	if (slice_absent(id) || id.len > ID_MAX)
		return absent;
	gather_init(&text, &call->arena);
	gather_plain(&text, id);
	if (gather_done(&text) != ERR_OK)
		return absent;
	const struct slice quoted = gather_flat(&text, &call->arena);
	if (slice_absent(quoted) || !json_valid(quoted, NULL, call->host->json, NULL))
		return absent;
	return slice_of(quoted.at + 1, quoted.len - 2);
}

static void write_one(struct direct_call *call, struct slice id)
{
	struct sampling_name name;

	call->named = named(call, id);
	if (slice_absent(call->named) ||
	    !sampling_name_find(call->host->core, &call->caller, id, &name)) {
		(void)direct_refuse_err(call, ERR_MODEL_UNKNOWN);
		return;
	}
	const struct api_model model = model_of(call, &name);
	direct_begin_answer(call, 200, SLICE("application/json"));
	api_model_write(&call->answer.body, shape_of(call), &model);
	direct_now_end(call);
}

/* ---- both ---- */

static bool read_head(struct direct_call *call, const struct front_host *host)
{
	const struct http_incoming *in = call->in;

	if (!direct_now_may_get(call, host))
		return false;
	if (!front_origin_allowed(host->config, in->headers[HTTP_ORIGIN]))
		return direct_refuse_err(call, ERR_ORIGIN);
	if (in->body_too_large)
		return direct_refuse_err(call, ERR_BODY_TOO_LARGE);
	return direct_find_caller(call, host);
}

static void write_models(struct direct_call *call, const struct front_host *host)
{
	const struct slice path = front_path_of(call->in->path);
	const size_t above = list_path.len + 1;

	if (path.at[path.len - 1] == '/')
		(void)direct_refuse_err(call, host->leaving ? ERR_DRAINING : ERR_NOT_FOUND);
	else if (!read_head(call, host))
		return;
	else if (path.len == list_path.len)
		write_list(call);
	else
		write_one(call,
			  api_model_id(slice_of(path.at + above, path.len - above), &call->arena));
}

static const struct sampling_front models_row = {
	.name = "models",
	.digest = direct_digest,
	.report = direct_report,
};

static const struct direct_now models = { write_models, &models_row };

static void *on_begin(struct front_host *host, struct http_exchange *exchange,
		      const struct http_incoming *in, bool found)
{
	(void)found;
	return direct_now_begin(&models, host, exchange, in);
}

static bool on_expects(struct front_host *host, struct http_early *early,
		       const struct http_incoming *in, bool found)
{
	(void)found;
	return direct_now_expects(&models, host, early, in);
}

const struct front direct_models_front = {
	.record_bytes = sizeof(struct front_request),
	.begin = on_begin,
	.expects = on_expects,
	.gone = direct_now_never,
	.sent = direct_now_never,
};
