#include "gateway/log.h"

#include "codec/base/attr.h"
#include "codec/base/hex.h"
#include "codec/base/must.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* One field's text may take that much of a line, escapes included; longer texts end in "...". So no
 * field can push the others out of the line. */
enum { FIELD_MAX = 400, FIELD_COUNT = 14, FIXED_MAX = 2560 };
_Static_assert(FIELD_COUNT *FIELD_MAX + FIXED_MAX < LOG_LINE_MAX, "the longest line fits");
_Static_assert((LOG_RING_BYTES & (LOG_RING_BYTES - 1)) == 0, "positions are masked");

/* ---- the ring ------------------------------------------------------------------------------ */

/* Both positions only grow; a position's place is its remainder. The two sides' words are kept on
 * cache lines of their own. */
struct log_ring {
	_Alignas(64) _Atomic uint64_t written; /* the worker's */
	_Atomic uint64_t dropped;
	uint64_t second; /* the time text below is of this second */
	char second_text[20];
	_Alignas(64) _Atomic uint64_t consumed; /* the reader's */
	_Alignas(64) char bytes[LOG_RING_BYTES];
};

struct log_ring *log_ring_new(void)
{
	struct log_ring *ring = aligned_alloc(64, sizeof(*ring));

	if (ring == NULL)
		return NULL;
	/* The bytes are left alone: pages that were never written cost no memory. */
	memset(ring, 0, offsetof(struct log_ring, bytes));
	ring->second = UINT64_MAX;
	return ring;
}

void log_ring_free(struct log_ring *ring)
{
	free(ring);
}

static bool ring_add(struct log_ring *ring, const char *line, size_t len)
{
	uint64_t written = atomic_load_explicit(&ring->written, memory_order_relaxed);
	uint64_t consumed = atomic_load_explicit(&ring->consumed, memory_order_acquire);
	size_t at = written % LOG_RING_BYTES;
	size_t front = len < LOG_RING_BYTES - at ? len : LOG_RING_BYTES - at;

	if (len > LOG_RING_BYTES - (written - consumed)) {
		uint64_t dropped = atomic_load_explicit(&ring->dropped, memory_order_relaxed);
		atomic_store_explicit(&ring->dropped, dropped + 1, memory_order_relaxed);
		return false;
	}
	memcpy(ring->bytes + at, line, front);
	if (front != len)
		memcpy(ring->bytes, line + front, len - front);
	atomic_store_explicit(&ring->written, written + len, memory_order_release);
	return true;
}

struct slice log_ring_peek(struct log_ring *ring)
{
	uint64_t consumed = atomic_load_explicit(&ring->consumed, memory_order_relaxed);
	uint64_t written = atomic_load_explicit(&ring->written, memory_order_acquire);
	size_t at = consumed % LOG_RING_BYTES;
	size_t len = written - consumed;

	return slice_of(ring->bytes + at, len < LOG_RING_BYTES - at ? len : LOG_RING_BYTES - at);
}

void log_ring_read(struct log_ring *ring, size_t len)
{
	uint64_t consumed = atomic_load_explicit(&ring->consumed, memory_order_relaxed);

	must(len <= atomic_load_explicit(&ring->written, memory_order_relaxed) - consumed);
	atomic_store_explicit(&ring->consumed, consumed + len, memory_order_release);
}

uint64_t log_ring_dropped(const struct log_ring *ring)
{
	return atomic_load_explicit(&ring->dropped, memory_order_relaxed);
}

/* ---- numbers ------------------------------------------------------------------------------- */

#define NANO ((uint64_t)1000000000)

static char *put(char *at, const char *text, size_t len)
{
	memcpy(at, text, len);
	return at + len;
}
#define put_lit(at, literal) put((at), "" literal, sizeof(literal) - 1)

/* Two digits of each number below a hundred. */
static const char digit_pairs[] = "0001020304050607080910111213141516171819"
				  "2021222324252627282930313233343536373839"
				  "4041424344454647484950515253545556575859"
				  "6061626364656667686970717273747576777879"
				  "8081828384858687888990919293949596979899";

/* Exactly `width` digits, zeros in front; two at a time, because dividing is what costs. */
static inline char *put_padded(char *at, uint64_t value, size_t width)
{
	size_t n = width;

	for (; n >= 2; value /= 100)
		memcpy(at + (n -= 2), digit_pairs + value % 100 * 2, 2);
	if (n == 1)
		*at = (char)('0' + value % 10);
	return at + width;
}

static char *put_long(char *at, uint64_t value)
{
	size_t width = 4;

	if (value < 1000) { /* most of these: statuses, milliseconds, tokens */
		*at = (char)('0' + value / 100);
		return put_padded(at + 1, value % 100, 2);
	}
	for (uint64_t bound = 10000; value >= bound && width < 20; bound *= 10)
		width++;
	return put_padded(at, value, width);
}

/* Most numbers of a line are small. */
static inline char *put_uint(char *at, uint64_t value)
{
	if (value >= 100)
		return put_long(at, value);
	memcpy(at, digit_pairs + value * 2 + (value < 10), 2);
	return at + (value < 10 ? 1 : 2);
}

/* value / 10^places */
static inline char *put_decimal(char *at, uint64_t value, uint64_t unit, size_t places)
{
	at = put_uint(at, value / unit);
	*at++ = '.';
	return put_padded(at, value % unit, places);
}

static char *put_hex(char *at, uint64_t value)
{
	hex_put(at, (uint32_t)(value >> 32));
	hex_put(at + 8, (uint32_t)value);
	return at + 16;
}

/* A score lies within 0..1, a cost is a few; anything else would be our bug, and the line stays JSON all
 * the same. */
static char *put_score(char *at, double score)
{
	if (!(score >= 0 && score < 1e9))
		return put_lit(at, "null");
	return put_decimal(at, (uint64_t)(score * 1e6 + 0.5), 1000000, 6);
}

/* "2026-01-31T23:59:59"; days to a date after H. Hinnant, days_from_civil. */
static void second_text(uint64_t second, char out[19])
{
	uint64_t days = second / 86400 + 719468, left = second % 86400;
	uint64_t era = days / 146097, doe = days % 146097;
	uint64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
	uint64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
	uint64_t mp = (5 * doy + 2) / 153, month = mp < 10 ? mp + 3 : mp - 9;

	char *at = put_padded(out, yoe + era * 400 + (month <= 2 ? 1 : 0), 4);
	*at++ = '-';
	at = put_padded(at, month, 2);
	*at++ = '-';
	at = put_padded(at, doy - (153 * mp + 2) / 5 + 1, 2);
	*at++ = 'T';
	at = put_padded(at, left / 3600, 2);
	*at++ = ':';
	at = put_padded(at, left / 60 % 60, 2);
	*at++ = ':';
	(void)put_padded(at, left % 60, 2);
}

static char *put_time(char *at, struct log_ring *ring, uint64_t wall_ns)
{
	uint64_t second = wall_ns / SEC;

	if (second != ring->second) {
		second_text(second, ring->second_text);
		ring->second = second;
	}
	at = put(at, ring->second_text, 19);
	*at++ = '.';
	at = put_padded(at, wall_ns / MSEC % 1000, 3);
	*at++ = 'Z';
	return at;
}

/* ---- texts from outside --------------------------------------------------------------------- */

/* Bytes of the UTF-8 sequence at the front of `s`, 0 when it is not one (RFC 3629). */
static size_t utf8_len(struct slice s)
{
	const uint8_t *b = (const uint8_t *)s.at;
	size_t len = b[0] < 0x80 ? 1 : b[0] < 0xc2 ? 0 : b[0] < 0xe0 ? 2 : b[0] < 0xf0 ? 3 : 4;

	if (len == 0 || b[0] > 0xf4 || len > s.len)
		return 0;
	for (size_t i = 1; i < len; i++)
		if ((b[i] & 0xc0) != 0x80)
			return 0;
	if ((b[0] == 0xe0 && b[1] < 0xa0) || (b[0] == 0xed && b[1] > 0x9f) ||
	    (b[0] == 0xf0 && b[1] < 0x90) || (b[0] == 0xf4 && b[1] > 0x8f))
		return 0;
	return len;
}

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* The code unit of the escape \uXXXX at the front of `s`, -1 when there is none. */
static int escape_unit(struct slice s)
{
	int unit = 0;

	if (s.len < 6 || s.at[0] != '\\' || s.at[1] != 'u')
		return -1;
	for (size_t i = 2; i < 6; i++) {
		if (!is_hex(s.at[i]))
			return -1;
		unit = unit * 16 + (s.at[i] <= '9' ? s.at[i] - '0' : (s.at[i] | 0x20) - 'a' + 10);
	}
	return unit;
}

/* Bytes of the JSON escape at the front of `s`, 0 when it is none; both halves of a surrogate pair,
 * so that a text is never cut between them. */
static size_t escape_len(struct slice s)
{
	int unit = escape_unit(s);

	if (s.len < 2 || s.at[0] != '\\')
		return 0;
	if (s.at[1] != 'u')
		return memchr("\"\\/bfnrt", s.at[1], 8) == NULL ? 0 : 2;
	if (unit < 0xd800 || unit > 0xdfff)
		return unit < 0 ? 0 : 6;
	if (unit > 0xdbff || s.len < 12)
		return 0;
	return (escape_unit(slice_of(s.at + 6, s.len - 6)) & ~0x3ff) == 0xdc00 ? 12 : 0;
}

/* One character of `s` in JSON; *used bytes of it. A raw string's escapes are kept. */
static char *put_char(char *at, struct slice s, bool raw, size_t *used)
{
	uint8_t c = (uint8_t)s.at[0];
	size_t len = raw ? escape_len(s) : 0;

	*used = 1;
	if (len == 0 && c == '"')
		return put_lit(at, "\\\"");
	if (len == 0 && c == '\\')
		return put_lit(at, "\\\\");
	if (c < 0x20 || c == 0x7f) {
		at = put_lit(at, "\\u00");
		*at++ = "0123456789abcdef"[c >> 4];
		*at++ = "0123456789abcdef"[c & 15];
		return at;
	}
	if (len == 0)
		len = utf8_len(s);
	if (len == 0)
		return put_lit(at, "\\ufffd");
	*used = len;
	return put(at, s.at, len);
}

static bool is_clean(char c)
{
	return (uint8_t)c >= 0x20 && (uint8_t)c < 0x7f && c != '"' && c != '\\';
}

/* Sixteen bytes in a vector register of any machine; as signed bytes, what is beyond ASCII lies below
 * all else. */
typedef uint64_t two_words __attribute__((vector_size(16)));
typedef int8_t sixteen __attribute__((vector_size(16)));

static inline bool are_clean(two_words words)
{
	const sixteen bytes = (sixteen)words;
	const two_words clean =
		(two_words)((bytes > 0x1f) & (bytes != 0x7f) & (bytes != '"') & (bytes != '\\'));

	return (clean[0] & clean[1]) == UINT64_MAX;
}

static inline bool copy_sixteen(char *to, const char *from)
{
	two_words words;

	memcpy(&words, from, sizeof(words));
	if (are_clean(words))
		memcpy(to, &words, sizeof(words));
	return are_clean(words);
}

/* 8 to 15 bytes: the first eight and the last ones. */
static inline bool copy_some(char *to, const char *from, size_t len)
{
	uint64_t first, last;

	memcpy(&first, from, sizeof(first));
	memcpy(&last, from + len - sizeof(last), sizeof(last));
	if (!are_clean((two_words){ first, last }))
		return false;
	memcpy(to, &first, sizeof(first));
	memcpy(to + len - sizeof(last), &last, sizeof(last));
	return true;
}

/* 4 to 7 bytes, likewise. */
static inline bool copy_few(char *to, const char *from, size_t len)
{
	uint32_t first, last;

	memcpy(&first, from, sizeof(first));
	memcpy(&last, from + len - sizeof(last), sizeof(last));
	const uint64_t both = (uint64_t)last << 32 | first;
	if (!are_clean((two_words){ both, both }))
		return false;
	memcpy(to, &first, sizeof(first));
	memcpy(to + len - sizeof(last), &last, sizeof(last));
	return true;
}

/* Copies clean bytes from the front of `s`, many at a time; returns how many. */
static inline __attribute__((always_inline)) size_t put_clean(char *at, const char *full,
							      struct slice s)
{
	const size_t room = full > at ? (size_t)(full - at) : 0;
	const size_t len = s.len < room ? s.len : room;
	size_t i = 0;

	while (i + 16 <= len && copy_sixteen(at + i, s.at + i))
		i += 16;
	if (len >= 16 && i + 16 > len) { /* takes bytes along that were copied already */
		if (copy_sixteen(at + len - 16, s.at + len - 16))
			return len;
	} else if (len >= 8 && len < 16) {
		if (copy_some(at, s.at, len))
			return len;
	} else if (len >= 4 && len < 8 && copy_few(at, s.at, len)) {
		return len;
	}
	while (i < len && is_clean(s.at[i])) {
		at[i] = s.at[i];
		i++;
	}
	return i;
}

/* What is left of a text whose next byte needs more than copying, up to its end. */
static __attribute__((noinline)) char *put_unclean(char *at, const char *full, struct slice s,
						   bool raw)
{
	while (s.len != 0 && at < full) {
		size_t used;
		at = put_char(at, s, raw, &used);
		s = slice_of(s.at + used, s.len - used);
		used = put_clean(at, full, s);
		at += used;
		s = slice_of(s.at + used, s.len - used);
	}
	return s.len == 0 ? at : put_lit(at, "...");
}

/* The quoted text; at most FIELD_MAX bytes. */
static char *put_text(char *at, struct slice s, bool raw)
{
	const char *full = at + FIELD_MAX - 16; /* the longest character, dots and a quote */

	*at++ = '"';
	const size_t used = put_clean(at, full, s);
	at += used;
	if (used < s.len)
		at = put_unclean(at, full, slice_of(s.at + used, s.len - used), raw);
	*at++ = '"';
	return at;
}

/* The same for a name of ours (log.h). */
static inline char *put_own(char *at, struct slice s)
{
	must(s.len <= SLICE_SHORT);
	*at = '"';
	slice_put_short(at + 1, s);
	at[1 + s.len] = '"';
	return at + s.len + 2;
}

/* ---- the line ------------------------------------------------------------------------------ */

/* A member that is left out when it has nothing to say; `key` is ,"name": */
#define member_text(at, key, s) \
	(slice_absent(s) ? (at) : put_text(put_lit((at), ",\"" key "\":"), (s), false))
#define member_own(at, key, text) \
	((text) == NULL ? (at) : put_own(put_lit((at), ",\"" key "\":"), slice_str(text)))
#define member_raw(at, key, s) \
	(slice_absent(s) ? (at) : put_text(put_lit((at), ",\"" key "\":"), (s), true))
#define member_uint(at, key, n) ((n) == 0 ? (at) : put_uint(put_lit((at), ",\"" key "\":"), (n)))
#define member_ms(at, key, ns) \
	((ns) == 0 ? (at)      \
		   : put_decimal(put_lit((at), ",\"" key "\":"), (ns) / USEC, MSEC / USEC, 3))

static char *put_caller(char *at, const struct log_request *line)
{
	at = put_own(put_lit(at, ",\"request_id\":"), slice_str(line->request_id));
	at = member_text(at, "traceparent", line->traceparent);
	at = member_text(at, "tenant", line->tenant);
	at = member_text(at, "server", line->server);
	at = member_own(at, "revision", line->revision);
	return member_own(at, "method", line->rpc);
}

/* Priorities that were stated. */
static char *put_preferences(char *at, const struct log_route *route)
{
	if (!isnan(route->cost))
		at = put_score(put_lit(at, ",\"cost\":"), route->cost);
	if (!isnan(route->speed))
		at = put_score(put_lit(at, ",\"speed\":"), route->speed);
	if (!isnan(route->intelligence))
		at = put_score(put_lit(at, ",\"intelligence\":"), route->intelligence);
	return at;
}

const char *log_held_name(enum log_held held)
{
	static const char *const names[] = {
		[LOG_HELD_NOTHING] = NULL,
		[LOG_HELD_MODEL] = "model",
		[LOG_HELD_ENDPOINT] = "endpoint",
	};

	must((unsigned)held < COUNT_OF(names));
	return names[held];
}

static char *put_asked(char *at, const struct log_route *route)
{
	at = member_raw(at, "hint", route->hint);
	if (route->alias >= 0 && !slice_absent(route->hint))
		at = put_uint(put_lit(at, ",\"alias\":"), (uint64_t)route->alias);
	at = member_uint(at, "input", route->input_tokens);
	at = member_uint(at, "output", route->max_tokens);
	if (route->image)
		at = put_lit(at, ",\"image\":true");
	if (route->audio)
		at = put_lit(at, ",\"audio\":true");
	if (route->held != LOG_HELD_NOTHING)
		at = member_own(at, "held", log_held_name(route->held));
	return put_preferences(at, route);
}

static char *put_candidates(char *at, const struct log_route *route)
{
	const size_t count =
		route->candidate_count < LOG_CANDIDATES ? route->candidate_count : LOG_CANDIDATES;

	for (size_t i = 0; i < count; i++) {
		at = i == 0 ? put_lit(at, ",\"candidates\":[") : put_lit(at, ",");
		at = put_uint(put_lit(at, "{\"model\":"), route->candidates[i].model);
		at = put_score(put_lit(at, ",\"score\":"), route->candidates[i].score);
		*at++ = '}';
	}
	return count == 0 ? at : put_lit(at, "]");
}

static char *put_drawn(char *at, const struct log_route *route)
{
	const size_t count = route->drawn_count < LOG_DRAWN ? route->drawn_count : LOG_DRAWN;

	for (size_t i = 0; i < count; i++) {
		at = i == 0 ? put_lit(at, ",\"endpoints\":[") : put_lit(at, ",");
		at = put_uint(put_lit(at, "{\"endpoint\":"), route->drawn[i].endpoint);
		at = put_score(put_lit(at, ",\"cost\":"), route->drawn[i].cost);
		*at++ = '}';
	}
	return count == 0 ? at : put_lit(at, "]");
}

static char *put_route(char *at, const struct log_request *line)
{
	const struct log_route *route = &line->route;

	at = member_text(at, "model", line->model);
	at = member_text(at, "provider", line->provider);
	at = member_text(at, "endpoint", line->endpoint);
	if (route->config_digest == NULL)
		return at;
	at = put_own(put_lit(at, ",\"route\":{\"config\":"), slice_str(route->config_digest));
	if (route->seed != 0) { /* text: JSON's numbers do not hold 64 bits everywhere */
		at = put_hex(put_lit(at, ",\"seed\":\""), route->seed);
		*at++ = '"';
	}
	at = put_asked(at, route);
	at = put_candidates(at, route);
	at = put_drawn(at, route);
	*at++ = '}';
	return at;
}

/* How each attempt ended is said where the request's own end does not tell. */
static char *put_attempts(char *at, const struct log_request *line)
{
	const uint32_t count = line->attempts < LOG_ATTEMPTS ? line->attempts : LOG_ATTEMPTS;

	at = member_uint(at, "attempts", line->attempts);
	if (count < 2)
		return at;
	at = put_lit(at, ",\"attempt_classes\":[");
	for (uint32_t i = 0; i < count; i++) {
		const char *reason = err_info(line->attempt_classes[i])->reason;
		at = put_lit(at, "\"");
		at = put(at, reason, strlen(reason));
		at = i + 1 < count ? put_lit(at, "\",") : put_lit(at, "\"]");
	}
	return at;
}

static char *put_session(char *at, const struct log_session *session)
{
	if (session->id[0] == '\0')
		return at;
	at = put_own(put_lit(at, ",\"session\":{\"id\":"), slice_str(session->id));
	if (session->counted) {
		at = put_uint(put_lit(at, ",\"requests\":"), session->requests);
		at = put_uint(put_lit(at, ",\"tokens\":"), session->tokens);
		at = put_decimal(put_lit(at, ",\"usd\":"), session->usd_nano, NANO, 9);
	}
	return put_lit(at, "}");
}

static char *put_cost(char *at, const struct log_request *line)
{
	const struct usage *usage = &line->usage;

	at = put_attempts(at, line);
	if (usage->known) {
		at = put_uint(put_lit(at, ",\"input_tokens\":"), usage->input);
		at = put_uint(put_lit(at, ",\"output_tokens\":"), usage->output);
		at = member_uint(at, "cache_read_tokens", usage->cache_read);
		at = member_uint(at, "cache_write_tokens", usage->cache_write);
		at = member_uint(at, "reasoning_tokens", usage->reasoning);
	}
	if (line->usd_nano != 0)
		at = put_decimal(put_lit(at, ",\"usd\":"), line->usd_nano, NANO, 9);
	return member_own(at, "stop", line->stop);
}

static char *put_end(char *at, const struct log_request *line)
{
	at = put_uint(put_lit(at, ",\"status\":"), line->status < 0 ? 0 : (uint64_t)line->status);
	if (line->err != ERR_OK)
		at = put_text(put_lit(at, ",\"error\":"), slice_str(err_info(line->err)->reason),
			      false);
	at = member_text(at, "detail", slice_str(line->detail));
	at = put_decimal(put_lit(at, ",\"total_ms\":"), line->total / USEC, MSEC / USEC, 3);
	at = member_ms(at, "queue_ms", line->queue);
	at = member_ms(at, "provider_ttfb_ms", line->provider_ttfb);
	return member_ms(at, "provider_ms", line->provider_total);
}

bool log_request(struct log_ring *ring, const struct log_request *line)
{
	char text[LOG_LINE_MAX];
	char *at = put_time(put_lit(text, "{\"time\":\""), ring, line->wall_ns);

	*at++ = '"';
	at = put_caller(at, line);
	at = put_end(at, line);
	at = put_route(at, line);
	at = put_cost(at, line);
	at = put_session(at, &line->session);
	at = put_lit(at, "}\n");
	must((size_t)(at - text) <= sizeof(text));
	return ring_add(ring, text, (size_t)(at - text));
}
