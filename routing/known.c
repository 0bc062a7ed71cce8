#include "routing/known.h"

#include "codec/base/attr.h"

enum {
	NOTHING = 0,
	IMAGE = 1 << 0,
	AUDIO = 1 << 1,
	STRUCTURED = 1 << 2,
	REASONING = 1 << 3,
	EFFORT_NONE = 1 << 4,
	NO_TEMPERATURE = 1 << 5,
	NO_STOP = 1 << 6,
	NO_FORCED_TOOL = 1 << 7,
	PREFILL = 1 << 8,
	COMPLETION_TOKENS = 1 << 9,
	NINE_CHARACTER_IDS = 1 << 10,
	NO_USER_AFTER_TOOL = 1 << 11,
	THINK_TAGS = 1 << 12,
	AUDIO_AS_STRING = 1 << 13,
	NO_USER_ID = 1 << 14,
	TEMPERATURE_TO_1_5 = 1 << 15,
	NO_STREAM_OPTIONS = 1 << 16,
};

#define SAME (-1.0)
/* USD a million = 1e6 pico-USD a token; the table has six decimal places at most. */
#define PICO(usd) ((usd) < 0 ? KNOWN_UNSAID : (uint64_t)((usd)*1e6 + 0.5))

static const struct known_model known_models[] = {
#define MODEL(its_name, its_vendor, prompt, output, in, out, read, write, fast, clever, flags, \
	      from)                                                                            \
	{ .name = its_name,                                                                    \
	  .vendor = its_vendor,                                                                \
	  .context = prompt,                                                                   \
	  .max_output = output,                                                                \
	  .price_input = PICO(in),                                                             \
	  .price_output = PICO(out),                                                           \
	  .price_cache_read = PICO(read),                                                      \
	  .price_cache_write = PICO(write),                                                    \
	  .speed = fast,                                                                       \
	  .intelligence = clever,                                                              \
	  .image = ((flags)&IMAGE) != 0,                                                       \
	  .audio = ((flags)&AUDIO) != 0,                                                       \
	  .structured_output = ((flags)&STRUCTURED) != 0,                                      \
	  .forced_tool = ((flags)&NO_FORCED_TOOL) == 0,                                        \
	  .prefill = ((flags)&PREFILL) != 0,                                                   \
	  .reasoning = ((flags)&REASONING) != 0,                                               \
	  .tools_need_effort_none = ((flags)&EFFORT_NONE) != 0,                                \
	  .temperature_never = ((flags)&NO_TEMPERATURE) != 0,                                  \
	  .temperature_max = ((flags)&TEMPERATURE_TO_1_5) != 0 ? 1.5 : 0,                      \
	  .stops_never = ((flags)&NO_STOP) != 0,                                               \
	  .completion_tokens = ((flags)&COMPLETION_TOKENS) != 0,                               \
	  .nine_character_ids = ((flags)&NINE_CHARACTER_IDS) != 0,                             \
	  .user_after_tool = ((flags)&NO_USER_AFTER_TOOL) == 0,                                \
	  .think_tags = ((flags)&THINK_TAGS) != 0,                                             \
	  .audio_as_string = ((flags)&AUDIO_AS_STRING) != 0,                                   \
	  .user_id_never = ((flags)&NO_USER_ID) != 0,                                          \
	  .stream_usage = ((flags)&NO_STREAM_OPTIONS) == 0,                                    \
	  .source = from },
#include "routing/tbl/models.h"
#undef MODEL
};

const struct known_model *known_at(size_t n)
{
	return n < COUNT_OF(known_models) ? &known_models[n] : NULL;
}

const struct known_model *known_find(struct slice name)
{
	for (size_t i = 0; i < COUNT_OF(known_models); i++)
		if (slice_eq(name, slice_str(known_models[i].name)))
			return &known_models[i];
	return NULL;
}

/* At most half of the longer one differs: families share their beginnings. */
const struct known_model *known_nearest(struct slice name)
{
	const struct known_model *nearest = NULL;
	size_t best = SIZE_MAX;

	for (size_t i = 0; i < COUNT_OF(known_models); i++) {
		const struct slice other = slice_str(known_models[i].name);
		const size_t edits = slice_edits(name, other);
		const size_t longer = name.len > other.len ? name.len : other.len;
		if (edits < best && edits <= longer / 2) {
			best = edits;
			nearest = &known_models[i];
		}
	}
	return nearest;
}
