#include "gateway/http/guard_room.h"

#include "codec/base/must.h"

/* A body grows as long as it brings a sixteenth of itself, and this at least, in a fortieth of the patience (250 ms). Those that
 * grow never end early for others. To keep 16 MiB and grow takes 4 MB a second, and they are at their limit soon. */
enum { GROWN_PART = 16, GROWN_MIN = 4096, GROWTH_PART = 40 };

/* What it must bring in its patience: a modem's pace. */
enum { PACE_BYTES_PER_S = 4096 };

/* Requests that are held have a fourth of the room, or that of one body. */
enum { HELD_PART = 4 };

enum { FIRST_LINE_BITS = 12 }; /* of all bodies below 8 KiB */

/* ---- lines ---- */
static uint8_t line_of(uint32_t bytes)
{
	const unsigned bits = 31 - (unsigned)__builtin_clz(bytes | 1 << FIRST_LINE_BITS);

	_Static_assert(31 - FIRST_LINE_BITS < GUARD_LINES, "a line for each power of two");
	return (uint8_t)(bits - FIRST_LINE_BITS);
}

static void unlist(struct guard_budget *budget, struct guard_body *body)
{
	struct guard_line *line = &budget->lines[body->line];

	if (!body->listed)
		return;
	*(body->prev != NULL ? &body->prev->next : &line->first) = body->next;
	*(body->next != NULL ? &body->next->prev : &line->last) = body->prev;
	body->listed = false;
}

/* It has just grown, or was not looked at before. */
static void list_last(struct guard_budget *budget, struct guard_body *body, nsec_t now)
{
	unlist(budget, body);
	body->line = line_of(body->bytes);
	struct guard_line *line = &budget->lines[body->line];
	body->next = NULL;
	body->prev = line->last;
	*(line->last != NULL ? &line->last->next : &line->first) = body;
	line->last = body;
	body->listed = true;
	body->grown_at = now;
	body->grown_bytes = body->bytes;
}

void guard_body_move(struct guard_budget *budget, struct guard_body *to,
		     const struct guard_body *from)
{
	struct guard_line *line = &budget->lines[from->line];

	*to = *from;
	if (!to->listed)
		return;
	*(to->prev != NULL ? &to->prev->next : &line->first) = to;
	*(to->next != NULL ? &to->next->prev : &line->last) = to;
}

/* ---- counting ---- */
static void count(struct guard_budget *budget, struct guard_body *body, size_t bytes)
{
	must(bytes <= UINT32_MAX); /* body_bytes_max is far less */
	must(body->holder->bytes >= body->bytes && budget->unfinished_bytes >= body->bytes);
	body->holder->bytes += bytes - body->bytes;
	budget->unfinished_bytes += bytes - body->bytes;
	body->bytes = (uint32_t)bytes;
}

void guard_body_end_early(struct guard_budget *budget, struct guard_body *body, enum guard_why why)
{
	if (body->over != GUARD_GOES_ON)
		return;
	unlist(budget, body);
	count(budget, body, 0);
	body->over = (uint8_t)why;
	body->holder->over++;
	if (budget->over != NULL)
		budget->over(body->holder);
}

void guard_body_end(struct guard_budget *budget, struct guard_body *body)
{
	unlist(budget, body);
	count(budget, body, 0);
	if (body->over == GUARD_GOES_ON)
		return;
	must(body->holder->over != 0);
	body->holder->over--;
	body->over = GUARD_GOES_ON;
}

/* ---- room ---- */
uint64_t guard_body_weight(const struct guard_budget *budget, const struct guard_body *body,
			   nsec_t now)
{
	const nsec_t age = now - body->grown_at;
	const uint64_t ms = age / MSEC < UINT16_MAX ? age / MSEC + 1 : UINT16_MAX;

	return age > budget->patience / GROWTH_PART ? body->bytes * ms * ms : 0;
}

/* The heaviest of those that come first in their lines: within a line nobody has more than twice the bytes of another. NULL:
 * all grow. */
static struct guard_body *heaviest(const struct guard_budget *budget, nsec_t now)
{
	struct guard_body *found = NULL;
	uint64_t most = 0;

	for (size_t i = 0; i < GUARD_LINES; i++) {
		struct guard_body *first = budget->lines[i].first;
		const uint64_t weight = first == NULL ? 0 : guard_body_weight(budget, first, now);
		if (weight > most) {
			most = weight;
			found = first;
		}
	}
	return found;
}

/* For `own` bytes, which are the asker's. False: nobody is left who does not grow. */
static bool make_room(struct guard_budget *budget, size_t own, const struct guard_body *asker,
		      nsec_t now)
{
	while (guard_too_many_bytes(budget, own)) {
		struct guard_body *body = heaviest(budget, now);
		if (body == NULL || body == asker)
			return false;
		guard_body_end_early(budget, body, GUARD_NO_ROOM);
	}
	return true;
}

static void ask(struct guard_budget *budget, struct guard_body *body, nsec_t now)
{
	if (guard_too_many_bytes(budget, body->bytes) && !make_room(budget, body->bytes, body, now))
		guard_body_end_early(budget, body, GUARD_NO_ROOM);
}

static bool held_too_much(const struct guard_budget *budget)
{
	const size_t part = budget->worker_bytes_max / HELD_PART;

	return budget->held_bytes > (part > budget->body_bytes_max ? part : budget->body_bytes_max);
}

bool guard_hold(struct guard_budget *budget, struct guard_holder *holder, size_t bytes, size_t most,
		nsec_t now)
{
	holder->bytes += bytes;
	budget->unfinished_bytes += bytes;
	budget->held_bytes += bytes;
	return !held_too_much(budget) && holder->bytes <= most &&
	       make_room(budget, bytes, NULL, now);
}

void guard_let_go(struct guard_budget *budget, struct guard_holder *holder, size_t bytes)
{
	must(holder->bytes >= bytes && budget->unfinished_bytes >= bytes);
	must(budget->held_bytes >= bytes);
	holder->bytes -= bytes;
	budget->unfinished_bytes -= bytes;
	budget->held_bytes -= bytes;
}

/* ---- a body's life ---- */
void guard_body_begin(struct guard_budget *budget, struct guard_body *body,
		      struct guard_holder *holder, uint32_t stream, size_t cost, nsec_t now)
{
	*body = (struct guard_body){
		.holder = holder, .stream = stream, .grown_at = now, .paced_at = now
	};
	count(budget, body, cost);
	body->paced_bytes = body->bytes;
	list_last(budget, body, now);
	ask(budget, body, now);
}

static void note_growth(struct guard_budget *budget, struct guard_body *body, nsec_t now)
{
	const uint32_t part = body->grown_bytes / GROWN_PART;
	const uint64_t pace = budget->patience * PACE_BYTES_PER_S / SEC;

	if (body->bytes - body->grown_bytes >= (part > GROWN_MIN ? part : GROWN_MIN))
		list_last(budget, body, now);
	if (body->bytes - body->paced_bytes >= pace) {
		body->paced_at = now;
		body->paced_bytes = body->bytes;
	}
}

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

void guard_body_keep(struct guard_budget *budget, struct guard_body *body, size_t bytes, nsec_t now)
{
	const uint32_t before = body->bytes;

	if (body->over != GUARD_GOES_ON)
		return;
	count(budget, body, bytes);
	body->grown_bytes = least(body->grown_bytes, body->bytes); /* chunks have been unpacked */
	body->paced_bytes = least(body->paced_bytes, body->bytes);
	if (body->bytes <= before)
		return;
	note_growth(budget, body, now);
	ask(budget, body, now);
}

void guard_body_check(struct guard_budget *budget, struct guard_body *body, nsec_t now)
{
	if (guard_too_slow(budget, body->paced_at, now))
		guard_body_end_early(budget, body, GUARD_TOO_SLOW);
}
