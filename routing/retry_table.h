/* retry_table.h - the retry budgets of many tenants: each has one of its own, as long as it counts.
 *
 * A budget that nobody has used for a window is what a new one is, so it need not be kept: there is room
 * for as many tenants as a worker serves in a window, a few thousand requests a second. Should they be more,
 * those that were quiet for longest begin anew, which gives them their floor once more; nobody ever spends
 * what is another one's. Which place is whose goes by the tenant's digest. Pure: one thread, no clock. */
#ifndef ROUTING_RETRY_TABLE_H
#define ROUTING_RETRY_TABLE_H

#include "routing/retry.h"

enum { RETRY_TABLE_SETS = 16384, RETRY_TABLE_WAYS = 4, RETRY_TENANT_BYTES = 16 };

/* Zero-initialised: nobody is known. 2 MiB, of which only what was used is ever touched. */
struct retry_table {
	struct retry_place {
		uint64_t tenant; /* of its digest; 0: free */
		struct retry_budget budget;
	} places[RETRY_TABLE_SETS][RETRY_TABLE_WAYS];
};

/* The budget of the tenant with that digest; zero if it is new. Valid until the next call. The caller brings
 * it up to date (retry_note_request, retry_has), which is what its age goes by. */
struct retry_budget *retry_table_find(struct retry_table *table,
				      const uint8_t tenant[RETRY_TENANT_BYTES]);

#endif
