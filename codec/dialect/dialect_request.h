/* dialect_request.h - what encoding has in common in all dialects; private to codec/.
 *
 * encoder_begin decides everything that is decided once per request (the plan); the dialect then
 * writes e->out.body in one pass and calls encoder_end. Exhausted memory is sticky in e->failed and
 * in the gather list, so that writing needs no checks in between. */
#ifndef CODEC_DIALECT_DIALECT_REQUEST_H
#define CODEC_DIALECT_DIALECT_REQUEST_H

#include "codec/dialect/dialect.h"
#include "codec/dialect/dialect_mend.h"
#include "codec/dialect/dialect_names.h"
#include "codec/dialect/dialect_text.h"

/* How the dialects differ in what is decided here. */
struct request_rules {
	bool blank_refused;   /* text and stop sequences of white space only are errors there */
	bool parallel_inside; /* one call at a time is said within tool_choice */
	bool stop_unknown;    /* there are no stop sequences: all are searched in the answer */
	uint8_t odd;          /* enum schema_odd: what in schemas is refused there */
	enum call_id_rule id_rule;
	size_t user_id_max; /* bytes */
	/* What goes back of earlier answers (dialect_replay.h): the dialect's name, how its content
	 * begins, and what is said where it does not fit. */
	const char *dialect;
	char replay_opens;
	enum adjustment not_replayed;
	/* Structured output: *out is the schema to send, absent when it cannot be native. False when
	 * memory is exhausted. */
	bool (*native)(struct slice schema, const struct json_work *work, struct arena *into,
		       struct slice *out, bool *moved);
};

struct request_plan {
	struct slice temperature; /* number text; absent: none is sent */
	struct slice *stop;       /* raw: those that are sent */
	uint32_t stop_count;
	struct slice user_id; /* raw, or absent */
	bool tools;           /* the request's tools are sent */
	enum tool_mode mode;  /* how they may be used; DEFAULT: nothing is said */
	bool forced_schema;   /* REQUIRED, and the one tool is __schema__ */
	bool no_parallel;
	struct slice native; /* the schema of native structured output, or absent */
};

struct encoder {
	const struct encode_in *in;
	const struct sampling_request *request;
	const struct profile *profile;
	const struct request_rules *rules;
	struct json_work *work;
	struct arena *into;
	struct fault *fault;
	struct request_plan plan;
	struct tool_names tools;
	struct key_names *keys; /* NULL: no schema was mended */
	struct call_ids ids;
	struct encode_out out;
	struct encoder_replay *replay; /* NULL: nothing of earlier answers is put back */
	size_t fold_budget;            /* bytes of schemas that may still be folded */
	bool fold_refused;
	bool counted_anew; /* messages have other indices than the caller's */
	bool failed;       /* memory is exhausted */
};

void encoder_begin(struct encoder *e, const struct request_rules *rules, const struct encode_in *in,
		   struct json_work *work, struct arena *into, struct fault *fault);

/* Whether the result is whole: then *out is written. */
MUST_USE enum err encoder_end(struct encoder *e, struct encode_out *out);

/* Fills the fault: `detail` static or in the arena; `message` is an index into request->messages. Its path is the
 * message's, or that of a block of it where `block` is not NULL. */
enum err encoder_refuse(struct encoder *e, enum err err, uint32_t message,
			const struct block *block, const char *detail);

static inline void encoder_adjust(struct encoder *e, enum adjustment adjustment)
{
	e->out.adjustments |= ADJUST_BIT(adjustment);
}

/* What was just written can be left out, or written otherwise, should it be refused. */
static inline void encoder_may_learn(struct encoder *e, enum learn fact)
{
	e->out.decode.teachable |= LEARN_BIT(fact);
}

/* Whether a text has to be left out: "" everywhere, white space where the dialect refuses it. */
static inline bool encoder_drops(const struct encoder *e, struct slice raw)
{
	if (raw.len == 0)
		return true;
	/* nearly every text begins with a letter */
	return ((signed char)raw.at[0] <= ' ' || raw.at[0] == '\\') && e->rules->blank_refused &&
	       text_blank(raw);
}

/* Whether a block is a text that has to be left out. */
static inline bool encoder_drops_block(const struct encoder *e, const struct block *block)
{
	return block->type == BLOCK_TEXT && encoder_drops(e, block->text.text);
}

/* Whether a message is of tool results: sampling_read lets nothing else be beside them. */
static inline bool encoder_holds_results(const struct encoder *e, const struct message *message)
{
	return message->count != 0 && e->request->blocks[message->first].type == BLOCK_TOOL_RESULT;
}

/* Whether the block is an image that the model takes: jpeg, png, gif or webp. */
bool encoder_takes_image(const struct encoder *e, const struct block *block);

/* ERR_CONTENT_UNSUPPORTED for an image or audio block of a user message that the model does not take,
 * saying which type and what it takes; `audio` are the types of audio, static, absent when it takes
 * none. */
enum err encoder_refuse_media(struct encoder *e, const struct block *block, uint32_t message,
			      struct slice audio);

/* ---- pieces of a body ---- */

/* encoder_input where there are such names. */
struct slice encoder_input_renamed(struct encoder *e, const struct block *call);

/* "[image omitted: image/png]" and its kin, as the inside of a JSON string. */
void encoder_put_placeholder(struct encoder *e, const struct block *block);

/* The text of a text block or text resource in a tool result; absent for every other block. */
struct slice encoder_result_text(const struct block *block);

/* Whether a block of a tool result is a text that has to be left out. */
static inline bool encoder_drops_inner(const struct encoder *e, const struct block *inner)
{
	const struct slice text = encoder_result_text(inner);

	return !slice_absent(text) && encoder_drops(e, text);
}

/* What a block of a tool result is as text, as the inside of a JSON string. */
void encoder_put_result_text(struct encoder *e, const struct block *block);

/* The first block of a tool result's content; NULL when it has none. */
const struct block *encoder_inner(const struct encoder *e, const struct block *result);

/* Whether nothing would be left of a tool result's content; structuredContent counts only then. */
bool encoder_result_empty(const struct encoder *e, const struct block *result);

/* The tool's schema without what the dialect refuses (dialect_mend.h), and its root folded (dialect_schema.h). */
void encoder_put_schema(struct encoder *e, const struct tool *tool, bool want_properties);

/* The input of a call in the history, with the names of properties that the tool's schema was sent with. */
static inline struct slice encoder_input(struct encoder *e, const struct block *call)
{
	return e->keys == NULL ? call->use.input : encoder_input_renamed(e, call);
}

/* The tool's name as a JSON string. */
void encoder_put_name(struct encoder *e, struct slice raw);

/* The limit of tokens as Chat Completions has it, by the name that the model takes. */
void encoder_put_max_tokens(struct encoder *e);

/* Whether the body says how tools may be used, and that one is to be called at a time; where the model takes
 * neither, an adjustment says so. For a request whose tools are sent. */
bool encoder_says_choice(struct encoder *e);
bool encoder_says_one_at_a_time(struct encoder *e);

/* How tools may be used, as both of OpenAI's formats say it; nothing where the plan says nothing. `effort`: the
 * member that asks for no effort, written where tools need that. */
void encoder_put_choice(struct encoder *e, struct slice effort);

/* A call's id as a JSON string, of the call itself and of its result. */
void encoder_put_call_id(struct encoder *e, struct slice raw);
void encoder_put_result_id(struct encoder *e, struct slice raw);

/* The user's id as OpenAI's formats have it, with its comma; nothing where none is sent. */
void encoder_put_user_id(struct encoder *e);

/* The profile's own members, with their comma. */
void encoder_put_body(struct encoder *e);

/* [,"stop":["a","b"]] under that key, with its comma; nothing when there are none. */
void encoder_put_stop(struct encoder *e, struct slice key);

/* [,"temperature":N]; nothing where none is sent. */
static inline void encoder_put_temperature(struct encoder *e)
{
	if (slice_absent(e->plan.temperature))
		return;
	gather_lit(&e->out.body, ",\"temperature\":");
	gather_raw(&e->out.body, e->plan.temperature);
}

/* A format's words around the parts of a tool. */
struct tool_words {
	struct slice name, schema, end; /* in front of the name and of the schema, and behind */
	bool properties;                /* a schema needs `properties` there */
};

/* [,"tools":[...]], and where it is in the body. Inline, so that the words are constants. */
static inline __attribute__((always_inline)) void encoder_put_tools(struct encoder *e,
								    const struct tool_words *words)
{
	const struct sampling_request *request = e->request;
	struct gather *g = &e->out.body;

	e->out.marks.tools = (uint32_t)gather_offset(g);
	gather_lit(g, ",\"tools\":[");
	for (uint32_t i = 0; i < request->tool_count; i++) {
		const struct tool *tool = &request->tools[i];
		if (i != 0)
			gather_lit(g, ",");
		gather_const(g, words->name.at, words->name.len);
		encoder_put_name(e, tool->name);
		if (tool->description.len != 0) {
			gather_lit(g, ",\"description\":");
			gather_str(g, tool->description);
		}
		gather_const(g, words->schema.at, words->schema.len);
		encoder_put_schema(e, tool, words->properties);
		gather_const(g, words->end.at, words->end.len);
	}
	gather_lit(g, "]");
	e->out.marks.tools_end = (uint32_t)gather_offset(g);
}

#endif
