/* sluice_faulty.c - sluice with bugs in it, for tests of what happens then: same libraries, same
 * process, one function replaced. `sluice_faulty serve --config F`.
 *
 * A tenant's id says which bug its requests meet, in the step "policy". */

#define policy_check true_policy_check
#include "tenants/policy.c"
#undef policy_check

#include "codec/base/must.h"
#include "gateway/process/supervisor.h"

#include <stdio.h>

/* The shape of an endless loop that no compiler may leave out. */
static _Noreturn void spin(void)
{
	for (volatile unsigned turns = 0;; turns++)
		;
}

struct verdict policy_check(const struct tenant *tenant, const struct plan *plan,
			    const struct sampling_request *request)
{
	must(!slice_eq(tenant->id, SLICE("breaks-a-promise")));
	if (slice_eq(tenant->id, SLICE("spins")))
		spin();
	if (slice_eq(tenant->id, SLICE("crashes")))
		*(volatile char *)tenant->id.len = 0; /* a length is no address */
	return true_policy_check(tenant, plan, request);
}

int main(int argc, char **argv)
{
	if (argc == 4)
		return supervisor_run(argv[3]);
	(void)fprintf(stderr, "usage: sluice_faulty serve --config F\n");
	return 2;
}
