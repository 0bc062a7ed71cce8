#include "codec/api/api_headers.h"

#include "codec/api/api_date.h"

#include <stdarg.h>
#include <stdio.h>

enum { VALUE_MAX = API_DATE_MAX, MS = 1000 };

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

/* Adds a header, unless there is no memory for its value. */
static __attribute__((format(printf, 5, 6))) size_t add(struct api_header *out, size_t count,
							struct slice name, struct arena *into,
							const char *format, ...)
{
	char *value = arena_take(into, VALUE_MAX);
	va_list list;

	if (value == NULL)
		return count;
	va_start(list, format);
	const int len = vsnprintf(value, VALUE_MAX, format, list);
	va_end(list);
	out[count] = (struct api_header){ name, slice_of(value, (size_t)len) };
	return count + 1;
}

size_t api_retry_headers(int64_t wait_ms, bool never, struct arena *into,
			 struct api_header out[API_RETRY_HEADERS])
{
	enum { WAIT_MAX_MS = 60 * MS }; /* contract/direct.md 4 */
	size_t count = 0;

	if (never || wait_ms > WAIT_MAX_MS)
		out[count++] = (struct api_header){ SLICE("x-should-retry"), SLICE("false") };
	if (wait_ms < 0)
		return count;
	count = add(out, count, SLICE("retry-after"), into, "%lld",
		    (long long)(wait_ms / MS + (wait_ms % MS != 0)));
	if (wait_ms <= WAIT_MAX_MS)
		count = add(out, count, SLICE("retry-after-ms"), into, "%lld", (long long)wait_ms);
	return count;
}

/* ---- rates ---- */

/* As OpenAI writes it: "6m0s", "1s", "20ms". */
static size_t add_span(struct api_header *out, size_t count, struct slice name, struct arena *into,
		       uint64_t ms)
{
	const unsigned long long minutes = ms / MS / 60, seconds = ms / MS % 60;

	if (ms < MS)
		return add(out, count, name, into, "%llums", (unsigned long long)ms);
	if (minutes == 0)
		return add(out, count, name, into, "%llus", seconds);
	if (minutes < 60)
		return add(out, count, name, into, "%llum%llus", minutes, seconds);
	return add(out, count, name, into, "%lluh%llum%llus", minutes / 60, minutes % 60, seconds);
}

/* The names of one kind of limit in both families. */
struct rate_names {
	struct slice limit, remaining, reset, x_limit, x_remaining, x_reset;
};

static size_t add_rate(struct api_header *out, size_t count, const struct rate_names *names,
		       struct arena *into, const struct api_rate *rate, uint64_t wall_s)
{
	const unsigned long long limit = rate->limit, remaining = rate->remaining;

	char date[API_DATE_MAX];

	if (!rate->known)
		return count;
	api_date(date, wall_s + (rate->reset_ms + MS - 1) / MS);
	count = add(out, count, names->limit, into, "%llu", limit);
	count = add(out, count, names->remaining, into, "%llu", remaining);
	count = add(out, count, names->reset, into, "%s", date);
	count = add(out, count, names->x_limit, into, "%llu", limit);
	count = add(out, count, names->x_remaining, into, "%llu", remaining);
	return add_span(out, count, names->x_reset, into, rate->reset_ms);
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
