/* redis_pending.h - the requests of one connection to Redis that are on their way, oldest first. Pure.
 *
 * Requests are numbered as they are sent, and answered in that order. A request without an answer by the
 * deadline is late, once; it stays in the line until its answer comes or never will. An answer that is arriving is not
 * late, and holds up those behind it by no fault of theirs: the deadline begins anew with each REDIS_LINE_PROGRESS bytes
 * of it, for a second at most. */
#ifndef GATEWAY_REDIS_REDIS_PENDING_H
#define GATEWAY_REDIS_REDIS_PENDING_H

#include "codec/base/must.h"
#include "gateway/redis/redis_link.h"

enum { REDIS_LINE_PROGRESS = 1024 };

struct redis_line {
	struct redis_request *ring;
	uint64_t first, undue, next; /* oldest, first that is not late, number of the next */
	uint64_t kept;               /* from here on they have not left */
	nsec_t heard;                /* the latest answer; whoever takes one says so */
	nsec_t moved;                /* a large answer got on last, */
	size_t arrived;              /* but for so many bytes since */
	nsec_t deadline;
};

/* False: memory. `line` is to be given back by redis_line_fini either way. */
MUST_USE bool redis_line_init(struct redis_line *line, nsec_t deadline);
void redis_line_fini(struct redis_line *line);

static inline bool redis_line_is_empty(const struct redis_line *line)
{
	return line->first == line->next;
}

/* The place of a number, which need not be in the line. */
static inline struct redis_request *redis_line_place(const struct redis_line *line, uint64_t number)
{
	return &line->ring[number % REDIS_IN_FLIGHT_MAX];
}

/* A request that is not over. */
static inline struct redis_request *redis_line_at(const struct redis_line *line, uint64_t number)
{
	must(number >= line->first && number < line->next);
	return redis_line_place(line, number);
}

/* What will be the last one when redis_line_push is called, cleared. NULL: too many are on their way. */
struct redis_request *redis_line_begin(struct redis_line *line, nsec_t now);

static inline void redis_line_push(struct redis_line *line)
{
	line->next++;
}

/* Whether any has been sent that redis_line_left was not told of. */
static inline bool redis_line_keeps(const struct redis_line *line)
{
	return line->kept < line->next;
}

/* All have left, at `now`: those that had not are late from then on, not from when they were begun. */
void redis_line_left(struct redis_line *line, nsec_t now);

/* Bytes have come of an answer that began before them or is not whole yet. */
void redis_line_moved(struct redis_line *line, size_t bytes, nsec_t now);

/* Takes the oldest out; there must be one. */
static inline struct redis_request redis_line_pop(struct redis_line *line)
{
	must(!redis_line_is_empty(line));
	if (line->undue == line->first)
		line->undue++;
	return *redis_line_place(line, line->first++);
}

/* When to ask the two below; NSEC_NEVER when the line is empty. */
nsec_t redis_line_due(const struct redis_line *line);
/* The next one that has become late, and is marked so; NULL: no more of them. */
struct redis_request *redis_line_late(struct redis_line *line, nsec_t now);
/* Whether nothing was heard for `most` while an answer is owed. */
bool redis_line_is_quiet(const struct redis_line *line, nsec_t now, nsec_t most);
/* Whether answers that are owed will not come any more. Who is slow but answers is not silent. */
bool redis_line_is_silent(const struct redis_line *line, nsec_t now);

#endif
