/* lessons.h - what refusals have taught about one model: for one tenant, or for all.
 *
 * A refusal may be one request's own doing, so what it taught is for its tenant alone. It is for all once refusals
 * of two tenants have taught the same, or, where there is but one tenant, those of two different bodies. It is
 * forgotten after an hour: a host may take tomorrow what it refuses today. Facts are small numbers here; what they mean is
 * codec's (enum learn). Pure: time is an argument. */
#ifndef ROUTING_LESSONS_H
#define ROUTING_LESSONS_H

#include "codec/base/clock.h"
#include "codec/dialect/dialect.h"

/* Of one model, for single tenants: one can have one for each fact, so that none fills them alone. */
enum { LESSONS_MAX = 4 * LEARN_COUNT };
#define LESSON_LASTS (3600 * SEC)

struct lesson_kept {
	nsec_t until; /* then it is forgotten; 0: free */
	uint64_t tenant;
	uint64_t body; /* stands for that of the request that was refused */
	enum learn fact;
};

/* Zero: nothing is known. */
struct lessons {
	nsec_t until; /* when the last one is forgotten; 0: there is none, the usual case */
	nsec_t for_all[LEARN_COUNT]; /* until when each is for every tenant */
	struct lesson_kept kept[LESSONS_MAX];
};

/* Whose refusal it was. */
struct lesson_from {
	uint64_t tenant; /* not 0 */
	uint64_t body;
	bool only_tenant; /* there is no other */
};

/* A refusal taught these facts, and without them the request was answered. */
void lessons_note(struct lessons *lessons, learn_set facts, const struct lesson_from *from,
		  nsec_t now);

/* What is known for that tenant. Nothing where `until` has passed: a caller may look there first. */
learn_set lessons_known(const struct lessons *lessons, uint64_t tenant, nsec_t now);

#endif
