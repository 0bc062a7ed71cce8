/* identity.h - verified names of a caller to its tenant (DESIGN 4.2, identity and tenants[].names).
 *
 * Somebody else has verified the names; here they only lead to somebody. Names of one caller may be
 * many, and those that are nobody's do not matter, but they must not lead to two tenants. */
#ifndef TENANTS_IDENTITY_H
#define TENANTS_IDENTITY_H

#include "tenants/tenant.h"

struct identity {
	const struct tenant *tenant; /* NULL: nobody yet */
	struct slice server;         /* the name that led to it; tells a tenant's servers apart */
	bool ambiguous;              /* `tenant` is one of several: nobody after all */
};

/* Takes one more name into account; *identity begins zeroed. */
void identity_add(struct identity *identity, const struct tenants *registry, struct slice name);

/* After all names: the tenant, disabled or not, or NULL. */
const struct tenant *identity_tenant(const struct identity *identity);

#endif
