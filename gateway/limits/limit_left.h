/* limit_left.h - what a request finds left of its rates, for whoever is to be told (contract/direct.md 4). */
#ifndef GATEWAY_LIMITS_LIMIT_LEFT_H
#define GATEWAY_LIMITS_LIMIT_LEFT_H

#include "gateway/limits/limit_table.h"

/* Of one kind of rate: the scope that has the least of it. */
struct limit_room {
	bool known;         /* a scope has such a limit, and it refuses */
	uint64_t limit;     /* units a minute, or at once, if those are more */
	uint64_t remaining; /* units that could be taken at once */
	nsec_t full_in;     /* until as much is there as there may be */
};

struct limit_left {
	nsec_t at; /* as of then, by net_now; 0: no limit was asked */
	struct limit_room requests, tokens;
};

/* Nothing is known of any rate. */
void limit_left_begin(struct limit_left *left, nsec_t at);

/* What one more rate says: the smaller room counts. `tat` is under `limit`, of the clock that `now` is of. */
void limit_room_add(struct limit_room *room, struct quota_limit limit, nsec_t tat, nsec_t now);

/* The same of all rates of the scopes, whose slots are found. */
void limit_left_read(struct limit_left *left, const struct limit_scope *scopes, uint32_t count,
		     nsec_t now);

/* The time that a rate has in its state, if `asked` units have to wait so long from `now` on. */
nsec_t limit_tat_of_wait(struct quota_limit limit, uint64_t asked, nsec_t wait, nsec_t now);

#endif
