#include "codec/api/api_error.h"

#include "codec/api/api_request.h"
#include "codec/base/must.h"

/* ---- the table ---- */

enum family { MESSAGES, CHAT, FAMILIES };

static const struct api_error_row rows[ERR_COUNT][FAMILIES] = {
#define API_ERROR(symbol, m_status, m_type, c_status, c_type, c_code, hint, text)        \
	[ERR_##symbol] = { [MESSAGES] = { m_status, API_HINT_##hint, m_type, "", text }, \
			   [CHAT] = { c_status, API_HINT_##hint, c_type, c_code, text } },
#include "codec/api/tbl/api_errors.h"
#undef API_ERROR
};

static int provider_status(const struct api_error *error)
{
	return error->data == NULL ? 0 : error->data->provider_status;
}

/* Whose row an error has. */
static enum err reason_of(const struct api_error *error)
{
	const int status = provider_status(error);

	if (error->fault.err == ERR_PROVIDER_REJECTED && status == 413)
		return ERR_BODY_TOO_LARGE;
	if (error->fault.err == ERR_PROVIDER_REJECTED && status >= 401 && status <= 403)
		return ERR_PROVIDER_OPERATOR; /* whatever it says: it is not the caller's account */
	if (error->fault.err == ERR_PROVIDER_DOWN && (status == 503 || status == 529))
		return ERR_BUSY;
	return error->fault.err;
}

struct api_error_row api_error_row(enum api api, const struct api_error *error)
{
	const enum err err = error->fault.err;

	must(err != ERR_OK && err < ERR_COUNT);
	struct api_error_row row = rows[reason_of(error)][api_is_anthropic(api) ? MESSAGES : CHAT];
	must(row.type != NULL); /* a test looks at all of them */
	row.text = rows[err][MESSAGES].text;
	if (row.text == NULL)
		row.text = err_info(err)->text;
	return row;
}

/* ---- words ---- */

static void put_text(struct gather *g, const char *text)
{
	gather_escaped(g, slice_str(text));
}

/* SDKs and Claude Code show a 403 as a failed login: it has to say that it is none. */
static void put_policy(struct gather *g, const struct api_error_row *row, const char *text)
{
	if (row->status == 403 && !slice_has_nocase(slice_str(text), SLICE("policy")))
		gather_lit(g, "Policy: ");
}

static void put_particulars(struct gather *g, const struct error_data *data)
{
	if (data == NULL || (data->limit == NULL && data->rule == NULL))
		return;
	gather_lit(g, " (");
	put_text(g, data->limit != NULL ? data->limit : data->rule);
	if (data->limit != NULL && data->scope != NULL) {
		gather_lit(g, " of the ");
		put_text(g, data->scope);
	}
	gather_lit(g, ")");
}

static void put_unknown_model(struct gather *g, enum api api, struct slice model)
{
	if (api_is_anthropic(api)) {
		gather_lit(g, "model: ");
		gather_raw(g, model);
		return;
	}
	gather_lit(g, "The model `");
	gather_raw(g, model);
	gather_lit(g, "` does not exist or you do not have access to it.");
}

static void put_window(struct gather *g, const struct api_error *error)
{
	gather_lit(g, "prompt is too long: ");
	gather_uint(g, error->tokens);
	gather_lit(g, " tokens > ");
	gather_uint(g, error->tokens_max);
	gather_lit(g, " maximum");
}

static void put_message(struct gather *g, enum api api, const struct api_error *error,
			const struct api_error_row *row)
{
	const struct fault *fault = &error->fault;
	const char *text = fault->detail == NULL ? row->text : fault->detail;

	gather_lit(g, "\"");
	if (fault->err == ERR_MODEL_UNKNOWN && !slice_absent(error->model)) {
		put_unknown_model(g, api, error->model);
	} else if (fault->err == ERR_CONTEXT_WINDOW && error->tokens_max != 0) {
		put_window(g, error);
	} else {
		if (fault->path.len != 0) {
			gather_escaped(g, fault->path);
			gather_lit(g, ": ");
		}
		put_policy(g, row, text);
		if (fault->err == ERR_CONTEXT_WINDOW && text != row->text) {
			put_text(g, row->text); /* what clients look for */
			gather_lit(g, ": ");
		}
		put_text(g, text);
		put_particulars(g, error->data);
	}
	gather_lit(g, "\"");
}

/* ---- shapes ---- */

/* Not by the address of its detail: every instruction set has its own. */
static bool is_thread(const struct fault *fault)
{
	return fault->err == ERR_NOT_AVAILABLE && fault->detail != NULL &&
	       slice_eq(slice_str(fault->detail), slice_str(api_thread_refused));
}

static void write_messages(struct gather *g, enum api api, const struct api_error *error,
			   const struct api_error_row *row)
{
	gather_lit(g, "{\"type\":\"error\",\"error\":{\"type\":\"");
	put_text(g, row->type);
	gather_lit(g, "\",\"message\":");
	put_message(g, api, error, row);
	if (is_thread(&error->fault))
		gather_lit(g, ",\"details\":{\"error_code\":\"thread_unsupported_request\","
			      "\"unsupported\":[\"thread\"]}");
	gather_lit(g, "}");
	if (!slice_absent(error->request_id)) {
		gather_lit(g, ",\"request_id\":");
		gather_plain(g, error->request_id);
	}
	gather_lit(g, "}");
}

static void write_chat(struct gather *g, enum api api, const struct api_error *error,
		       const struct api_error_row *row)
{
	gather_lit(g, "{\"error\":{\"message\":");
	put_message(g, api, error, row);
	gather_lit(g, ",\"type\":\"");
	put_text(g, row->type);
	gather_lit(g, "\",\"param\":");
	if (row->status == 400 && error->fault.path.len != 0)
		gather_plain(g, error->fault.path);
	else
		gather_lit(g, "null");
	gather_lit(g, ",\"code\":");
	if (row->code[0] != '\0')
		gather_plain(g, slice_str(row->code));
	else
		gather_lit(g, "null");
	gather_lit(g, "}}");
}

void api_error_write(struct gather *g, enum api api, const struct api_error *error)
{
	const struct api_error_row row = api_error_row(api, error);

	if (api_is_anthropic(api))
		write_messages(g, api, error, &row);
	else
		write_chat(g, api, error, &row);
}

void api_error_event(struct gather *g, enum api api, const struct api_error *error)
{
	if (api_is_anthropic(api))
		gather_lit(g, "event: error\n");
	gather_lit(g, "data: ");
	api_error_write(g, api, error);
	gather_lit(g, "\n\n");
}
