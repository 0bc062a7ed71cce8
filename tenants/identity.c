#include "tenants/identity.h"

void identity_add(struct identity *identity, const struct tenants *registry, struct slice name)
{
	const struct tenant *tenant = tenants_by_name(registry, name);

	if (tenant == NULL)
		return;
	if (identity->tenant == NULL) {
		identity->tenant = tenant;
		identity->server = name;
	}
	identity->ambiguous |= identity->tenant != tenant;
}

const struct tenant *identity_tenant(const struct identity *identity)
{
	return identity->ambiguous ? NULL : identity->tenant;
}
