/* catalog.h - the models: whose they are, what they cost, how they are called. Immutable. */
#ifndef ROUTING_CATALOG_H
#define ROUTING_CATALOG_H

#include "codec/base/slice.h"
#include "codec/dialect.h"

enum { CATALOG_MODELS_MAX = 1024 };

struct model {
	struct slice id;
	struct slice name; /* what the provider calls it */
	const struct slice *aliases;
	uint32_t alias_count;
	uint32_t provider; /* index into the configuration's providers */
	bool enabled;      /* its own and its provider's */
	uint64_t context;  /* tokens */
	/* pico-USD per token, as tenants/quota.h's struct price (routing does not know tenants) */
	uint64_t price_input, price_output, price_cache_read, price_cache_write;
	double speed, intelligence; /* declared, 0..1 */
	struct profile profile;
};

struct catalog {
	const struct model *models;
	uint32_t count;
};

/* Index of the model with that id, -1 when there is none. Exact, case-sensitive. */
int32_t catalog_find(const struct catalog *catalog, struct slice id);

#endif
