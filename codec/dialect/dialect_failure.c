#include "codec/dialect/dialect_failure.h"

#include "codec/base/must.h"
#include "codec/dialect/dialect_blame.h"
#include "codec/dialect/dialect_learn.h"

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
			   "fewer output tokens or a shorter prompt may do" },
	[CLASS_MINUTE] = { ERR_PROVIDER_REJECTED, RETRY_ELSEWHERE, BLAME_MODEL,
			   "The provider rejected the request: it is larger than its limit of a "
			   "minute" },
	[CLASS_REJECTED] = { ERR_PROVIDER_REJECTED, RETRY_NEVER, BLAME_REQUEST, NULL },
	[CLASS_BAD_CALL] = { ERR_PROVIDER_ANSWER, RETRY_ONCE, BLAME_ANSWER, failure_bad_call },
	[CLASS_REFUSAL] = { ERR_OK, RETRY_NEVER, BLAME_REQUEST, NULL },
};

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

bool failure_is_told(const struct provider_answer *answer, struct json_work *work,
		     struct arena *into)
{
	const struct error_body body = error_body_read(answer->body, work, into);

	return body.number != 0 ||
	       (body.message.len != 0 && (body.code.len != 0 || body.type.len != 0));
}

/* The error of a host behind the provider, if it is about the request. */
static enum failure_class class_within(const struct error_body *body, int status,
				       struct json_work *work, struct arena *into)
{
	struct error_body inner;

	return error_body_wrapped(body, work, into, &inner) ? blame_class_wrapped(&inner, status)
							    : CLASS_NONE;
}

static enum failure_class class_of(const struct error_body *body, int status,
				   struct json_work *work, struct arena *into, bool *open)
{
	enum failure_class within = CLASS_NONE, class = blame_class(body, status, open);

	if (class == CLASS_REJECTED || class == CLASS_FORBIDDEN || class == CLASS_TOO_LARGE ||
	    (class == CLASS_DOWN && status == 200))
		within = class_within(body, status, work, into);
	*open = *open && within == CLASS_NONE;
	return within != CLASS_NONE ? within : class;
}

/* Where nothing else is known to be wrong the request may have to be sent otherwise. What the host behind a proxy
 * said of it tells more than the proxy does. */
static struct lesson lesson_of(const struct error_body *body, int status, learn_set teachable,
			       struct json_work *work, struct arena *into)
{
	struct error_body inner;

	if (error_body_wrapped(body, work, into, &inner))
		return learn_from(&inner, status, teachable, into);
	return learn_from(body, status, teachable, into);
}

enum err failure_classify(const struct provider_answer *answer, learn_set teachable,
			  struct json_work *work, struct arena *into,
			  struct provider_failure *failure)
{
	struct error_body body = error_body_read(answer->body, work, into);
	int status = answer->status;

	if (status / 100 == 2)
		status = is_error_status(body.number) ? (int)body.number : 200;
	bool open;
	const struct class_row *row = &class_rows[class_of(&body, status, work, into, &open)];
	struct lesson lesson = { LEARN_NOTHING, false };
	if (open)
		lesson = lesson_of(&body, status, teachable, work, into);
	*failure = (struct provider_failure){
		.err = row->err,
		.detail = row->detail,
		.status = (uint16_t)status,
		.retry = row->retry,
		.blame = row->blame,
		.retry_after_ms = failure_retry_after(&answer->headers, answer->wall_s),
		.request_id = request_id(answer->headers.request_id, body.request_id, into),
		.learn = lesson.fact,
		.learn_lasting = lesson.lasting,
	};
	if (failure->retry_after_ms < 0)
		failure->retry_after_ms = retry_delay_ms(body.retry_delay);
	heed_header(failure, slice_trim(answer->headers.should_retry));
	failure->retryable = failure->retry >= RETRY_ONCE;
	if (failure->err == ERR_PROVIDER_REJECTED && !failure->retryable)
		failure->retry_after_ms = -1; /* nor will it do later */
	if (failure->retry > RETRY_ELSEWHERE)
		failure->learn = LEARN_NOTHING;
	return failure->err;
}

enum err failure_broken(const struct provider_answer *answer, const struct usage *usage,
			struct json_work *work, struct arena *into,
			struct provider_failure *failure)
{
	struct provider_answer told = *answer;

	told.body = (struct slice){ NULL, 0 };
	const enum err err = failure_classify(&told, 0, work, into, failure);
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
