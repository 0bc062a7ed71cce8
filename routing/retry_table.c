#include "routing/retry_table.h"

#include <string.h>

struct retry_budget *retry_table_find(struct retry_table *table,
				      const uint8_t tenant[RETRY_TENANT_BYTES])
{
	uint64_t set, tag;

	_Static_assert(sizeof(tag) + sizeof(set) == RETRY_TENANT_BYTES, "all of the digest");
	(void)memcpy(&tag, tenant, sizeof(tag));
	(void)memcpy(&set, tenant + sizeof(tag), sizeof(set));
	tag += tag == 0; /* 0 is nobody */
	struct retry_place *places = table->places[set % RETRY_TABLE_SETS], *oldest = places;
	for (size_t i = 0; i < RETRY_TABLE_WAYS; i++) {
		if (places[i].tenant == tag)
			return &places[i].budget;
		if (places[i].budget.at < oldest->budget.at)
			oldest = &places[i];
	}
	*oldest = (struct retry_place){ .tenant = tag };
	return &oldest->budget;
}
