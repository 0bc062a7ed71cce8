#include "gateway/redis/redis_pending.h"

#include <stdlib.h>

#define SILENCE_MAX (1 * SEC) /* of who owes answers; or the deadline, if that is longer */

bool redis_line_init(struct redis_line *line, nsec_t deadline)
{
	*line = (struct redis_line){
		/* Pages that are never used cost no memory. */
		.ring = calloc(REDIS_IN_FLIGHT_MAX, sizeof(*line->ring)),
		.deadline = deadline,
	};
	return line->ring != NULL;
}

void redis_line_fini(struct redis_line *line)
{
	free(line->ring);
}

struct redis_request *redis_line_begin(struct redis_line *line, nsec_t now)
{
	if (line->next - line->first >= REDIS_IN_FLIGHT_MAX)
		return NULL;
	/* Back to the ring's begin: it is used no further than needed. */
	if (redis_line_is_empty(line))
		line->first = line->undue = line->next =
			(line->next / REDIS_IN_FLIGHT_MAX + 1) * REDIS_IN_FLIGHT_MAX;
	struct redis_request *request = redis_line_place(line, line->next);
	*request = (struct redis_request){ .sent = now };
	return request;
}

void redis_line_left(struct redis_line *line, nsec_t now)
{
	for (uint64_t i = line->kept > line->first ? line->kept : line->first; i < line->next; i++)
		redis_line_place(line, i)->sent = now;
	line->kept = line->next;
}

void redis_line_moved(struct redis_line *line, size_t bytes, nsec_t now)
{
	line->arrived += bytes;
	if (line->arrived < REDIS_LINE_PROGRESS)
		return;
	line->arrived = 0;
	line->moved = now;
}

/* Since when a request is waited for. */
static nsec_t waits_since(const struct redis_line *line, const struct redis_request *request)
{
	const nsec_t most = request->sent + SILENCE_MAX;

	if (line->moved <= request->sent)
		return request->sent;
	return line->moved < most ? line->moved : most;
}

/* When a request is late. The loop wakes up to a millisecond after it was asked to. */
static nsec_t late_at(const struct redis_line *line, const struct redis_request *request)
{
	return waits_since(line, request) + line->deadline - (line->deadline > 2 * MSEC ? MSEC : 0);
}

/* Since when the oldest answer is awaited and nothing was heard. */
static nsec_t quiet_since(const struct redis_line *line)
{
	const nsec_t sent = redis_line_place(line, line->first)->sent;

	return sent > line->heard ? sent : line->heard;
}

static nsec_t silent_at(const struct redis_line *line)
{
	return quiet_since(line) + (line->deadline > SILENCE_MAX ? line->deadline : SILENCE_MAX);
}

nsec_t redis_line_due(const struct redis_line *line)
{
	if (redis_line_is_empty(line))
		return NSEC_NEVER;
	const nsec_t silent = silent_at(line);
	if (line->undue == line->next)
		return silent;
	const nsec_t late = late_at(line, redis_line_place(line, line->undue));
	return late < silent ? late : silent;
}

struct redis_request *redis_line_late(struct redis_line *line, nsec_t now)
{
	if (line->undue == line->next)
		return NULL;
	struct redis_request *request = redis_line_place(line, line->undue);
	if (now < late_at(line, request))
		return NULL;
	line->undue++;
	request->late = true;
	return request;
}

bool redis_line_is_quiet(const struct redis_line *line, nsec_t now, nsec_t most)
{
	return !redis_line_is_empty(line) && now >= quiet_since(line) + most;
}

bool redis_line_is_silent(const struct redis_line *line, nsec_t now)
{
	return !redis_line_is_empty(line) && now >= silent_at(line);
}
