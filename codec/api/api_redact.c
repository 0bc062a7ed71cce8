#include "codec/api/api_redact.h"

#include "codec/json/json_loose.h"
#include "codec/json/json_scan.h"
#include "codec/json/json_write.h"
#include "codec/sse/sse_cut.h"

struct redaction {
	const struct slice *secrets;
	size_t count;
	struct arena *into;
	struct gather out;
};

/* ---- the shape ---- */

static bool is_string(struct slice value)
{
	return json_loose_kind(value) == JSON_LOOSE_STRING;
}

static bool is_error(enum api api, struct slice body)
{
	struct slice object = { NULL, 0 };

	if (!json_loose_whole(body, &object))
		return false;
	const struct slice error = json_loose_member(object, "error");
	if (!is_string(json_loose_member(error, "message")))
		return false;
	return !api_is_anthropic(api) ||
	       (json_loose_is(json_loose_member(object, "type"), "error") &&
		is_string(json_loose_member(error, "type")));
}

/* ---- what is secret in a text ---- */

static bool is_word(char c)
{
	return scan_is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_mark(char c, const char *marks)
{
	return c != '\0' && strchr(marks, c) != NULL;
}

static bool begins(struct slice text, struct slice prefix)
{
	return text.len >= prefix.len && slice_eq_nocase(slice_of(text.at, prefix.len), prefix);
}

/* How much of the text is one name: letters, digits and some marks. */
static size_t name_len(struct slice text, const char *marks)
{
	size_t len = 0;

	while (len < text.len && (is_word(text.at[len]) || is_mark(text.at[len], marks)))
		len++;
	return len;
}

/* Bytes of an id that begins so; 0: none does. */
static size_t id_len(struct slice text)
{
	static const struct {
		struct slice prefix;
		const char *marks;
	} ids[] = {
		{ SLICE_INIT("org-"), "-" },         { SLICE_INIT("proj_"), "-" },
		{ SLICE_INIT("wrkspc_"), "-" },      { SLICE_INIT("projects/"), "-.:" },
		{ SLICE_INIT("arn:"), "-.:/*+=,@" },
	};

	for (size_t i = 0; i < COUNT_OF(ids); i++) {
		const size_t front = ids[i].prefix.len;
		if (!begins(text, ids[i].prefix))
			continue;
		size_t len = name_len(slice_of(text.at + front, text.len - front), ids[i].marks);
		while (len != 0 &&
		       is_mark(text.at[front + len - 1], ".:,")) /* a sentence goes on */
			len--;
		return len == 0 ? 0 : front + len;
	}
	return 0;
}

/* An account number: twelve digits that are no part of a longer one. */
static size_t account_len(struct slice text)
{
	enum { DIGITS = 12 };
	const size_t len = name_len(text, "");

	if (len != DIGITS)
		return 0;
	for (size_t i = 0; i < len; i++)
		if (!scan_is_digit(text.at[i]))
			return 0;
	return len;
}

static size_t secret_len(const struct redaction *r, struct slice text)
{
	for (size_t i = 0; i < r->count; i++)
		if (r->secrets[i].len != 0 && begins(text, r->secrets[i]))
			return r->secrets[i].len;
	return 0;
}

/* The next secret in `text` from *at on, which moves there; 0: there is none. */
static size_t find_secret(const struct redaction *r, struct slice text, size_t *at)
{
	for (; *at < text.len; ++*at) {
		const struct slice rest = slice_of(text.at + *at, text.len - *at);
		size_t len = secret_len(r, rest);
		if (len == 0 && (*at == 0 || !is_word(text.at[*at - 1]))) {
			len = id_len(rest);
			if (len == 0)
				len = account_len(rest);
		}
		if (len != 0)
			return len;
	}
	return 0;
}

/* ---- strings and numbers ---- */

static void put_clean(struct redaction *r, struct slice plain, bool escape)
{
	size_t from = 0, at = 0, len;

	while ((len = find_secret(r, plain, &at)) != 0 || from < plain.len) {
		const struct slice part = slice_of(plain.at + from, at - from);
		if (escape)
			gather_escaped(&r->out, part);
		else
			gather_raw(&r->out, part);
		if (len != 0)
			gather_lit(&r->out, "[redacted]");
		from = at += len;
	}
}

/* False: no memory. */
static bool put_string(struct redaction *r, struct slice raw)
{
	const bool escaped = raw.len != 0 && memchr(raw.at, '\\', raw.len) != NULL;
	const struct slice plain = escaped ? json_str_plain(raw, r->into) : raw;

	if (slice_absent(plain))
		return false;
	size_t at = 0;
	gather_lit(&r->out, "\"");
	if (escaped && find_secret(r, plain, &at) == 0)
		gather_raw(&r->out, raw);
	else
		put_clean(r, plain, escaped);
	gather_lit(&r->out, "\"");
	return true;
}

/* The number, or literal, or other byte at `at`; behind it. */
static const char *put_token(struct redaction *r, const char *at, const char *end)
{
	const struct slice rest = slice_of(at, (size_t)(end - at));
	const size_t len = name_len(rest, "+-.");

	if (len == 0) {
		gather_raw(&r->out, slice_of(at, 1));
		return at + 1;
	}
	if (account_len(slice_of(at, len)) != 0)
		gather_lit(&r->out, "0");
	else
		gather_raw(&r->out, slice_of(at, len));
	return at + len;
}

/* Of valid JSON. */
static const char *string_end(const char *at)
{
	for (at++; *at != '"'; at++)
		if (*at == '\\')
			at++;
	return at;
}

struct slice api_redact(enum api api, struct slice body, const struct slice *secrets, size_t count,
			struct json_work *work, struct arena *into)
{
	struct redaction r = { .secrets = secrets, .count = count, .into = into };
	const struct slice none = { NULL, 0 };
	const char *at = body.at, *end = body.at + body.len;

	if (body.len > API_REDACT_MAX || !json_valid(body, NULL, work, NULL) ||
	    !is_error(api, body))
		return none;
	gather_init(&r.out, into);
	while (at < end) {
		if (*at != '"') {
			at = put_token(&r, at, end);
			continue;
		}
		const char *to = string_end(at);
		if (!put_string(&r, slice_of(at + 1, (size_t)(to - at - 1))))
			return none;
		at = to + 1;
	}
	return gather_done(&r.out) == ERR_OK ? gather_flat(&r.out, into) : none;
}

/* ---- the same as an event ---- */

static void put_lines(struct gather *g, struct slice data)
{
	while (!slice_absent(data)) {
		gather_lit(g, "data: ");
		gather_raw(g, slice_cut(&data, '\n'));
		gather_lit(g, "\n");
	}
	gather_lit(g, "\n");
}

struct slice api_redact_event(enum api api, struct slice event, const struct slice *secrets,
			      size_t count, struct json_work *work, struct arena *into)
{
	const struct slice none = { NULL, 0 };
	struct sse_cut_piece piece;
	struct sse_cut cut;
	struct gather g;

	sse_cut_init(&cut);
	if (event.len > API_REDACT_EVENT_MAX ||
	    sse_cut_next(&cut, event, into, &piece) != SSE_CUT_EVENT || slice_absent(piece.data))
		return none;
	const struct slice clean = api_redact(api, piece.data, secrets, count, work, into);
	if (slice_absent(clean))
		return none;
	gather_init(&g, into);
	if (api_is_anthropic(api)) /* without it SDKs pass it over */
		gather_lit(&g, "event: error\n");
	put_lines(&g, clean);
	return gather_done(&g) == ERR_OK ? gather_flat(&g, into) : none;
}
