#include "codec/dialect/dialect_error_body.h"

#include "codec/dialect/dialect_text.h"
#include "codec/json/json_read.h"

/* How many bytes of a raw string have to stay together: an escape, or two that are one character. */
static size_t unit_len(const char *at)
{
	if (at[0] != '\\')
		return 1;
	if (at[1] != 'u')
		return 2;
	return (at[2] == 'd' || at[2] == 'D') && memchr("89abAB", at[3], 6) != NULL ? 12 : 6;
}

struct slice error_body_front(struct slice raw, size_t max)
{
	enum { UNIT_MAX = 12 };
	size_t end = 0;

	if (raw.len <= max)
		return raw;
	while (end < max - UNIT_MAX)
		end += unit_len(raw.at + end);
	while ((raw.at[end] & 0xc0) == 0x80)
		end--;
	return slice_of(raw.at, end);
}

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

/* Where a fault is: ["body", "stop"]. As a path. */
static void take_place(struct json_reader *r, struct error_body *body)
{
	enum { PARTS_MAX = 8 };
	struct slice path = { NULL, 0 }, part;

	if (!json_enter_array(r))
		return;
	for (int i = 0; json_next_item(r); i++) {
		part = (struct slice){ NULL, 0 };
		take_string(r, &part);
		if (slice_absent(part) || i >= PARTS_MAX)
			continue;
		if (!slice_absent(path))
			path = text_join(body->into, path, SLICE("."));
		path = slice_absent(path) ? part : text_join(body->into, path, part);
	}
	body->param = path;
}

/* A fault as pydantic tells it: {"loc": ["body", "stop"], "msg": "...", "type": "extra_forbidden"}. */
static void take_fault(struct json_reader *r, struct error_body *body)
{
	struct slice key;

	if (json_peek(r) == JSON_STRING && slice_absent(body->message)) {
		take_string(r, &body->message);
		return;
	}
	if (!enter(r))
		return;
	while (json_next_key(r, &key))
		if (json_str_eq(key, SLICE("loc")) && json_peek(r) == JSON_ARRAY)
			take_place(r, body);
		else if (json_str_eq(key, SLICE("msg")) || json_str_eq(key, SLICE("message")))
			take_string(r, &body->message);
		else if (json_str_eq(key, SLICE("type")))
			take_string(r, &body->code);
		else
			(void)json_skip(r, NULL);
}

/* Of a list the first counts. */
static void take_faults(struct json_reader *r, struct error_body *body)
{
	if (json_peek(r) != JSON_ARRAY) {
		take_fault(r, body);
		return;
	}
	if (!json_enter_array(r))
		return;
	for (bool first = true; json_next_item(r); first = false)
		if (first)
			take_fault(r, body);
		else
			(void)json_skip(r, NULL);
}

/* A text, or {"detail": [...]}, as Mistral has it. */
static void take_message(struct json_reader *r, struct error_body *body)
{
	struct slice key;

	if (json_peek(r) != JSON_OBJECT) {
		take_string(r, &body->message);
		return;
	}
	if (!json_enter_object(r))
		return;
	while (json_next_key(r, &key))
		if (json_str_eq(key, SLICE("detail")))
			take_faults(r, body);
		else
			(void)json_skip(r, NULL);
}

/* One member that means the same inside "error" and beside it; false when it is none. */
static bool take_member(struct json_reader *r, struct slice key, struct error_body *body)
{
	if (json_str_eq(key, SLICE("message")) || json_str_eq(key, SLICE("Message"))) /* AWS */
		take_message(r, body);
	else if (json_str_eq(key, SLICE("detail")) || json_str_eq(key, SLICE("errors")))
		take_faults(r, body);
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
		else if (!take_member(r, key, body))
			(void)json_skip(r, NULL);
	if (slice_absent(body->type))
		body->type = flat_type;
}

/* The members of an error body; all absent when it is not JSON. */
static struct error_body read_json(struct slice text, struct json_work *work, struct arena *into)
{
	struct error_body body = { .into = into };
	struct json_reader r;

	json_open(&r, text, NULL, work);
	if (json_peek(&r) == JSON_ARRAY) { /* Google's and Perplexity's list: the first counts */
		bool open = json_enter_array(&r);
		for (bool first = true; open && json_next_item(&r); first = false)
			if (first && json_peek(&r) == JSON_STRING)
				take_string(&r, &body.message);
			else if (first)
				read_top(&r, &body);
			else
				(void)json_skip(&r, NULL);
	} else {
		read_top(&r, &body);
	}
	return json_finish(&r) ? body : (struct error_body){ 0 };
}

/* A host may say back all of a request, whose size is its caller's choice: the search for words ends somewhere. */
static void cut_message(struct error_body *body)
{
	enum { MESSAGE_MAX = 4096 };

	body->message = error_body_front(body->message, MESSAGE_MAX);
}

/* A text in place of JSON, as a raw string; absent when it is a page, or no text. */
static struct slice read_text(struct slice text, struct arena *into)
{
	enum { PLAIN_MAX = 2048 };
	const struct slice plain = text_trim_json(text);

	if (plain.len == 0 || plain.len > PLAIN_MAX || plain.at[0] == '<' || plain.at[0] == '{' ||
	    plain.at[0] == '[')
		return (struct slice){ NULL, 0 };
	for (size_t i = 0; i < plain.len; i++)
		if (plain.at[i] > '~' || plain.at[i] < '\t')
			return (struct slice){ NULL, 0 };
	return text_raw_of(plain, into);
}

struct error_body error_body_read(struct slice text, struct json_work *work, struct arena *into)
{
	struct error_body body = read_json(text, work, into);

	if (slice_absent(body.message))
		body.message = read_text(text, into);
	if (slice_absent(body.wrapped) && body.message.len != 0 &&
	    (body.message.at[0] == '{' || body.message.at[0] == '['))
		body.wrapped = body.message;
	cut_message(&body);
	return body;
}

bool error_body_wrapped(const struct error_body *body, struct json_work *work, struct arena *into,
			struct error_body *out)
{
	if (slice_absent(body->wrapped))
		return false;
	const struct slice plain = json_str_plain(body->wrapped, into);
	if (slice_absent(plain)) /* no memory: the outer error counts */
		return false;
	*out = read_json(plain, work, into);
	if (slice_absent(out->message) && slice_absent(out->code) && slice_absent(out->type))
		out->message = body->wrapped;
	cut_message(out);
	return true;
}
