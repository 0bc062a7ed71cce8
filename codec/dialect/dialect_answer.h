/* dialect_answer.h - what decoding has in common in all dialects; private to codec/.
 *
 * A dialect collects the answer's blocks in order, says how the answer stopped, and calls
 * answer_finish, which applies the rules of contract/providers.md 8.2 to 8.4. Everything collected
 * is a raw string or JSON text of the body, but for arguments that a string said. The first error is
 * kept and makes the rest no-ops. */
#ifndef CODEC_DIALECT_DIALECT_ANSWER_H
#define CODEC_DIALECT_DIALECT_ANSWER_H

#include "codec/dialect/dialect.h"
#include "codec/json/json_fields.h"
#include "codec/json/json_mend.h"

/* How the provider says that the answer stopped. */
enum answer_stop {
	ANSWER_END,      /* it was complete, or calls tools; this and the next stay in front */
	ANSWER_SEQUENCE, /* a stop sequence matched */
	ANSWER_LENGTH,   /* out of tokens: the last call may be cut */
	ANSWER_REFUSED,
	ANSWER_OTHER,
	ANSWER_BROKEN,   /* the host failed within it: what there is, is no answer */
	ANSWER_BAD_CALL, /* the model wrote a call that the host could not read */
};

/* How an answer with that reason, raw, stopped by the words of all hosts (dialect_answer_stop.c): ANSWER_OTHER where
 * nobody knows it. For what a dialect does not know itself. */
enum answer_stop answer_stop_of(struct slice reason);

/* Whether an answer that stopped so may lack what others have to have. */
static inline bool answer_may_be_void(enum answer_stop stop)
{
	return stop == ANSWER_REFUSED || stop == ANSWER_BROKEN || stop == ANSWER_BAD_CALL;
}

/* Of two reasons that one answer gives, in this order: whether the second one counts. Hosts repeat their reason in
 * another chunk, or a weaker one behind it; that an answer is complete says nothing beside another reason. */
static inline bool answer_stop_says_more(enum answer_stop first, enum answer_stop second)
{
	if (first == ANSWER_BROKEN) /* nothing mends that */
		return false;
	return first <= ANSWER_SEQUENCE ? second > first
					: second == ANSWER_REFUSED || second == ANSWER_BROKEN;
}

enum { ANSWER_KEY_MAX = 32 };

/* What a call says comes back in the next request, below six containers, and must be readable there. An event has it
 * below two, an answer below more. */
enum { ANSWER_ARGS_DEPTH_MAX = JSON_DEPTH_MAX - 6, ANSWER_DEPTH_MAX = ANSWER_ARGS_DEPTH_MAX + 2 };
extern const struct json_limits answer_json;      /* of an answer or an event */
extern const struct json_limits answer_args_json; /* of a call's arguments in a string */

struct answer_block {
	enum { ANSWER_TEXT, ANSWER_CALL, ANSWER_AUDIO } kind;
	struct slice
		text; /* TEXT: raw; AUDIO: base64, raw; CALL: what goes back with it, JSON or absent */
	struct slice id, name; /* CALL: raw; id absent when there is none */
	struct slice args;     /* CALL: JSON value, absent when there is none; or, */
	bool args_unescaped;   /* what a string says, in the arena: perhaps JSON */
};

struct answer {
	const struct decode_context *context;
	const struct provider_answer *from;
	struct json_work *work;
	struct arena *into;
	struct answer_block *blocks;
	uint32_t count, cap;
	struct slice id, model;   /* raw, absent when not said */
	struct slice explanation; /* of a refusal: raw, or absent */
	struct usage usage;
	enum answer_stop stop;
	bool last_call_cut; /* with ANSWER_LENGTH: a call at the very end is incomplete by rule */
	/* of what the provider wants back: */
	bool private;      /* there is something */
	bool unkeepable;   /* and something with it that may not be kept */
	bool ends_private; /* the last block is the provider's own, and so it is what a limit cut */
	bool replay_has_ids; /* of the calls, which therefore have to be the answer's own */
	bool renamed;        /* a call was given another id */
	struct slice args_last,
		args_plain;  /* answer_take_args: what it took last, and what that says */
	struct slice replay; /* it, if there are calls (result.replay); absent: nothing */
	const struct json_mend
		*mended; /* the body is a mended copy (answer_mend); NULL: it is as it came */
	adjust_set adjustments;
	enum err fault; /* of the reader of the body */
	enum err err;
	const char *detail;
	char key[ANSWER_KEY_MAX]; /* answer_next_key's */
};

void answer_begin(struct answer *a, const struct decode_context *context,
		  const struct provider_answer *from, struct json_work *work, struct arena *into);

/* The answer cannot be used: `detail` is static. */
void answer_fail(struct answer *a, const char *detail);

/* The same, but for an answer that whoever asked gets as it is: nobody here uses what is wrong with it. */
void answer_odd(struct answer *a, const char *detail);

/* The same for our own want of memory: ERR_BUSY. */
void answer_no_memory(struct answer *a);

/* The same for the state of the reader: its first error, if any, becomes the answer's. */
void answer_check(struct answer *a, const struct json_reader *r);

/* Whether the answer failed because its body is no strict JSON, and can be mended: `told`, the caller's, is the same
 * answer with a body that is, and the answer begins anew with it. At most once per answer. */
MUST_USE bool answer_mend(struct answer *a, struct provider_answer *told);

/* The arguments of a call, a JSON value of a text in which members were removed: they are told of, and what was
 * removed leaves nothing. `text` is the beginning of that text. */
struct slice answer_mended_args(struct answer *a, const struct json_mend *mended, const char *text,
				struct slice args);

void answer_add(struct answer *a, struct answer_block block);

static inline void answer_adjust(struct answer *a, enum adjustment adjustment)
{
	a->adjustments |= ADJUST_BIT(adjustment);
}

/* The answer's id, or 96 random bits in hex where it has none: raw; absent, and the answer has failed, when
 * memory is exhausted. */
struct slice answer_id(struct answer *a);

/* Gives the calls the names that the server knows, and each an id of its own (dialect_answer_names.c). */
void answer_name_calls(struct answer *a);

/* What lies between these offsets of the body is what the provider wants back, calls and ids included. */
static inline void answer_keep_text(struct answer *a, uint32_t from, uint32_t to)
{
	a->replay = slice_of(a->from->body.at + from, to - from);
	a->replay_has_ids = true;
}

/* Blocks to result, or failure (failure_unusable). */
MUST_USE enum err answer_finish(struct answer *a, struct sampling_result *result,
				struct provider_failure *failure);

/* An error answer: classified (failure_classify), or a prompt filter's refusal, which is a result. */
MUST_USE enum err answer_from_failure(struct answer *a, struct sampling_result *result,
				      struct provider_failure *failure);

/* ---- reading members of any type ----
 *
 *	struct json_fields fields = JSON_FIELDS(names);
 *	uint32_t member;
 *
 *	if (!answer_enter(r))
 *		return;
 *	while (answer_next(r, &fields, &member))
 *		switch (member) { ... default: answer_skip(r); }
 *
 * What comes in a type that nobody expects is skipped, as an answer of a host that adds things. */

static inline bool answer_is_at(const struct json_reader *r, char first)
{
	return r->at < r->end && *r->at == first;
}

/* Enters the value that is next if it is an object, else skips it: false. */
static inline bool answer_enter(struct json_reader *r)
{
	if (answer_is_at(r, '{') && r->depth < r->limits.depth_max) {
		reader_enter(r, true, r->at);
		return true;
	}
	if (json_peek(r) == JSON_OBJECT)
		return json_enter_object(r);
	(void)json_skip(r, NULL);
	return false;
}

/* The value of the member whose colon is at `colon`. */
static inline void answer_go_to_value(struct json_reader *r, const char *colon)
{
	const char *at = colon + 1;

	r->fresh = false;
	r->at = r->due = (unsigned char)*at > ' ' ? at : scan_space(at, r->end);
}

/* Steps over `literal`, whole members with the comma before each, if the text goes on so. `members` are
 * their bits, `next` is the likeliest one behind them; none of them may have been before. */
static inline bool answer_guess(struct json_reader *r, struct json_fields *fields,
				struct slice literal, uint32_t members, uint32_t next)
{
	if ((fields->seen & members) != 0 || !json_guess(r, literal.at, literal.len))
		return false;
	fields->seen |= members;
	fields->next = next;
	return true;
}

/* Whether the text at `at` is the quoted name and a colon. */
static inline bool answer_name_at(const struct json_reader *r, const struct json_name *name,
				  const char *at)
{
	size_t left = (size_t)(r->end - at), len = name->len + (size_t)2;

	if (left <= len + 1 || at[len] != ':')
		return false;
	if (left < FIELD_NAME_MAX + 2)
		return memcmp(at, name->quoted, len) == 0;
	return json_name_at(name, at, scan_load8(at));
}

/* The next member of the object: its index in the table, or FIELD_OTHER; false at the end. The end and
 * the member that is next in the table are looked for here, everything else by json_next_field. */
static inline __attribute__((always_inline)) bool answer_next(struct json_reader *r,
							      struct json_fields *fields,
							      uint32_t *member)
{
	const struct json_name *name = &fields->names[fields->next];
	const char *at = r->at;
	uint32_t bit = (uint32_t)1 << fields->next;
	struct slice other;

	if (at < r->end && at != r->due) {
		if (*at == '}') {
			reader_leave(r, at);
			return false;
		}
		const char *quote = *at == ',' ? at + 1 : r->fresh ? at : NULL;
		if (quote != NULL && (fields->seen & bit) == 0 && answer_name_at(r, name, quote)) {
			*member = fields->next;
			fields->seen |= bit;
			fields->next = *member + 1 < fields->count ? *member + 1 : 0;
			answer_go_to_value(r, quote + name->len + 2);
			return true;
		}
	}
	*member = json_next_field(r, fields, &other);
	return *member != FIELD_END;
}

/* The next value when it is a number of at least 0, a fraction rounded up: true. Else it is skipped and *out stays. */
bool answer_take_count(struct json_reader *r, uint64_t *out);

/* Skips the next value. */
static inline void answer_skip(struct json_reader *r)
{
	struct slice raw;
	uint64_t count;

	if (answer_is_at(r, '"'))
		(void)json_take_string(r, &raw);
	else if (!json_guess_lit(r, "null"))
		(void)answer_take_count(r, &count);
}

/* The next value when it is a string, else it is skipped and *out stays as it is. */
static inline void answer_take_string(struct json_reader *r, struct slice *out)
{
	if (answer_is_at(r, '"') || json_peek(r) == JSON_STRING)
		(void)json_take_string(r, out);
	else
		(void)json_skip(r, NULL);
}

/* The arguments of a call, which are next: mostly a string. Those taken last may be taken again. */
void answer_take_args(struct answer *a, struct json_reader *r, struct answer_block *call);

/* Of the object that is next, if it is one, the member of that name: a whole number, or a string. *out
 * stays as it is where there is none. */
void answer_take_count_of(struct json_reader *r, const struct json_name *name, uint64_t *out);
void answer_take_string_of(struct json_reader *r, const struct json_name *name, struct slice *out);

/* Enters the value that is next if it is an array, else skips it: false. */
static inline bool answer_enter_list(struct json_reader *r)
{
	if (json_peek(r) == JSON_ARRAY)
		return json_enter_array(r);
	(void)json_skip(r, NULL);
	return false;
}

/* What a provider counts in `total` beyond input and output, all three of which it has said. It is input where the
 * cache's counters are not part of `input`, which shows in a rest of just as many or in an input that is less;
 * else it is reasoning beside the output. */
void answer_add_rest(struct usage *usage, uint64_t total);

/* Brings counters into normal form: what is part of another counter is not above it. */
void answer_set_usage(struct answer *a, struct usage usage);

/* ---- the same without a table, where a member is rare ---- */

/* json_next_key with the key in plain, until the next one is asked for; absent when it is an escaped
 * one that is longer than any that matters. */
bool answer_next_key(struct answer *a, struct json_reader *r, struct slice *key);

#endif
