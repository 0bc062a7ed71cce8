#include "gateway/telemetry/log.h"

#include "codec/base/attr.h"
#include "codec/base/must.h"
#include "gateway/base/utc_text.h"
#include "gateway/telemetry/log_put.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { FIELD_COUNT = 14, FIXED_MAX = 2560 }; /* a line's texts, and bytes for all else of it */
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

/* ---- the line ------------------------------------------------------------------------------ */

#define NANO ((uint64_t)1000000000)

static char *put_time(char *at, struct log_ring *ring, uint64_t wall_ns)
{
	uint64_t second = wall_ns / SEC;

	if (second != ring->second) {
		utc_text(second, ring->second_text);
		ring->second = second;
	}
	at = put(at, ring->second_text, UTC_TEXT);
	*at++ = '.';
	at = put_padded(at, wall_ns / MSEC % 1000, 3);
	*at++ = 'Z';
	return at;
}

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

static __attribute__((noinline)) char *put_agent(char *at, const struct log_agent *agent)
{
	at = member_text(at, "retry", agent->retry);
	at = member_text(at, "agent_session", agent->session);
	at = member_text(at, "agent", agent->agent);
	return member_text(at, "parent_agent", agent->parent);
}

static char *put_caller(char *at, const struct log_request *line)
{
	at = put_own(put_lit(at, ",\"request_id\":"),
		     slice_of(line->request_id, sizeof(line->request_id) - 1));
	at = member_text(at, "traceparent", line->traceparent);
	at = member_text(at, "tenant", line->tenant);
	at = member_text(at, "server", line->server);
	at = member_own(at, "front", line->front);
	at = member_text(at, "client", line->client);
	at = member_text(at, "tool", line->tool);
	if (line->agent != NULL)
		at = put_agent(at, line->agent);
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
	at = put_own(put_lit(at, ",\"route\":{\"config\":"),
		     slice_of(route->config_digest, LOG_CONFIG_HEX));
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
	at = member_uint(at, "estimated_tokens", line->estimated_tokens);
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

bool log_mcp_session(struct log_ring *ring, const struct log_mcp_session *line)
{
	char text[LOG_LINE_MAX];
	char *at = put_time(put_lit(text, "{\"time\":\""), ring, line->wall_ns);

	at = line->end == NULL ? put_lit(at, "\",\"event\":\"session_begin\"")
			       : put_lit(at, "\",\"event\":\"session_end\"");
	at = member_own(at, "request_id", line->request_id);
	at = member_text(at, "tenant", line->tenant);
	at = member_text(at, "server", line->server);
	at = put_lit(at, ",\"front\":\"mcp\"");
	at = member_text(at, "client", line->client);
	at = member_text(at, "revision", line->revision);
	at = member_own(at, "mode", line->mode);
	at = put_own(put_lit(at, ",\"session\":{\"id\":"), slice_str(line->session));
	*at++ = '}';
	at = member_own(at, "end", line->end);
	if (line->end != NULL)
		at = put_uint(put_lit(at, ",\"lasted_s\":"), line->lasted_s);
	at = put_lit(at, "}\n");
	must((size_t)(at - text) <= sizeof(text));
	return ring_add(ring, text, (size_t)(at - text));
}
