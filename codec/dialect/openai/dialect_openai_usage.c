/* dialect_openai_usage.c - the counters of Chat Completions answers and streams. */
#include "codec/dialect/openai/dialect_openai.h"

/* The counters that hosts send, and where they stand. */
struct counted {
	struct usage usage;
	uint64_t total;
	uint64_t hits; /* of the cache, beside the details */
	uint32_t said; /* 1 << INPUT and the like */
};

static void read_prompt_details(struct json_reader *r, struct usage *usage)
{
	enum { CACHED, AUDIO, WRITTEN, CREATED };
	static const struct json_name names[] = {
		[CACHED] = JSON_NAME("cached_tokens"),
		[AUDIO] = JSON_NAME("audio_tokens"),
		[WRITTEN] = JSON_NAME("cache_write_tokens"),
		[CREATED] = JSON_NAME("cache_creation_tokens"), /* LiteLLM's word for it */
	};
	struct json_fields fields = JSON_FIELDS(names);
	uint32_t member;

	if (json_guess_lit(r, "{\"cached_tokens\":0,\"audio_tokens\":0}") || !answer_enter(r))
		return;
	while (answer_next(r, &fields, &member))
		if (member == CACHED)
			(void)answer_take_count(r, &usage->cache_read);
		else if (member == WRITTEN || member == CREATED)
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

enum { INPUT, OUTPUT, TOTAL, INPUT_DETAILS, OUTPUT_DETAILS, HITS, CACHED, READ, CREATED };
enum { ALL_SAID = 1 << INPUT | 1 << OUTPUT | 1 << TOTAL };

static void take(struct json_reader *r, struct counted *c, uint32_t member, uint64_t *out)
{
	if (answer_take_count(r, out))
		c->said |= (uint32_t)1 << member;
}

/* Hosts that say it in several ways say 0 in those that are not theirs. */
static void take_hits(struct json_reader *r, struct counted *c)
{
	uint64_t hits = 0;

	(void)answer_take_count(r, &hits);
	if (hits > c->hits)
		c->hits = hits;
}

static void read_counters(struct json_reader *r, struct counted *c)
{
	static const struct json_name names[] = {
		[INPUT] = JSON_NAME("prompt_tokens"),
		[OUTPUT] = JSON_NAME("completion_tokens"),
		[TOTAL] = JSON_NAME("total_tokens"),
		[INPUT_DETAILS] = JSON_NAME("prompt_tokens_details"),
		[OUTPUT_DETAILS] = JSON_NAME("completion_tokens_details"),
		[HITS] = JSON_NAME("prompt_cache_hit_tokens"), /* DeepSeek */
		[CACHED] = JSON_NAME("cached_tokens"),         /* Kimi */
		[READ] = JSON_NAME("cache_read_input_tokens"), /* Claude behind this format */
		[CREATED] = JSON_NAME("cache_creation_input_tokens"),
	};
	struct json_fields fields = JSON_FIELDS(names);
	uint32_t member;

	while (answer_next(r, &fields, &member))
		switch (member) {
		case INPUT:
			take(r, c, INPUT, &c->usage.input);
			break;
		case OUTPUT:
			take(r, c, OUTPUT, &c->usage.output);
			break;
		case TOTAL:
			take(r, c, TOTAL, &c->total);
			break;
		case HITS:
		case CACHED:
		case READ:
			take_hits(r, c);
			break;
		case CREATED:
			(void)answer_take_count(r, &c->usage.cache_write);
			break;
		case INPUT_DETAILS:
			read_prompt_details(r, &c->usage);
			break;
		case OUTPUT_DETAILS:
			read_completion_details(r, &c->usage);
			break;
		default:
			answer_skip(r);
		}
	c->usage.known = (c->said & (1 << INPUT | 1 << OUTPUT)) != 0;
	if (c->usage.cache_read == 0)
		c->usage.cache_read = c->hits;
}

/* Reads counters as OpenAI writes them. False: they are written otherwise, nothing happened. */
static bool guess_counters(struct json_reader *r, struct counted *c)
{
	const char *brace = r->at;
	struct usage read = { .known = true };
	uint64_t total;

	if (r->depth + 2 <= r->limits.depth_max && json_guess_lit(r, "{\"prompt_tokens\":") &&
	    json_guess_uint(r, &read.input) && json_guess_lit(r, ",\"completion_tokens\":") &&
	    json_guess_uint(r, &read.output) && json_guess_lit(r, ",\"total_tokens\":") &&
	    json_guess_uint(r, &total) &&
	    json_guess_lit(r, ",\"prompt_tokens_details\":{\"cached_tokens\":") &&
	    json_guess_uint(r, &read.cache_read) &&
	    json_guess_lit(r, ",\"audio_tokens\":0},\"completion_tokens_details\":"
			      "{\"reasoning_tokens\":") &&
	    json_guess_uint(r, &read.reasoning) &&
	    json_guess_lit(r, ",\"audio_tokens\":0,\"accepted_prediction_tokens\":0,"
			      "\"rejected_prediction_tokens\":0}}")) {
		c->usage = read;
		c->total = total;
		c->said = ALL_SAID;
		return true;
	}
	r->at = brace;
	return false;
}

/* Input and output are whole, as a rule; what hosts count beside them is in the total. */
void openai_read_usage(struct answer *a, struct json_reader *r)
{
	struct counted c = { .usage = { 0 } };

	if (!guess_counters(r, &c)) {
		if (!answer_enter(r))
			return;
		read_counters(r, &c);
	}
	if ((c.said & ALL_SAID) == ALL_SAID)
		answer_add_rest(&c.usage, c.total);
	if (c.usage.known)
		answer_set_usage(a, c.usage);
}

void openai_read_choice_usage(struct answer *a, struct json_reader *r)
{
	if (a->usage.known)
		answer_skip(r);
	else
		openai_read_usage(a, r);
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
