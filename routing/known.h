/* known.h - the models that this version knows by name (tbl/models.h): facts for configurations that say
 * no more than the name. Static, never fetched; a file's own facts win. */
#ifndef ROUTING_KNOWN_H
#define ROUTING_KNOWN_H

#include "codec/base/slice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KNOWN_UNSAID UINT64_MAX

struct known_model {
	const char *name;   /* what the provider calls it */
	const char *vendor; /* who sells it, for messages */
	uint64_t context;   /* tokens of a prompt */
	uint64_t max_output;
	/* pico-USD per token; the last two KNOWN_UNSAID: as price_input */
	uint64_t price_input, price_output, price_cache_read, price_cache_write;
	double speed, intelligence; /* 0..1; ours */
	bool image, audio, structured_output, forced_tool, prefill;
	bool reasoning, tools_need_effort_none;
	bool temperature_never;
	bool stops_never;       /* takes no stop sequences */
	bool completion_tokens; /* its limit is named max_completion_tokens */
	double temperature_max; /* 0: not said */
	bool nine_character_ids, user_after_tool, think_tags;
	bool audio_as_string;
	bool stream_usage;  /* false: refuses to be asked for a stream's usage, and sends it */
	bool user_id_never; /* refuses a member that says who the user is */
	const char *source; /* of the facts, and of when they are */
};

/* The model of exactly that name, NULL: not known. */
const struct known_model *known_find(struct slice name);

/* The one whose name is most like it, for messages; NULL: none is. */
const struct known_model *known_nearest(struct slice name);

/* The n-th of the table, NULL past the end. */
const struct known_model *known_at(size_t n);

#endif
