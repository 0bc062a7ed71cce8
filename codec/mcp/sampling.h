/* sampling.h - createMessage request and result, as typed slices of the body.
 *
 * The whole meaning of a request in MCP's terms (contract/mcp.md 2, all revisions and spellings of
 * 3.1), every rule of 4.2 already checked. Strings are raw (still escaped, no quotes), JSON values
 * are their text, absent is a slice with `at` NULL; a JSON null in an optional place is absent too.
 * All slices point into the body or the request's arena and live as long as both. */
#ifndef CODEC_MCP_SAMPLING_H
#define CODEC_MCP_SAMPLING_H

#include "codec/base/arena.h"
#include "codec/base/err.h"
#include "codec/json/json_read.h"
#include "codec/json/json_write.h"
#include "codec/mcp/jsonrpc.h"

enum revision {
	REVISION_2024_11_05,
	REVISION_2025_03_26,
	REVISION_2025_06_18,
	REVISION_SEP_1577_DRAFT, /* single-block answers, draft spellings */
	REVISION_2025_11_25,     /* the default */
	REVISION_2026_07_28,     /* params of 2025-11-25 */
	REVISION_COUNT
};

/* The revision's name as in MCP-Protocol-Version; static. */
const char *revision_name(enum revision revision);
/* False when unknown. */
bool revision_find(struct slice name, enum revision *out);

enum adjustment {
#define ADJUSTMENT(symbol, code, meaning) ADJUST_##symbol,
#include "codec/tbl/adjustments.h"
#undef ADJUSTMENT
	ADJUST_COUNT
};

/* A set of adjustments: bit n is adjustment n. */
typedef uint64_t adjust_set;
#define ADJUST_BIT(adjustment) ((adjust_set)1 << (adjustment))
const char *adjustment_code(enum adjustment adjustment);

enum block_type {
	BLOCK_TEXT,
	BLOCK_IMAGE,
	BLOCK_AUDIO,
	BLOCK_TOOL_USE,
	BLOCK_TOOL_RESULT,
	BLOCK_RESOURCE_LINK, /* only inside a tool result */
	BLOCK_RESOURCE,      /* only inside a tool result */
};

struct block {
	uint8_t type;  /* enum block_type */
	bool is_error; /* tool_result */
	union {
		struct {
			struct slice text;
		} text;
		struct {
			struct slice
				data; /* clean base64: data URI prefix and line breaks stripped */
			struct slice mime; /* image/jpg already image/jpeg; lower case */
		} media;
		struct {
			struct slice id, name;
			struct slice input; /* JSON object */
		} use;
		struct {
			struct slice id;
			struct slice structured; /* structuredContent: any JSON value, or absent */
			uint32_t first,
				count; /* its content: request.inner[first .. first+count) */
		} result;
		struct {
			struct slice uri, name, mime; /* mime may be absent */
		} link;
		struct {
			struct slice uri, mime; /* mime may be absent */
			struct slice text;      /* or absent, then blob is there */
			struct slice blob;      /* base64 */
		} resource;
	};
};

struct message {
	bool assistant;
	uint32_t first, count; /* request.blocks[first .. first+count) */
};

/* What the root of a tool's schema has: seen on the way, because the dialects may have to fold it. */
enum schema_root {
	SCHEMA_ROOT_COMBINATORS = 1, /* anyOf, oneOf or allOf that is an array; not, enum */
	SCHEMA_ROOT_PROPERTIES = 2,
	SCHEMA_ROOT_REQUIRED = 4,
};

struct tool {
	struct slice name;        /* raw */
	struct slice description; /* raw, or absent */
	struct slice schema;      /* JSON object whose type is "object" */
	uint8_t root;             /* enum schema_root, of the schema */
	uint8_t odd;              /* enum schema_odd, what the schema may have (schema_odd.h) */
};

/* The name that makes a lone required tool structured output (contract/providers.md 8.2). */
#define SCHEMA_TOOL_NAME "__schema__"

enum tool_mode { TOOL_MODE_DEFAULT, TOOL_MODE_AUTO, TOOL_MODE_REQUIRED, TOOL_MODE_NONE };
enum include_context { CONTEXT_NONE, CONTEXT_THIS_SERVER, CONTEXT_ALL_SERVERS };

/* Priorities: NAN when absent; otherwise within 0..1 (clamped, ADJUST_PRIORITY_CLAMPED). */
struct model_preferences {
	double cost, speed, intelligence;
	struct slice *hints; /* raw names; empty and missing names left out; order kept */
	uint32_t hint_count;
};

struct sampling_request {
	enum revision revision;
	int64_t max_tokens;          /* >= 1 */
	struct slice system;         /* absent when missing or "" */
	struct slice temperature;    /* number text, or absent */
	struct slice user_id;        /* metadata.user_id (raw string), or absent */
	struct slice progress_token; /* _meta.progressToken, raw JSON text, or absent */
	struct slice *stop;          /* raw strings, as sent, empty ones too */
	uint32_t stop_count;
	struct model_preferences prefer;
	struct message *messages;
	struct block *blocks; /* of all messages, in order */
	struct block *inner;  /* content of all tool results, in order */
	struct tool *tools;
	uint32_t message_count, block_count, inner_count, tool_count;
	bool tools_present;   /* "tools" was sent, even if empty: decides the shape of the answer */
	bool no_parallel;     /* disable_parallel_tool_use of the draft */
	bool exchange_wanted; /* _meta["sluice/exchange"] is true */
	enum tool_mode tool_mode;
	enum include_context include_context;
	uint32_t images, audios; /* blocks of that type in messages (inner ones not counted) */
	uint32_t call_turns;     /* messages with calls */
	uint32_t tool_rounds;    /* trailing pairs of calls and results (DESIGN 5, Tool loop) */
	uint32_t rounds_most;    /* of these, instead of the plan's limit; 0: that */
	adjust_set adjustments;  /* PRIORITY_CLAMPED, METADATA_DROPPED, CONTEXT_IGNORED,
				    RESULTS_MERGED */
};

/* How many of each one request may have; blocks_max and tools_max below 65,535. stop_bytes_max is of all stop
 * sequences together, as they are written: what they cost shows in the answer, which is searched for them. */
struct sampling_limits {
	uint32_t messages_max, blocks_max, tools_max, stop_max, stop_bytes_max;
	struct json_limits json;
};
extern const struct sampling_limits sampling_limits_default;

/* sampling_read (codec/set.h) of the set that the file is compiled for, which callers use.
 *
 * The whole body in one pass: envelope into *rpc, and for sampling/createMessage the request into
 * *request, with every rule of contract/mcp.md 4.2 but V10 (policy knows what was granted). For
 * other methods *request is untouched. Consecutive user messages that hold only tool results are
 * merged. On failure rpc->id is set if it could be read, and *fault names offset, path and rule.
 * ERR_BUSY when the arena's cap is reached. A createMessage without id is ERR_ID_MISSING. */
MUST_USE enum err sampling_read_here(struct slice body, enum revision revision,
				     const struct sampling_limits *limits, struct json_work *work,
				     struct arena *into, struct jsonrpc *rpc,
				     struct sampling_request *request, struct fault *fault);

/* ---- the answer ---- */

enum stop_reason {
	STOP_END_TURN,
	STOP_SEQUENCE,
	STOP_MAX_TOKENS,
	STOP_TOOL_USE,
	STOP_REFUSAL,
	STOP_OTHER
};
const char *stop_reason_name(enum stop_reason reason);

/* Normal form: input includes what came from and went into the cache, output includes reasoning. */
struct usage {
	bool known; /* the provider sent counters */
	uint64_t input, output, cache_read, cache_write, reasoning;
	uint64_t cache_write_1h; /* of cache_write: what is kept for an hour */
};

struct result_block {
	bool is_tool_use;
	struct slice text;       /* raw string */
	struct slice id, name;   /* raw strings; name as the MCP server knows it */
	struct slice input;      /* JSON object */
	struct slice data, mime; /* audio: base64 and type, raw strings; absent: a text or a call */
};

struct sampling_result {
	struct slice model; /* raw string: who really answered */
	enum stop_reason stop;
	struct result_block *blocks; /* never none: nothing left is one empty text */
	uint32_t block_count;
	struct usage usage;
	adjust_set adjustments; /* of both ways */
	/* What the provider wants back together with the calls, and nobody else may see: JSON in the
	 * dialect's own form, for replay_write (replay.h). Absent: nothing, or there are no calls. */
	struct slice replay;
	bool replay_lost; /* absent, but there was something, which could not be kept whole */
	bool unanswered;  /* a refusal that the provider told as an error, in place of an answer */
};

struct exchange;

/* What the answer's _meta says beside the result (DESIGN 4.3). */
struct result_meta {
	uint64_t usd_nano;
	struct slice model_id, provider; /* plain text: sluice/route */
	uint32_t attempts;
	const struct exchange
		*exchange; /* sluice/exchange (sampling_exchange.h); NULL: not asked for */
};

/* The JSON-RPC response with the output shape rule of contract/mcp.md 3.2: `tools_present` and the
 * revision decide between one block and an array; the draft's single block prefers the first tool
 * call. `meta` NULL leaves out _meta and usage (golden tests compare the bare result). */
void sampling_write_result(struct gather *g, struct slice id, const struct sampling_result *result,
			   enum revision revision, bool tools_present,
			   const struct result_meta *meta);

/* Only the result object, without the envelope. */
void sampling_write_bare(struct gather *g, const struct sampling_result *result,
			 enum revision revision, bool tools_present,
			 const struct result_meta *meta);

#endif
