#include "routing/pool.h"

#include "codec/base/must.h"

#include <stddef.h>

/* Everybody gains his weight, the richest is picked and pays for all: the picks of a heavy member
 * lie between those of the light ones, never in a row. The sum of `current` stays 0. */
uint32_t pool_pick(struct pool_member *members, uint32_t count)
{
	int64_t total = 0;
	uint32_t best = 0;

	must(members != NULL && count >= 1);
	for (uint32_t i = 0; i < count; i++) {
		must(members[i].weight >= 1);
		members[i].current += members[i].weight;
		total += members[i].weight;
		if (members[i].current > members[best].current)
			best = i;
	}
	members[best].current -= total;
	return best;
}
