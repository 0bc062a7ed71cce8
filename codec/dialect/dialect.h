/* dialect.h - provider formats: one const row each, and one file (contract/providers.md 2, 3, 8,
 * 9).
 *
 * encode() turns a request into the provider's body; decode() turns the provider's whole answer
 * into a result or into a classified failure. Both are deterministic and append-only: the same
 * history gives the same bytes, so provider prompt caches work. No I/O, no clock. */
#ifndef CODEC_DIALECT_DIALECT_H
#define CODEC_DIALECT_DIALECT_H

#include "codec/mcp/sampling.h"

enum max_tokens_field { MAX_TOKENS_FIELD_MAX_TOKENS, MAX_TOKENS_FIELD_COMPLETION };
enum id_rule { ID_RULE_NONE, ID_RULE_MISTRAL9 };
/* Where metadata.user_id goes: where the dialect has it (anthropic: metadata.user_id; the others:
 * safety_identifier), to `user`, as that was called before and is elsewhere, or nowhere. */
enum user_id_field { USER_ID_FIELD_OWN, USER_ID_FIELD_USER, USER_ID_FIELD_NONE };

/* What a model can do: `models[].profile` of the configuration (DESIGN 4.2). */
struct profile {
	uint32_t max_output;
	uint32_t max_stop;
	uint32_t
		max_tools; /* 0: any number. Routing passes over a model for a request with more of them */
	bool image, audio, forced_tool, structured_output, prefill;
	bool temperature_never; /* temperature: null */
	double temperature_min, temperature_max;
	enum max_tokens_field max_tokens_field;
	bool reasoning, tools_need_effort_none, replay_reasoning;
	bool text_content_as_string, user_after_tool, think_tags;
	bool audio_as_string; /* input_audio is its data alone, not an object with its format */
	bool stream_usage;    /* a stream has its usage only where stream_options asks for it */
	bool merge_same_role; /* neighbouring messages of one role have to be one */
	enum id_rule id_rule;
	enum user_id_field user_id_field;
	/* Members that every request has as well: JSON text of an object without its braces, or empty.
	 * None of them is one that a dialect writes; effort_said: one is about reasoning, which then is
	 * not written either. */
	struct slice body;
	bool effort_said;
	bool count_tokens; /* the host tells how many tokens a request has (dialect.count_path) */
	/* Learned only (enum learn): what is not sent although the rest of the profile has it. */
	bool effort_never, tool_choice_never, parallel_never, structured_never;
};

/* Whether a member of `body` of that name (raw) is about reasoning. */
bool profile_is_effort(struct slice key);

/* Whether the model thinks before it answers a request with or without `tools`, so that it may write what
 * nobody is shown: as `body` asks, or else as such a model does. */
bool profile_thinks(const struct profile *profile, bool tools);

/* The provider formats: ROW(symbol, file, name), and dialect_<file> in dialect_<file>.c (CONTRIBUTING.md
 * tells how to add one). The name is what `providers.*.dialect` says. */
#define DIALECTS(ROW)                          \
	ROW(ANTHROPIC, anthropic, "anthropic") \
	ROW(OPENAI, openai, "openai")          \
	ROW(RESPONSES, responses, "openai-responses")

#define DIALECT_ID(symbol, file, name) DIALECT_##symbol,
enum dialect_id { DIALECTS(DIALECT_ID) DIALECT_COUNT };
#undef DIALECT_ID

/* "anthropic|openai|...|": their names in that order, each with a bar behind it. */
#define DIALECT_CHOICE(symbol, file, name) name "|"
#define DIALECT_CHOICES DIALECTS(DIALECT_CHOICE)

/* What encode needs beside the request. Slices are plain text. */
struct encode_in {
	const struct sampling_request *request;
	const struct profile *profile;
	struct slice model;  /* what the provider calls it */
	uint32_t max_tokens; /* the tenant's clamp already applied; encode clamps to
				profile.max_output */
	bool final_round;    /* send toolChoice none (tool_rounds_action: final) */
	bool stream; /* ask for the answer as a stream, with its usage (codec/dialect/stream.h) */

	/* What is known of the assistant's turns with calls, in their order: a record (replay.h), absent
	 * where there is none, as behind the last one. NULL: nothing is known of any. */
	const struct slice *replay;
	uint32_t replay_count;
	struct slice
		provider;  /* its name in the settings, which records must have; with `replay` */
	bool replay_unfit; /* there was something, but it does not fit: say so */
};

/* One entry per tool whose name had to be changed for the provider. */
struct tool_alias {
	struct slice alias; /* plain */
	struct slice name;  /* raw, the server's own */
};

/* One entry per name of a property that had to be changed in a tool's schema, those of a tool together. */
struct key_alias {
	struct slice tool;  /* raw, the server's name */
	struct slice alias; /* plain */
	struct slice key;   /* raw, the server's own */
};
struct key_list {
	struct key_alias *at;
	uint32_t count, cap;
};

/* A lesson of a refusal about the model (contract/providers.md 7): profile_learn applies it, and then the
 * request may be sent once more. */
enum learn {
	LEARN_NOTHING,
#define LESSON(symbol, name, meaning) LEARN_##symbol,
#include "codec/tbl/lessons.h"
#undef LESSON
	LEARN_UNBIND_THINKING, /* of a conversation, not of the model */
	LEARN_COUNT
};

/* A set of facts. */
typedef uint16_t learn_set;
#define LEARN_BIT(fact) ((learn_set)(1 << (fact)))

/* What the answer has to be read with; lives in the request's arena, no pointers into the snapshot.
 */
struct decode_context {
	enum revision revision;
	bool tools_present;
	bool calls_forbidden; /* none was sent, or no tools: calls in the answer are stripped */
	bool schema_wanted;   /* structured output: the one tool is __schema__, to be called */
	bool native_schema;   /* it was sent as native structured output */
	bool think_tags;
	bool tool_required;    /* the request asked for a call, and it was downgraded to auto */
	bool replay_reasoning; /* the model wants its reasoning back: it is kept (result.replay) */
	/* Whoever asked gets the provider's bytes. So only what they cost, how they end and which calls they have is
	 * wanted here, and what MCP could not take is no failure (answer_odd). */
	bool passed;
	learn_set teachable;          /* the facts that would change what was sent */
	struct slice requested_model; /* plain */
	struct slice *tool_names;     /* raw: as offered */
	struct tool_alias *aliases;
	uint32_t tool_count, alias_count;
	const struct key_list *keys; /* renamed in the arguments of calls; NULL: none */
	struct slice *emulate_stop;  /* raw */
	uint32_t emulate_stop_count;
	struct slice audio_format; /* plain, e.g. "wav": audio was asked for; absent: it never is */
};

/* What of a body an answer is bound to (replay.h), as offsets: the tools, and system and messages, which
 * stand together and go on to the closing brackets (struct dialect). */
struct encode_marks {
	uint32_t tools, tools_end; /* both 0: there are no tools */
	uint32_t said;
};

struct encode_out {
	struct gather body;
	struct encode_marks marks;
	uint32_t max_tokens; /* what was sent */
	struct decode_context decode;
	adjust_set adjustments;
	uint32_t images;   /* images in the body */
	bool replayed;     /* something private of earlier turns is in the body */
	bool replay_unfit; /* it was to be, and did not fit: dialect_encode begins anew without it */
};

/* What a key may still use of a limit, as the answer's headers say (contract/providers.md 2, 3). */
enum rate_kind { RATE_REQUESTS, RATE_TOKENS, RATE_INPUT_TOKENS, RATE_OUTPUT_TOKENS, RATE_KINDS };
struct rate_header {
	struct slice limit, remaining, reset;
};

/* Headers of a provider's answer that matter; absent when not sent. Plain text. */
struct provider_headers {
	struct slice date, retry_after, retry_after_ms, should_retry, request_id;
	struct slice content_type;
	const struct rate_header *rates; /* RATE_KINDS of them; NULL: none was sent */
};

struct provider_answer {
	uint16_t status;
	struct provider_headers headers;
	struct slice body;
	uint64_t wall_s; /* now, seconds since the epoch: for an HTTP date without a Date header */
	uint8_t chance[12]; /* random: for the ids of calls when the answer itself has no id */
};

/* Applies a fact to the profile that a request is encoded with. False when the profile was so already,
 * or knows no such thing: sending the request again would change nothing. */
bool profile_learn(struct profile *profile, enum learn fact);

/* "no_temperature"; NULL for what is no fact about a model. */
const char *learn_name(enum learn fact);

/* Whether a refusal of this request says something about others: its value of what was refused is one that
 * every model takes that knows it at all. */
bool learn_is_fair(const struct sampling_request *request, enum learn fact);

/* The same for each fact of a set. */
void profile_learn_all(struct profile *profile, learn_set facts);

/* Whether the same request may be sent again (contract/providers.md 2, 3, 7), from the least. */
enum retry {
	RETRY_NEVER,     /* every provider would refuse it, or we have no memory for it */
	RETRY_ELSEWHERE, /* what is to blame stays so for now, another of its kind may do */
	RETRY_ONCE,      /* the model's slip: once more, with whatever */
	RETRY_AGAIN,     /* with whatever; with the same only after retry_after_ms */
};

/* What a failure is counted against, and what therefore has to be another one under RETRY_ELSEWHERE. */
enum blame {
	BLAME_REQUEST,  /* nothing of the provider's; our own want of memory, too */
	BLAME_KEY,      /* its rate, its money, its rights */
	BLAME_MODEL,    /* the provider does not know it, or not for so much */
	BLAME_ENDPOINT, /* overloaded, out of order, or not what it should be */
	BLAME_ANSWER,   /* what the model wrote */
};

struct provider_failure {
	enum err err;       /* ERR_PROVIDER_*, ERR_CONTEXT_WINDOW, or ERR_BUSY (our memory) */
	const char *detail; /* what exactly, in our own words; static; NULL: the row's text */
	uint16_t status;
	enum retry retry;
	enum blame blame;
	bool retryable;          /* what the caller is told: RETRY_ONCE or more */
	int64_t retry_after_ms;  /* < 0: not said */
	struct slice request_id; /* plain, in the arena; absent when none */
	enum learn learn;   /* only up to RETRY_ELSEWHERE: the model will not take it as it is */
	bool learn_lasting; /* it is said of the parameter itself, not of its value */
	bool usage_known;   /* an error answer never carries one: a full refund is due when false */
	struct usage usage; /* of an unusable 200 answer, which was paid for all the same */
};

struct dialect {
	const char *name; /* as in `providers.*.dialect` */
	const char *path; /* appended to the endpoint's URL */
	const char
		*count_path; /* behind that: where a request's tokens are counted; NULL: nowhere */
	enum dialect_id id;
	const struct stream_dialect *stream; /* how an answer streams: codec/dialect/stream.h */
	const char *key_header;              /* what mostly stands before the key: "x-api-key: " */
	struct slice version_header; /* the same of `version`; absent: the format knows none */
	const char *version;         /* what is sent where the settings name none; NULL likewise */

	uint8_t closing; /* bytes of a body behind its last message */

	/* What a model of this dialect can do that the settings say nothing of, over what is common to
	 * all; `version` is the one in force, absent when the format knows none. */
	void (*defaults)(struct profile *profile, struct slice version);

	/* ERR_OK; ERR_CONTENT_UNSUPPORTED, ERR_MESSAGES_EMPTY, ERR_TOOL (names that become the
	 * same, schemas too large to fold) with *fault; ERR_BUSY. */
	enum err (*encode)(const struct encode_in *in, struct json_work *work, struct arena *into,
			   struct encode_out *out, struct fault *fault);

	/* ERR_OK: *result. Else the error, and *failure has its particulars. Slices of *result
	 * point into the answer's body or `into`. */
	enum err (*decode)(const struct decode_context *context,
			   const struct provider_answer *answer, struct json_work *work,
			   struct arena *into, struct sampling_result *result,
			   struct provider_failure *failure);
};

#endif
