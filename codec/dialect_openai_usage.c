/* dialect_openai_usage.c - the counters of Chat Completions answers and streams. */
#include "codec/dialect_openai.h"

static void read_prompt_details(struct json_reader *r, struct usage *usage)
{
	enum { CACHED, AUDIO, WRITTEN };
	static const struct json_name names[] = {
		[CACHED] = JSON_NAME("cached_tokens"),
		[AUDIO] = JSON_NAME("audio_tokens"),
		[WRITTEN] = JSON_NAME("cache_write_tokens"),
	};
	struct json_fields fields = JSON_FIELDS(names);
	uint32_t member;

	if (json_guess_lit(r, "{\"cached_tokens\":0,\"audio_tokens\":0}") || !answer_enter(r))
		return;
	while (answer_next(r, &fields, &member))
		if (member == CACHED)
			(void)answer_take_count(r, &usage->cache_read);
		else if (member == WRITTEN)
			(void)answer_take_count(r, &usage->cache_write);
		else
			answer_skip(r);
}

static void read_completion_details(struct json_reader *r, struct usage *usage)
{
	enum { REASONING, AUDIO, ACCEPTED, REJECTED };
	static const struct json_name names[] = {
		[REASONING] = JSON_NAME("reasoning_tokens"),
		[AUDIO] = JSON_NAME("audio_tokens"),
		[ACCEPTED] = JSON_NAME("accepted_prediction_tokens"),
		[REJECTED] = JSON_NAME("rejected_prediction_tokens"),
	};
	struct json_fields fields = JSON_FIELDS(names);
	uint32_t member;

	if (json_guess_lit(r, "{\"reasoning_tokens\":0,\"audio_tokens\":0,"
			      "\"accepted_prediction_tokens\":0,"
			      "\"rejected_prediction_tokens\":0}") ||
	    !answer_enter(r))
		return;
	while (answer_next(r, &fields, &member))
		if (member == REASONING)
			(void)answer_take_count(r, &usage->reasoning);
		else
			answer_skip(r);
}

static void read_counters(struct json_reader *r, struct usage *usage, uint64_t *hits)
{
	enum { INPUT, OUTPUT, TOTAL, INPUT_DETAILS, OUTPUT_DETAILS, HITS };
	static const struct json_name names[] = {
		[INPUT] = JSON_NAME("prompt_tokens"),
		[OUTPUT] = JSON_NAME("completion_tokens"),
		[TOTAL] = JSON_NAME("total_tokens"),
		[INPUT_DETAILS] = JSON_NAME("prompt_tokens_details"),
		[OUTPUT_DETAILS] = JSON_NAME("completion_tokens_details"),
		[HITS] = JSON_NAME("prompt_cache_hit_tokens"),
	};
	struct json_fields fields = JSON_FIELDS(names);
	uint32_t member;

	while (answer_next(r, &fields, &member))
		switch (member) {
		case INPUT:
			usage->known |= answer_take_count(r, &usage->input);
			break;
		case OUTPUT:
			usage->known |= answer_take_count(r, &usage->output);
			break;
		case HITS:
			(void)answer_take_count(r, hits);
			break;
		case INPUT_DETAILS:
			read_prompt_details(r, usage);
			break;
		case OUTPUT_DETAILS:
			read_completion_details(r, usage);
			break;
		default:
			answer_skip(r);
		}
}

/* Reads counters as OpenAI writes them. False: they are written otherwise, nothing happened. */
static bool guess_counters(struct json_reader *r, struct usage *usage)
{
	const char *brace = r->at;
	struct usage read = *usage;
	uint64_t other;

	if (r->depth + 2 <= r->limits.depth_max && json_guess_lit(r, "{\"prompt_tokens\":") &&
	    json_guess_uint(r, &read.input) && json_guess_lit(r, ",\"completion_tokens\":") &&
	    json_guess_uint(r, &read.output) && json_guess_lit(r, ",\"total_tokens\":") &&
	    json_guess_uint(r, &other) &&
	    json_guess_lit(r, ",\"prompt_tokens_details\":{\"cached_tokens\":") &&
	    json_guess_uint(r, &read.cache_read) &&
	    json_guess_lit(r, ",\"audio_tokens\":0},\"completion_tokens_details\":"
			      "{\"reasoning_tokens\":") &&
	    json_guess_uint(r, &read.reasoning) &&
	    json_guess_lit(r, ",\"audio_tokens\":0,\"accepted_prediction_tokens\":0,"
			      "\"rejected_prediction_tokens\":0}}")) {
		read.known = true;
		*usage = read;
		return true;
	}
	r->at = brace;
	return false;
}

/* Input and output are whole here. DeepSeek counts cache hits in a member of its own. */
void openai_read_usage(struct answer *a, struct json_reader *r)
{
	struct usage usage = { 0 };
	uint64_t hits = 0;

	if (!guess_counters(r, &usage)) {
		if (!answer_enter(r))
			return;
		read_counters(r, &usage, &hits);
	}
	if (usage.cache_read == 0)
		usage.cache_read = hits;
	if (usage.known)
		answer_set_usage(a, usage);
}

/* Groq repeats its usage in there, and is the only place on some answers. */
void openai_read_x_groq(struct answer *a, struct json_reader *r)
{
	static const struct json_name names[] = { JSON_NAME("usage") };
	struct json_fields fields = JSON_FIELDS(names);
	uint32_t member;

	if (a->usage.known) {
		answer_skip(r);
		return;
	}
	if (!answer_enter(r))
		return;
	while (answer_next(r, &fields, &member))
		if (member == 0)
			openai_read_usage(a, r);
		else
			answer_skip(r);
}
