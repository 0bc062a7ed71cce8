#include "codec/api/api_headers.h"

#include "codec/api/api_date.h"

#include "codec/json/json_write.h"

enum { MS = 1000 };

bool api_header_passes(enum api api, struct slice name)
{
	static const struct slice kept[] = { SLICE_INIT("anthropic-workspace-id"),
					     SLICE_INIT("anthropic-user-profile-id"),
					     SLICE_INIT("anthropic-organization-id") };

	if (!api_is_anthropic(api) || !slice_starts(name, SLICE("anthropic-")) ||
	    slice_starts(name, SLICE("anthropic-dangerous-")))
		return false;
	for (size_t i = 0; i < COUNT_OF(kept); i++)
		if (slice_eq(name, kept[i]))
			return false;
	return true;
}

static void add(struct api_header *out, size_t *count, struct slice name, struct slice value)
{
	out[(*count)++] = (struct api_header){ name, value };
}

/* What stands between. */
static struct slice between(const char *from, const char *to)
{
	return slice_of(from, (size_t)(to - from));
}

size_t api_retry_headers(int64_t wait_ms, bool never, struct arena *into,
			 struct api_header out[API_RETRY_HEADERS])
{
	enum { WAIT_MAX_MS = 60 * MS }; /* contract/direct.md 4 */
	size_t count = 0;

	if (never || wait_ms > WAIT_MAX_MS)
		add(out, &count, SLICE("x-should-retry"), SLICE("false"));
	char *text = wait_ms < 0 ? NULL : arena_take(into, 2 * PEN_UINT_MAX);
	if (text == NULL)
		return count;
	const uint64_t ms = (uint64_t)wait_ms;
	char *end = pen_uint(text, ms / MS + (ms % MS != 0));
	add(out, &count, SLICE("retry-after"), between(text, end));
	if (wait_ms <= WAIT_MAX_MS)
		add(out, &count, SLICE("retry-after-ms"), between(end, pen_uint(end, ms)));
	return count;
}

/* ---- rates ---- */

enum { SPAN_MAX = 3 * (PEN_UINT_MAX + 1) };

/* As OpenAI writes it: "6m0s", "1s", "20ms". */
static char *pen_span(char *pen, uint64_t ms)
{
	const uint64_t minutes = ms / MS / 60;

	if (ms < MS)
		return pen_lit(pen_uint(pen, ms), "ms");
	if (minutes >= 60)
		pen = pen_lit(pen_uint(pen, minutes / 60), "h");
	if (minutes != 0)
		pen = pen_lit(pen_uint(pen, minutes % 60), "m");
	return pen_lit(pen_uint(pen, ms / MS % 60), "s");
}

/* The names of one kind of limit in both families. */
struct rate_names {
	struct slice limit, remaining, reset, x_limit, x_remaining, x_reset;
};

static size_t add_rate(struct api_header *out, size_t count, const struct rate_names *names,
		       struct arena *into, const struct api_rate *rate, uint64_t wall_s)
{
	char *const limit =
		rate->known ? arena_take(into, 2 * PEN_UINT_MAX + API_DATE_MAX + SPAN_MAX) : NULL;

	if (limit == NULL)
		return count;
	char *const remaining = pen_uint(limit, rate->limit);
	char *const date = pen_uint(remaining, rate->remaining);
	char *const span = date + api_date(date, wall_s + (rate->reset_ms + MS - 1) / MS);
	char *const end = pen_span(span, rate->reset_ms);

	add(out, &count, names->limit, between(limit, remaining));
	add(out, &count, names->remaining, between(remaining, date));
	add(out, &count, names->reset, between(date, span));
	add(out, &count, names->x_limit, between(limit, remaining));
	add(out, &count, names->x_remaining, between(remaining, date));
	add(out, &count, names->x_reset, between(span, end));
	return count;
}

size_t api_rate_headers(const struct api_rate *requests, const struct api_rate *tokens,
			uint64_t wall_s, struct arena *into,
			struct api_header out[API_RATE_HEADERS])
{
#define NAMES(kind)                                                           \
	{                                                                     \
		SLICE_INIT("anthropic-ratelimit-" kind "-limit"),             \
			SLICE_INIT("anthropic-ratelimit-" kind "-remaining"), \
			SLICE_INIT("anthropic-ratelimit-" kind "-reset"),     \
			SLICE_INIT("x-ratelimit-limit-" kind),                \
			SLICE_INIT("x-ratelimit-remaining-" kind),            \
			SLICE_INIT("x-ratelimit-reset-" kind)                 \
	}
	static const struct rate_names request_names = NAMES("requests"),
				       token_names = NAMES("tokens");
#undef NAMES
	const size_t count = add_rate(out, 0, &request_names, into, requests, wall_s);

	return add_rate(out, count, &token_names, into, tokens, wall_s);
}
