/* catalog.h - the models: whose they are, what they cost, how they are called. Immutable. */
#ifndef ROUTING_CATALOG_H
#define ROUTING_CATALOG_H

#include "codec/base/attr.h"
#include "codec/base/bitset.h"
#include "codec/base/slice.h"
#include "codec/dialect/dialect.h"

enum { CATALOG_MODELS_MAX = 1024 };

#define CATALOG_NO_PRICE UINT64_MAX

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
	uint64_t price_cache_write_1h;
	uint64_t
		price_server_tool; /* nano-USD of each use of a tool that the provider runs; CATALOG_NO_PRICE: not said */
	double speed, intelligence; /* declared, 0..1 */
	struct profile profile;
};

/* Characters and pairs of neighbouring ones that names hold, ASCII case folded, hashed to so many. */
enum { CATALOG_GRAMS = 256 };

/* What scores are made of, of models CATALOG_BLOCK * n to CATALOG_BLOCK * n + CATALOG_BLOCK - 1: in catalogues a
 * line of cache for each figure. Zero behind the last model. */
enum { CATALOG_BLOCK = 8 };
struct model_figures {
	double price_input[CATALOG_BLOCK], price_output[CATALOG_BLOCK]; /* pico-USD per token */
	double speed[CATALOG_BLOCK], intelligence[CATALOG_BLOCK];       /* declared */
	double max_output[CATALOG_BLOCK];
};

/* What picking reads of all models, close together. */
struct catalog_index {
	struct bitset enabled, image, audio;
	uint64_t context_least;  /* of the enabled ones */
	uint32_t tools_least;    /* that one of them takes at most */
	uint32_t words;          /* that a set of all models takes */
	const uint64_t *holders; /* of each gram: the set of models with a name that holds it */
	const struct model_figures *figures; /* by block */
};

struct catalog {
	const struct model *models;
	uint32_t count;                    /* at most CATALOG_MODELS_MAX */
	const struct catalog_index *index; /* NULL: everything is the same, but slower */
};

struct arena;

/* Sets catalog->index, which lives in `into`; the models must be there. False: memory. */
MUST_USE bool catalog_index(struct catalog *catalog, struct arena *into);

/* Of block `block`; the models must be there. */
void model_figures(const struct catalog *catalog, uint32_t block, struct model_figures *out);

/* Sets *out to the models with names that may have `text` as a part: none that has is left out, and few
 * that have not are in it. The catalogue has an index. */
void catalog_may_name(const struct catalog *catalog, struct slice text, struct bitset *out);

/* Index of the model with that id, -1 when there is none. Exact, case-sensitive. */
int32_t catalog_find(const struct catalog *catalog, struct slice id);

#endif
