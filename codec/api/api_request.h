/* api_request.h - what the gateway reads of a request in a provider's own API: one strict pass, bounded, no recursion.
 *
 * Strict is json_read.h: a name twice in one object, broken UTF-8, or more than 64 levels are refused, so that no other
 * reader finds something else in the same bytes. What is read is in tbl/members.h; everything else was validated and
 * passed over. All slices are parts of the body, values with their quotes and brackets, so that edits can be made there. */
#ifndef CODEC_API_API_REQUEST_H
#define CODEC_API_API_REQUEST_H

#include "codec/api/api.h"

/* The members whose values are kept. */
enum api_field {
	API_MODEL,
	API_MESSAGE_LIST,
	API_MAX_TOKENS,
	API_MAX_COMPLETION_TOKENS,
	API_STREAM,
	API_STREAM_OPTIONS,
	API_INCLUDE_USAGE,
	API_STORE,
	API_N,
	API_SYSTEM,
	API_TOOLS,
	API_FUNCTIONS,
	API_TOOL_CHOICE,
	API_FUNCTION_CALL,
	API_METADATA,
	API_USER_ID, /* metadata.user_id */
	API_USER,
	API_SAFETY_IDENTIFIER,
	API_SERVICE_TIER,
	API_SPEED,
	API_PREDICTION,
	API_BUDGET_TOKENS, /* thinking.budget_tokens */
	API_CONTENT,       /* private: of the message under way */
	API_FIELDS,
	API_NONE = API_FIELDS,
};

struct api_value {
	enum json_kind
		kind; /* JSON_BAD: the member is not there. JSON_NULL: it is as good as absent, but has a place */
	struct slice text; /* all of the value */
	uint64_t count;    /* of a number that has to be whole and not negative; saturated */
};

enum api_tool_kind {
	API_TOOL_FUNCTION, /* function, custom, or of no type: what the caller runs by its schema */
	API_TOOL_CLIENT, /* of a type that the provider knows, and the caller runs: bash, computer */
	API_TOOL_SERVER, /* everything else, known or not: the provider runs and bills it */
};

struct api_tool {
	enum api_tool_kind kind;
	struct slice
		type; /* raw, without quotes; absent: none was said. Of a member that is one: its name */
	struct slice name;   /* raw, without quotes; absent: none */
	struct slice schema; /* input_schema, parameters; absent: none */
	uint64_t uses_max;   /* max_uses; 0: not said */
	struct slice path;   /* where it stands; of SERVER only */
};

/* How many of each a request may have; blocks inside of others count. */
enum { API_TOOLS_MAX = 4096, API_MESSAGES_MAX = 65536, API_BLOCKS_MAX = 65536 };

struct api_request {
	enum api api;
	struct slice body;   /* all of it */
	struct slice object; /* without the white space around */
	struct api_value at[API_FIELDS];

	/* ---- what is asked ---- */
	bool stream;
	bool usage_asked;  /* of a Chat stream: stream_options.include_usage */
	uint64_t tokens;   /* the largest of the bounds of output that were sent; 0: none was */
	uint64_t n;        /* answers; at least 1 */
	uint64_t thinking; /* thinking.budget_tokens; 0: none */
	bool cached, cached_1h; /* there is cache_control; one of them asks for an hour */

	/* ---- what policy counts ---- */
	uint32_t messages, blocks; /* a string is a block; those inside of others count */
	uint32_t images, documents, sounds;
	uint64_t image_bytes, document_bytes,
		sound_bytes;       /* base64, as sent; of a text document its text */
	uint64_t image_bytes_most; /* of the largest one */
	struct api_tool
		*tools; /* also those that a message defines, and members that are as good as one */
	uint32_t tool_count, server_tools;
	uint32_t tool_rounds; /* rounds of tools since the last message that is the user's own */
	uint32_t urls;        /* contents that the provider would fetch */
	uint32_t documents_by_url; /* of these, those that are no images */
	struct slice url_path;     /* where the first of them stands; absent: none */
	bool sealed; /* the history has what only its own provider can read: signed thinking, encrypted reasoning */

	/* ---- the system prompt ----
	 * Messages: API_SYSTEM. Chat: the leading messages of role system or developer. `system_later`: a message behind
	 * them has a role that is neither the user's, the assistant's nor a tool's. */
	struct api_value
		system; /* of Chat: the content of the first of them; kind JSON_BAD: there are none */
	uint32_t system_messages; /* of Chat: how many lead */
	uint64_t system_bytes;    /* of their values, quotes and brackets included */
	bool system_later;

	bool in_results;    /* private: the last message had such */
	struct arena *into; /* private */
	uint32_t tool_cap;  /* private */
};

/* api_request_read (codec/set.h), which callers use, as the set of `work` does it. `body` below 4 GiB must live as long as
 * *out. Memory of `into` is taken for tools and paths alone.
 *
 * Errors, with *fault (path: "messages.0.content", and for Chat "messages[0].content"; detail):
 * - as json_read.h: ERR_JSON, ERR_DUPLICATE_KEY, ERR_TOO_DEEP, ERR_TOO_MANY_KEYS
 * - 400: ERR_FIELD (wrong type, a name in another case, a required member is missing), ERR_MESSAGES, ERR_MESSAGES_EMPTY,
 *   ERR_CONTENT (too many blocks), ERR_MAX_TOKENS, ERR_TOOLS_TOO_MANY; ERR_NOT_AVAILABLE: a thread (detail is api_thread_refused)
 * - 403: ERR_POLICY: members that no plan permits
 * - ERR_BUSY: memory is exhausted
 * *out is written on success only. */
MUST_USE enum err api_request_read_here(enum api api, struct slice body, struct json_work *work,
					struct arena *into, struct api_request *out,
					struct fault *fault);

/* The details of a thread's refusal, which the caller's tool runner reads: it goes on with the whole history. */
extern const char api_thread_refused[];
/* The detail of a required member that is missing. */
extern const char api_field_required[];

/* The inside of a string's value, raw; absent where it is no string. */
static inline struct slice api_inside(const struct api_value *value)
{
	return value->kind == JSON_STRING ? slice_of(value->text.at + 1, value->text.len - 2)
					  : slice_of(NULL, 0);
}
static inline struct slice api_string(const struct api_request *request, enum api_field field)
{
	return api_inside(&request->at[field]);
}

/* Whether the member is there and not null. */
static inline bool api_has(const struct api_request *request, enum api_field field)
{
	return request->at[field].kind > JSON_NULL;
}

/* Bytes that input is estimated from: all but the base64 of images, which count by their number. */
static inline uint64_t api_request_bytes(const struct api_request *request)
{
	return request->body.len - request->image_bytes;
}

/* Whether `name`, of the settings, stands for a server tool of this type: it is the type, the type without the date at its
 * end (web_search for web_search_20250305), or a glob over the type (web_*). A type of more than API_NAME_MAX bytes has no
 * name. */
bool api_tool_is(const struct api_tool *tool, struct slice name);

enum { API_NAMES_MAX = 64 };

/* Which of `count` names (ASCII, API_NAME_MAX bytes at most; API_NAMES_MAX of them) members of the outermost object have,
 * in any case: a bit for each. A pass over the body. */
uint64_t api_request_names(const struct api_request *request, const struct slice *names,
			   size_t count);

#endif
