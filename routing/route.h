/* route.h - the one door of routing: request and permitted models to one model, or why not.
 *
 * permitted and capable -> hints in order (exact before substring, ASCII case ignored, over id,
 * name and aliases; a hint that no candidate answers to goes through the tenant's table of equivalent
 * models before the next one's turn) -> score (DESIGN 5): sum of priority x value over sum of priorities, with
 * cheapness = K/(K + usd of this request), K = 0.01 USD, where max_tokens counts as far as the model
 * can write; speed = T/(T + ms), T = 5,000, ms = measured time to the first token + max_tokens x
 * measured time per token, or as declared until enough was measured; intelligence as declared. An
 * absent priority weighs 0; all absent or 0: the default model if it is among the candidates that
 * the hint left, else the highest intelligence of these. Ties by catalogue order. What goes on stays
 * where it was, unless hint, permission, content or health say otherwise. Pure: same inputs,
 * same answer.
 *
 * Hints beyond the first ROUTE_HINTS_MAX and hints longer than ROUTE_HINT_BYTES (decoded) match
 * nothing: a request of megabytes of hints must not cost more than one of a few. */
#ifndef ROUTING_ROUTE_H
#define ROUTING_ROUTE_H

#include "codec/base/bitset.h"
#include "codec/mcp/hint_alias.h"
#include "codec/mcp/sampling.h"
#include "routing/catalog.h"
#include "routing/hint.h"
#include "routing/speed.h"

enum { ROUTE_HINTS_MAX = 64, ROUTE_HINT_BYTES = 256 };

enum route_reason {
	ROUTE_CANDIDATE, /* not refused */
	ROUTE_DISABLED,
	ROUTE_NOT_PERMITTED,
	ROUTE_NO_IMAGE,
	ROUTE_NO_AUDIO,
	ROUTE_TOO_MANY_TOOLS,
	ROUTE_CONTEXT_TOO_SMALL,
	ROUTE_TRIED,     /* by an earlier attempt at the same request */
	ROUTE_UNHEALTHY, /* every endpoint's breaker is open, or every key cools */
	ROUTE_REASON_COUNT
};
/* Stable name, e.g. "not_permitted"; static. */
const char *route_reason_name(enum route_reason reason);

/* What routing needs to know of a request. */
struct route_query {
	const struct model_preferences *prefer;
	const struct bitset *permitted;
	const struct hint_alias *aliases; /* in order; NULL: none */
	uint32_t alias_count;
	int32_t default_model;
	bool image, audio;
	uint32_t tools;        /* how many there are */
	uint64_t input_tokens; /* estimate */
	uint32_t max_tokens;
	/* Of a further attempt at the same request; NULL: none. Models that were tried are no candidates
	 * any more; late ones, whose provider has failed, are picked only where the hint left no other. So
	 * asking again with what was picked last gives the candidates in their order. */
	const struct bitset *tried, *late;
	/* Models where the request belongs, for what it goes on with was answered there: one of these, if the
	 * hint left one, whatever scores say. NULL: nowhere. */
	const struct bitset *held;
	const struct bitset *down;        /* models that cannot be had now; NULL: none */
	const struct model_speed *speeds; /* measured, by catalogue index; NULL: nothing is */
	struct hint_memory *memory;       /* of hints seen before; NULL: none */
};

struct route_candidate {
	uint32_t model;
	enum route_reason reason;
	bool hinted;  /* left over by the hint that matched */
	double score; /* of candidates; NAN when no priority was given, and of others */
	double usd, cheapness, speed, intelligence; /* of every model, candidate or not */
};

/* No model: ERR_MODEL_FORBIDDEN when none is permitted, ERR_CONTENT_UNSUPPORTED when image or audio
 * is all that keeps some permitted model from being one, ERR_TOOLS_TOO_MANY when the number of tools is,
 * ERR_PROVIDER_NO_ATTEMPT when health alone does, else ERR_NO_MODEL. */
enum { ROUTE_SCORED_MAX = 4 };

struct route {
	enum err err;          /* ERR_OK or one of these; then the rest has no meaning */
	uint32_t model;        /* the winner's catalogue index */
	int32_t hint;          /* index of the hint that matched, -1 none */
	int32_t alias;         /* of query->aliases, by which it did; -1: by a name of the model */
	double score;          /* the winner's, NAN when no priority was given */
	uint64_t input_tokens; /* as the query said: for the log line, too */
	uint32_t max_tokens;
	bool image, audio;
	bool held; /* the winner is one of query->held */
	/* The first candidates that were scored, in catalogue order, for the log line. */
	struct route_scored {
		uint32_t model;
		double score;
	} scored[ROUTE_SCORED_MAX];
	uint32_t scored_count;
};

/* Picks. `trace` NULL on the request path; else catalog->count entries, filled for every model in
 * catalogue order (for explain and for the no_model error). Hints are raw JSON strings. */
struct route route_pick(const struct catalog *catalog, const struct route_query *query,
			struct route_candidate *trace);

#endif
