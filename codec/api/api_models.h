/* api_models.h - GET /v1/models and /v1/models/{id} in both shapes: Anthropic's for whoever sends anthropic-version, else
 * OpenAI's. */
#ifndef CODEC_API_API_MODELS_H
#define CODEC_API_API_MODELS_H

#include "codec/json/json_write.h"

enum api_models_shape { API_MODELS_OPENAI, API_MODELS_ANTHROPIC };

/* A model or an alias, as the caller may name it. Slices are plain. */
struct api_model {
	struct slice id;
	struct slice name;   /* to be shown; absent: the id */
	struct slice owner;  /* owned_by; absent: "sluice" */
	uint64_t created_s;  /* since the epoch; clients want some number */
	uint64_t input_max;  /* tokens; 0: not known */
	uint64_t output_max; /* likewise */
};

enum { API_MODELS_PAGE = 20, API_MODELS_PAGE_MAX = 1000 };

/* Which of a list are asked for. */
struct api_models_page {
	size_t from, count;
	bool more; /* there are others in the direction of the walk */
};

/* The page of a query (limit, after_id, before_id; absent: none) of `count` models. OpenAI's lists have no pages: there the
 * query is not looked at, all are given. False: the query is malformed, or names a model that is not there: *wrong is its
 * member, static. */
MUST_USE bool api_models_find(enum api_models_shape shape, struct slice query,
			      const struct api_model *models, size_t count, struct arena *into,
			      struct api_models_page *page, const char **wrong);

/* The list; `page` is of `models`. */
void api_models_write(struct gather *g, enum api_models_shape shape, const struct api_model *models,
		      const struct api_models_page *page);

/* An id as it stands in a path, with or without percent signs (RFC 3986, 2.1); absent: no memory. What is no escape stays
 * as it is. */
MUST_USE struct slice api_model_id(struct slice path, struct arena *into);

/* One model alone. */
void api_model_write(struct gather *g, enum api_models_shape shape, const struct api_model *model);

#endif
