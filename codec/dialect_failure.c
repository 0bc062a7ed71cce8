#include "codec/dialect_failure.h"

#include "codec/base/must.h"
#include "codec/dialect_blame.h"
#include "codec/dialect_learn.h"

enum {
	REQUEST_ID_MAX = 128,
	WAIT_MAX_S = 30 * 24 * 3600, /* nobody is asked to wait longer */
};

/* ---- classes ---- */

const char failure_bad_call[] = "The model wrote a tool call that the provider could not read";

#define OPERATOR "; the operator of this gateway has to look at it"

static const struct class_row {
	enum err err;
	enum retry retry;
	enum blame blame;
	const char *detail; /* NULL: the row's text of tbl/errors.h */
} class_rows[] = {
	[CLASS_NONE] = { ERR_PROVIDER_REJECTED, RETRY_NEVER, BLAME_REQUEST, NULL },
	[CLASS_CONTEXT] = { ERR_CONTEXT_WINDOW, RETRY_NEVER, BLAME_REQUEST, NULL },
	[CLASS_BILLING] = { ERR_PROVIDER_BILLING, RETRY_ELSEWHERE, BLAME_KEY, NULL },
	[CLASS_KEY] = { ERR_PROVIDER_OPERATOR, RETRY_ELSEWHERE, BLAME_KEY,
			"Provider authentication failed" OPERATOR },
	[CLASS_PERMISSION] = { ERR_PROVIDER_OPERATOR, RETRY_ELSEWHERE, BLAME_KEY,
			       "Provider permission is missing" OPERATOR },
	[CLASS_FORBIDDEN] = { ERR_PROVIDER_REJECTED, RETRY_ELSEWHERE, BLAME_MODEL,
			      "The provider rejected the request: it is not permitted there" },
	[CLASS_MODEL] = { ERR_PROVIDER_OPERATOR, RETRY_ELSEWHERE, BLAME_MODEL,
			  "The provider does not know this model" OPERATOR },
	[CLASS_UNABLE] = { ERR_PROVIDER_REJECTED, RETRY_ELSEWHERE, BLAME_MODEL,
			   "The provider rejected the request: this model cannot do what it asks "
			   "for" },
	[CLASS_REDIRECT] = { ERR_PROVIDER_OPERATOR, RETRY_ELSEWHERE, BLAME_ENDPOINT,
			     "The provider endpoint redirects elsewhere" OPERATOR },
	[CLASS_RATE] = { ERR_PROVIDER_RATE, RETRY_AGAIN, BLAME_KEY, NULL },
	[CLASS_DAY] = { ERR_PROVIDER_RATE, RETRY_ELSEWHERE, BLAME_KEY,
			"The provider's quota of the day is used up" },
	[CLASS_DOWN] = { ERR_PROVIDER_DOWN, RETRY_AGAIN, BLAME_ENDPOINT, NULL },
	[CLASS_TOO_LARGE] = { ERR_PROVIDER_REJECTED, RETRY_NEVER, BLAME_REQUEST,
			      "The provider rejected the request: it is too large" },
	[CLASS_CREDIT] = { ERR_PROVIDER_REJECTED, RETRY_ELSEWHERE, BLAME_MODEL,
			   "The provider rejected the request: the credit does not last for it; "
			   "a smaller maxTokens or prompt may do" },
	[CLASS_MINUTE] = { ERR_PROVIDER_REJECTED, RETRY_ELSEWHERE, BLAME_MODEL,
			   "The provider rejected the request: it is larger than its limit of a "
			   "minute" },
	[CLASS_REJECTED] = { ERR_PROVIDER_REJECTED, RETRY_NEVER, BLAME_REQUEST, NULL },
	[CLASS_BAD_CALL] = { ERR_PROVIDER_ANSWER, RETRY_ONCE, BLAME_ANSWER, failure_bad_call },
	[CLASS_REFUSAL] = { ERR_OK, RETRY_NEVER, BLAME_REQUEST, NULL },
};

/* ---- reading ---- */

/* The next value if it is a string, else it is skipped and *out stays as it is. */
static void take_string(struct json_reader *r, struct slice *out)
{
	if (json_peek(r) == JSON_STRING)
		(void)json_string(r, out);
	else
		(void)json_skip(r, NULL);
}

/* Enters the value that is next if it is an object, else skips it. */
static bool enter(struct json_reader *r)
{
	if (json_peek(r) == JSON_OBJECT)
		return json_enter_object(r);
	(void)json_skip(r, NULL);
	return false;
}

static void take_code(struct json_reader *r, struct error_body *body)
{
	struct slice number;
	uint64_t status;

	if (json_peek(r) != JSON_NUMBER) {
		take_string(r, &body->code);
		if (slice_to_u64(body->code, &status) && status <= INT16_MAX)
			body->number = (int64_t)status; /* "429", as some say it */
		return;
	}
	if (!json_number(r, &number))
		return;
	body->code = number; /* a few hosts have numbers for names */
	if (!json_to_int64(number, &body->number))
		body->number = 0;
}

/* Google's QuotaFailure: [{"quotaId": "GenerateRequestsPerDayPerProject-FreeTier"}]. */
static void take_violations(struct json_reader *r, struct error_body *body)
{
	static const struct slice mark = SLICE_INIT("PerDay");
	struct slice text;

	if (json_skip(r, &text))
		body->day |= memmem(text.at, text.len, mark.at, mark.len) != NULL;
}

/* Anthropic's details: {error_code}. Google's: [{"@type": "...RetryInfo", "retryDelay": "36s"}, {"@type":
 * "...ErrorInfo", "reason": "API_KEY_INVALID"}]. */
static void take_details(struct json_reader *r, struct error_body *body)
{
	bool list = json_peek(r) == JSON_ARRAY;
	struct slice key;

	if (list && !json_enter_array(r))
		return;
	while (!list || json_next_item(r)) {
		if (json_peek(r) != JSON_OBJECT) {
			(void)json_skip(r, NULL);
		} else if (json_enter_object(r)) {
			while (json_next_key(r, &key))
				if (json_str_eq(key, SLICE("error_code")))
					take_string(r, &body->detail_code);
				else if (json_str_eq(key, SLICE("retryDelay")))
					take_string(r, &body->retry_delay);
				else if (json_str_eq(key, SLICE("reason")))
					take_string(r, &body->inner_code);
				else if (json_str_eq(key, SLICE("violations")))
					take_violations(r, body);
				else
					(void)json_skip(r, NULL);
		}
		if (!list)
			return;
	}
}

/* Azure's innererror: {code, content_filter_result}. */
static void take_inner(struct json_reader *r, struct error_body *body)
{
	struct slice key;

	if (!enter(r))
		return;
	while (json_next_key(r, &key))
		if (json_str_eq(key, SLICE("code")))
			take_string(r, &body->inner_code);
		else
			(void)json_skip(r, NULL);
}

/* OpenRouter's metadata: what moderation found, {reasons, flagged_input}, or what the provider behind it said,
 * {raw}. */
static void take_metadata(struct json_reader *r, struct error_body *body)
{
	struct slice key;

	if (!enter(r))
		return;
	while (json_next_key(r, &key)) {
		const bool found = json_str_eq(key, SLICE("reasons")) ||
				   json_str_eq(key, SLICE("flagged_input"));
		body->moderated |= found && json_peek(r) != JSON_NULL;
		if (json_str_eq(key, SLICE("raw")))
			take_string(r, &body->wrapped);
		else
			(void)json_skip(r, NULL);
	}
}

/* MiniMax's base_resp, which every answer has: {"status_code": 1027, "status_msg": "..."}; 0 is no error. */
static void take_base_resp(struct json_reader *r, struct error_body *body)
{
	struct error_body own = { 0 };
	struct slice key;

	if (!enter(r))
		return;
	while (json_next_key(r, &key))
		if (json_str_eq(key, SLICE("status_code")))
			take_code(r, &own);
		else if (json_str_eq(key, SLICE("status_msg")))
			take_string(r, &own.message);
		else
			(void)json_skip(r, NULL);
	if (own.number == 0)
		return;
	body->number = own.number;
	body->code = own.code;
	body->message = own.message;
}

/* One member that means the same inside "error" and beside it; false when it is none. */
static bool take_member(struct json_reader *r, struct slice key, struct error_body *body)
{
	if (json_str_eq(key, SLICE("message")) || json_str_eq(key, SLICE("Message"))) /* AWS */
		take_string(r, &body->message);
	else if (json_str_eq(key, SLICE("innererror")))
		take_inner(r, body);
	else if (json_str_eq(key, SLICE("metadata")))
		take_metadata(r, body);
	else if (json_str_eq(key, SLICE("code")))
		take_code(r, body);
	else if (json_str_eq(key, SLICE("param")))
		take_string(r, &body->param);
	else if (json_str_eq(key, SLICE("details")))
		take_details(r, body);
	else if (json_str_eq(key, SLICE("request_id")))
		take_string(r, &body->request_id);
	else
		return false;
	return true;
}

static void take_error(struct json_reader *r, struct error_body *body)
{
	struct slice key;

	if (json_peek(r) != JSON_OBJECT) {
		take_string(r, &body->message);
		return;
	}
	if (!json_enter_object(r))
		return;
	while (json_next_key(r, &key))
		if (json_str_eq(key, SLICE("type")) ||
		    (json_str_eq(key, SLICE("status")) && slice_absent(body->type)))
			take_string(r, &body->type);
		else if (!take_member(r, key, body))
			(void)json_skip(r, NULL);
}

static void read_top(struct json_reader *r, struct error_body *body)
{
	struct slice key, flat_type = { NULL, 0 };

	if (!enter(r))
		return;
	while (json_next_key(r, &key))
		if (json_str_eq(key, SLICE("error")))
			take_error(r, body);
		else if (json_str_eq(key, SLICE("type")) || json_str_eq(key, SLICE("__type")))
			take_string(r, &flat_type);
		else if (json_str_eq(key, SLICE("base_resp")))
			take_base_resp(r, body);
		else if (json_str_eq(key, SLICE("detail")) && slice_absent(body->message))
			take_string(r, &body->message);
		else if (!take_member(r, key, body))
			(void)json_skip(r, NULL);
	if (slice_absent(body->type))
		body->type = flat_type;
}

/* Whatever the body says; nothing when it is not JSON. */
static struct error_body read_body(struct slice text, struct json_work *work)
{
	struct error_body body = { 0 };
	struct json_reader r;

	json_open(&r, text, NULL, work);
	if (json_peek(&r) == JSON_ARRAY) { /* Google's list: the first counts */
		bool open = json_enter_array(&r);
		for (bool first = true; open && json_next_item(&r); first = false)
			if (first)
				read_top(&r, &body);
			else
				(void)json_skip(&r, NULL);
	} else {
		read_top(&r, &body);
	}
	return json_finish(&r) ? body : (struct error_body){ 0 };
}

/* ---- waiting ---- */

/* "1.5" as 1500, at most three digits behind the point count; false when it is no such number. */
static bool decimal_ms(struct slice text, int64_t *ms)
{
	struct slice rest = text;
	struct slice whole = slice_cut(&rest, '.');
	uint64_t value, fraction = 0, unit = 100;

	if (!slice_to_u64(whole, &value) || value > WAIT_MAX_S * UINT64_C(1000))
		return false;
	for (size_t i = 0; i < rest.len; i++, unit /= 10) {
		if (rest.at[i] < '0' || rest.at[i] > '9')
			return false;
		fraction += (uint64_t)(rest.at[i] - '0') * unit;
	}
	*ms = (int64_t)(value * 1000 + fraction);
	return true;
}

static int64_t wait_cap(int64_t ms)
{
	return ms > WAIT_MAX_S * INT64_C(1000) ? WAIT_MAX_S * INT64_C(1000) : ms;
}

int64_t failure_retry_after(const struct provider_headers *headers, uint64_t wall_s)
{
	uint64_t then, now = wall_s;
	int64_t ms;

	if (decimal_ms(slice_trim(headers->retry_after_ms), &ms))
		return wait_cap(ms / 1000);
	struct slice text = slice_trim(headers->retry_after);
	if (decimal_ms(text, &ms))
		return wait_cap(ms);
	if (!http_date(text, &then))
		return -1;
	if (!http_date(headers->date, &now))
		now = wall_s;
	if (then <= now)
		return 0;
	return then - now > WAIT_MAX_S ? wait_cap(INT64_MAX) : (int64_t)(then - now) * 1000;
}

/* RetryInfo: "36s", "0.5s". */
static int64_t retry_delay_ms(struct slice text)
{
	int64_t ms;

	if (text.len < 2 || text.at[text.len - 1] != 's' ||
	    !decimal_ms(slice_of(text.at, text.len - 1), &ms))
		return -1;
	return wait_cap(ms);
}

/* ---- the whole ---- */

/* Ids go into errors and logs, so they are taken only when they look like one. */
static struct slice request_id(struct slice header, struct slice body, struct arena *into)
{
	struct slice id = slice_absent(header) || header.len == 0 ? body : header;

	for (size_t i = 0; i < id.len; i++)
		if (id.at[i] <= ' ' || id.at[i] > '~' || id.at[i] == '"' || id.at[i] == '\\')
			return (struct slice){ NULL, 0 };
	if (id.len == 0 || id.len > REQUEST_ID_MAX)
		return (struct slice){ NULL, 0 };
	return arena_copy(into, id); /* without memory the id is left out */
}

static bool is_error_status(int64_t status)
{
	return status >= 400 && status <= 599;
}

/* x-should-retry decides (contract/providers.md 2); but it knows nothing of other keys and providers. Who
 * says so of a request that he refuses speaks of himself: he is asked again after a wait only. */
static void heed_header(struct provider_failure *failure, struct slice should_retry)
{
	if (slice_eq_nocase(should_retry, SLICE("true"))) {
		failure->retry = RETRY_AGAIN;
		if (failure->blame == BLAME_REQUEST || failure->blame == BLAME_ANSWER)
			failure->blame = BLAME_ENDPOINT;
	} else if (slice_eq_nocase(should_retry, SLICE("false")) &&
		   failure->retry > RETRY_ELSEWHERE) {
		failure->retry = RETRY_ELSEWHERE;
	}
}

bool failure_is_told(const struct provider_answer *answer, struct json_work *work)
{
	const struct error_body body = read_body(answer->body, work);

	return body.number != 0;
}

/* What somebody behind the provider said, as JSON or as it is, if that is about the request. */
static enum failure_class class_within(const struct error_body *body, int status,
				       struct json_work *work, struct arena *into)
{
	if (slice_absent(body->wrapped))
		return CLASS_NONE;
	const struct slice plain = json_str_plain(body->wrapped, into);
	if (slice_absent(plain)) /* no memory: the outer error counts */
		return CLASS_NONE;
	struct error_body inner = read_body(plain, work);
	if (slice_absent(inner.message) && slice_absent(inner.code) && slice_absent(inner.type))
		inner.message = plain;
	return blame_class_wrapped(&inner, status);
}

static enum failure_class class_of(const struct error_body *body, int status,
				   struct json_work *work, struct arena *into)
{
	enum failure_class within = CLASS_NONE, class = blame_class(body, status);

	if (class == CLASS_REJECTED || class == CLASS_FORBIDDEN || class == CLASS_TOO_LARGE ||
	    (class == CLASS_DOWN && status == 200))
		within = class_within(body, status, work, into);
	return within != CLASS_NONE ? within : class;
}

enum err failure_classify(const struct provider_answer *answer, struct json_work *work,
			  struct arena *into, struct provider_failure *failure)
{
	struct error_body body = read_body(answer->body, work);
	int status = answer->status;

	if (status / 100 == 2)
		status = is_error_status(body.number) ? (int)body.number : 200;
	const struct class_row *row = &class_rows[class_of(&body, status, work, into)];
	*failure = (struct provider_failure){
		.err = row->err,
		.detail = row->detail,
		.status = (uint16_t)status,
		.retry = row->retry,
		.blame = row->blame,
		.retry_after_ms = failure_retry_after(&answer->headers, answer->wall_s),
		.request_id = request_id(answer->headers.request_id, body.request_id, into),
		.learn = learn_from(&body, status),
	};
	if (failure->retry_after_ms < 0)
		failure->retry_after_ms = retry_delay_ms(body.retry_delay);
	heed_header(failure, slice_trim(answer->headers.should_retry));
	failure->retryable = failure->retry >= RETRY_ONCE;
	if (failure->err == ERR_PROVIDER_REJECTED && !failure->retryable)
		failure->retry_after_ms = -1; /* nor will it do later */
	if (failure->retry != RETRY_NEVER)
		failure->learn = LEARN_NOTHING;
	return failure->err;
}

enum err failure_broken(const struct provider_answer *answer, const struct usage *usage,
			struct json_work *work, struct arena *into,
			struct provider_failure *failure)
{
	struct provider_answer told = *answer;

	told.body = (struct slice){ NULL, 0 };
	const enum err err = failure_classify(&told, work, into, failure);
	must(err == ERR_PROVIDER_DOWN); /* as an error that says nothing */
	failure->usage_known = usage->known;
	failure->usage = *usage;
	return err;
}

enum err failure_unusable(const struct provider_answer *answer, enum err err, const char *detail,
			  const struct usage *usage, struct arena *into,
			  struct provider_failure *failure)
{
	must(err == ERR_PROVIDER_ANSWER || err == ERR_BUSY);

	*failure = (struct provider_failure){
		.err = err,
		.detail = detail,
		.status = answer->status,
		.retry = err == ERR_PROVIDER_ANSWER ? RETRY_ONCE : RETRY_NEVER,
		.blame = err == ERR_PROVIDER_ANSWER ? BLAME_ANSWER : BLAME_REQUEST,
		.retryable = err == ERR_PROVIDER_ANSWER,
		.retry_after_ms = -1,
		.request_id = request_id(answer->headers.request_id, (struct slice){ 0 }, into),
		.usage_known = usage->known,
		.usage = *usage,
	};
	return err;
}
