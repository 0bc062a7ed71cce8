#include "bench/sim/sim_error.h"

static const struct error_kind {
	unsigned status;
	const char *anthropic;
	const char *openai, *openai_code; /* code NULL: null */
} error_kinds[] = {
	{ 400, "invalid_request_error", "invalid_request_error", NULL },
	{ 401, "authentication_error", "invalid_request_error", "invalid_api_key" },
	{ 402, "billing_error", "invalid_request_error", "billing_not_active" },
	{ 403, "permission_error", "invalid_request_error",
	  "unsupported_country_region_territory" },
	{ 404, "not_found_error", "invalid_request_error", "model_not_found" },
	{ 409, "conflict_error", "conflict_error", NULL },
	{ 413, "request_too_large", "invalid_request_error", "request_too_large" },
	{ 429, "rate_limit_error", "requests", "rate_limit_exceeded" },
	{ 500, "api_error", "server_error", NULL },
	{ 503, "api_error", "service_unavailable_error", NULL },
	{ 504, "timeout_error", "timeout", NULL },
	{ 529, "overloaded_error", "server_error", NULL },
};

static const struct error_kind *error_kind(unsigned status)
{
	const struct error_kind *fallback = &error_kinds[0];

	for (size_t i = 0; i < COUNT_OF(error_kinds); i++) {
		if (error_kinds[i].status == status)
			return &error_kinds[i];
		if (error_kinds[i].status == 500 && status >= 500)
			fallback = &error_kinds[i];
	}
	return fallback;
}

static void anthropic_error(const struct sim_answer *a, unsigned status, const char *message,
			    struct sim_buf *out)
{
	sim_buf_format(out, "{\"type\":\"error\",\"error\":{\"type\":\"$\",\"message\":\"",
		       slice_str(error_kind(status)->anthropic));
	if (a->spec->context)
		message = "prompt is too long: 210000 tokens > 200000 maximum";
	sim_buf_escaped(out, slice_str(message));
	sim_buf_text(out, " (" SIM_CANARY ")\"");
	if (a->spec->code[0] != '\0')
		sim_buf_format(out, ",\"details\":{\"error_code\":\"$\"}",
			       slice_str(a->spec->code));
	sim_buf_format(out, "},\"request_id\":\"req_sim_#\"}", a->number);
}

static void openai_error(const struct sim_answer *a, unsigned status, const char *message,
			 struct sim_buf *out)
{
	const struct error_kind *kind = error_kind(status);
	const char *code = a->spec->code[0] != '\0' ? a->spec->code : kind->openai_code;

	if (a->spec->context) {
		message = "This model's maximum context length is 128000 tokens.";
		code = "context_length_exceeded";
	}
	sim_buf_text(out, "{\"error\":{\"message\":\"");
	sim_buf_escaped(out, slice_str(message));
	sim_buf_format(out, " (" SIM_CANARY ")\",\"type\":\"$\",\"param\":null,\"code\":",
		       slice_str(kind->openai));
	if (code == NULL)
		sim_buf_text(out, "null}}");
	else
		sim_buf_format(out, "\"$\"}}", slice_str(code));
}

void sim_error_answer(const struct sim_answer *a, enum sim_dialect dialect, unsigned status,
		      const char *message, struct sim_buf *out)
{
	struct sim_buf *body = a->scratch, *headers = a->input;

	body->len = headers->len = 0;
	if (dialect == SIM_ANTHROPIC)
		anthropic_error(a, status, message, body);
	else
		openai_error(a, status, message, body);
	sim_buf_format(headers, "$: req_sim_#\r\n",
		       dialect == SIM_ANTHROPIC ? SLICE("request-id") : SLICE("x-request-id"),
		       a->number);
	if (a->spec->retry_after != NSEC_NEVER)
		sim_buf_format(headers, "retry-after: #\r\n",
			       (a->spec->retry_after + SEC - 1) / SEC);
	if (a->spec->retry_ms != NSEC_NEVER)
		sim_buf_format(headers, "retry-after-ms: #\r\n", a->spec->retry_ms / MSEC);
	if (a->spec->retry_date != NSEC_NEVER) {
		sim_buf_text(headers, "retry-after: ");
		sim_buf_date(headers, "%a, %d %b %Y %H:%M:%S GMT", a->spec->retry_date);
		sim_buf_text(headers, "\r\n");
	}
	if (a->spec->should_retry != UINT64_MAX)
		sim_buf_format(headers, "x-should-retry: $\r\n",
			       slice_str(a->spec->should_retry ? "true" : "false"));
	sim_keys_headers(a->quota, dialect, headers);
	sim_buf_add(headers, slice_of("", 1)); /* NUL */
	sim_answer_plain(out, status, "application/json", headers->at,
			 slice_of(body->at, body->len), a->keep_alive);
}
