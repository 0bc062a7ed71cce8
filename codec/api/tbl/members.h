/* members.h - the members of requests that do not pass unread, by the object that has them:
 *
 *   MEMBER(apis, name, act, argument, field, kinds)
 *
 * between PLACE_BEGIN(place) and PLACE_END(place). `apis`: M Messages and count_tokens, C Chat, MC all. `act` is what is
 * done (enum api_act): ENTER reads an object, or those of an array, as the place in `argument`; REFUSE refuses for the
 * reason in `argument`. `field` keeps the value (enum api_field), NONE does not. `kinds` (enum api_member_kinds): what the
 * value may be beside null; anything else is 400. A name that differs from one of these in nothing but case is 400. */

/* clang-format off */
PLACE_BEGIN(TOP)
/* acted on */
MEMBER(MC, "model", KEEP, NONE, MODEL, STRING)
MEMBER(MC, "messages", ENTER, MESSAGE, MESSAGE_LIST, ARRAY)
MEMBER(MC, "max_tokens", KEEP, NONE, MAX_TOKENS, COUNT)
MEMBER(C, "max_completion_tokens", KEEP, NONE, MAX_COMPLETION_TOKENS, COUNT)
MEMBER(MC, "stream", KEEP, NONE, STREAM, BOOL)
MEMBER(C, "stream_options", ENTER, STREAM_OPTIONS, STREAM_OPTIONS, OBJECT)
MEMBER(C, "store", KEEP, NONE, STORE, BOOL)
MEMBER(C, "n", KEEP, NONE, N, COUNT)
MEMBER(M, "system", ENTER, BLOCK, SYSTEM, TEXT)
MEMBER(MC, "tools", ENTER, TOOL, TOOLS, ARRAY)
MEMBER(C, "functions", ENTER, FUNCTION, FUNCTIONS, ARRAY)
MEMBER(MC, "tool_choice", KEEP, NONE, TOOL_CHOICE, ANY)
MEMBER(C, "function_call", KEEP, NONE, FUNCTION_CALL, ANY)
MEMBER(MC, "thinking", ENTER, THINKING, NONE, ANY)
MEMBER(M, "metadata", ENTER, METADATA, METADATA, OBJECT)
MEMBER(C, "user", KEEP, NONE, USER, STRING)
MEMBER(C, "safety_identifier", KEEP, NONE, SAFETY_IDENTIFIER, STRING)
MEMBER(MC, "service_tier", KEEP, NONE, SERVICE_TIER, STRING)
MEMBER(M, "speed", KEEP, NONE, SPEED, STRING)
MEMBER(C, "prediction", KEEP, NONE, PREDICTION, ANY)
MEMBER(MC, "cache_control", ENTER, CACHE, NONE, ANY)
/* what the provider runs, and bills */
MEMBER(M, "mcp_servers", EXTRA, NONE, NONE, ANY)
MEMBER(C, "web_search_options", EXTRA, NONE, NONE, ANY)
MEMBER(C, "moderation", EXTRA, NONE, NONE, ANY)
MEMBER(C, "audio", EXTRA, NONE, NONE, ANY)
/* they choose a model, a host, a key or a route, or cost what nobody counts */
MEMBER(MC, "models", REFUSE, ROUTE, NONE, ANY)
MEMBER(MC, "route", REFUSE, ROUTE, NONE, ANY)
MEMBER(MC, "provider", REFUSE, ROUTE, NONE, ANY)
MEMBER(MC, "plugins", REFUSE, ROUTE, NONE, ANY)
MEMBER(MC, "transforms", REFUSE, ROUTE, NONE, ANY)
MEMBER(MC, "fallbacks", REFUSE, ROUTE, NONE, ANY)
MEMBER(MC, "api_base", REFUSE, ROUTE, NONE, ANY)
MEMBER(MC, "base_url", REFUSE, ROUTE, NONE, ANY)
MEMBER(MC, "api_key", REFUSE, ROUTE, NONE, ANY)
MEMBER(MC, "user_config", REFUSE, ROUTE, NONE, ANY)
MEMBER(MC, "model_list", REFUSE, ROUTE, NONE, ANY)
MEMBER(MC, "extra_headers", REFUSE, ROUTE, NONE, ANY)
MEMBER(MC, "extra_body", REFUSE, ROUTE, NONE, ANY)
MEMBER(MC, "mock_response", REFUSE, ROUTE, NONE, ANY)
MEMBER(MC, "best_of", REFUSE, ROUTE, NONE, ANY)
MEMBER(MC, "use_beam_search", REFUSE, ROUTE, NONE, ANY)
MEMBER(MC, "prompt_logprobs", REFUSE, ROUTE, NONE, ANY)
MEMBER(MC, "chat_template", REFUSE, ROUTE, NONE, ANY)
MEMBER(C, "data_sources", REFUSE, ROUTE, NONE, ANY) /* Azure: hosts with their keys */
MEMBER(C, "kv_transfer_params", REFUSE, ROUTE, NONE, ANY) /* vLLM: a host */
/* objects of the provider's account */
MEMBER(MC, "container", REFUSE, ACCOUNT, NONE, ANY)
MEMBER(MC, "previous_response_id", REFUSE, ACCOUNT, NONE, ANY)
MEMBER(MC, "conversation", REFUSE, ACCOUNT, NONE, ANY)
MEMBER(C, "prompt", REFUSE, ACCOUNT, NONE, ANY)
MEMBER(MC, "file_ids", REFUSE, ACCOUNT, NONE, ANY)
MEMBER(MC, "vector_store_ids", REFUSE, ACCOUNT, NONE, ANY)
MEMBER(M, "thread", REFUSE, THREAD, NONE, ANY)
PLACE_END(TOP)

PLACE_BEGIN(STREAM_OPTIONS)
MEMBER(MC, "include_usage", KEEP, NONE, INCLUDE_USAGE, BOOL)
PLACE_END(STREAM_OPTIONS)

PLACE_BEGIN(METADATA)
MEMBER(MC, "user_id", KEEP, NONE, USER_ID, STRING)
PLACE_END(METADATA)

PLACE_BEGIN(THINKING)
MEMBER(MC, "budget_tokens", KEEP, NONE, BUDGET_TOKENS, SIZE)
PLACE_END(THINKING)

PLACE_BEGIN(CACHE)
MEMBER(MC, "ttl", TTL, NONE, NONE, ANY)
PLACE_END(CACHE)

PLACE_BEGIN(MESSAGE)
MEMBER(MC, "role", KIND, NONE, NONE, STRING)
MEMBER(MC, "content", ENTER, BLOCK, CONTENT, ANY)
MEMBER(MC, "cache_control", ENTER, CACHE, NONE, ANY)
MEMBER(C, "reasoning_details", ENTER, BLOCK, NONE, ANY)
MEMBER(C, "thinking_blocks", ENTER, BLOCK, NONE, ANY)
MEMBER(C, "audio", REFUSE, ACCOUNT, NONE, ANY)
MEMBER(MC, "file_id", REFUSE, ACCOUNT, NONE, ANY)
MEMBER(MC, "file_ids", REFUSE, ACCOUNT, NONE, ANY)
PLACE_END(MESSAGE)

/* A content block or part, whatever its type. */
PLACE_BEGIN(BLOCK)
MEMBER(MC, "type", KIND, NONE, NONE, ANY)
MEMBER(MC, "content", ENTER, BLOCK, NONE, ANY)
MEMBER(MC, "source", ENTER, SOURCE, NONE, ANY)
MEMBER(MC, "cache_control", ENTER, CACHE, NONE, ANY)
MEMBER(MC, "signature", SEALED, NONE, NONE, ANY)
MEMBER(MC, "encrypted_content", SEALED, NONE, NONE, ANY)
MEMBER(M, "tool", ENTER, CHANGE, NONE, ANY)
MEMBER(M, "tools", ENTER, TOOL, NONE, ANY)
MEMBER(M, "tool_changes", ENTER, BLOCK, NONE, ANY)
MEMBER(C, "image_url", IMAGE, NONE, NONE, ANY)
MEMBER(C, "video_url", DOCUMENT, NONE, NONE, ANY)
MEMBER(C, "audio_url", SOUND, NONE, NONE, ANY)
MEMBER(C, "file_url", DOCUMENT, NONE, NONE, ANY)
MEMBER(C, "file", DOCUMENT, NONE, NONE, ANY)
MEMBER(C, "input_audio", SOUND, NONE, NONE, ANY)
MEMBER(C, "file_data", DATA_OR_URL, NONE, NONE, ANY)
MEMBER(MC, "file_id", REFUSE, ACCOUNT, NONE, ANY)
MEMBER(MC, "file_ids", REFUSE, ACCOUNT, NONE, ANY)
PLACE_END(BLOCK)

/* Where an image, a document or a sound comes from. */
PLACE_BEGIN(SOURCE)
MEMBER(MC, "media_type", KIND, NONE, NONE, ANY)
MEMBER(MC, "url", URL, NONE, NONE, ANY)
MEMBER(C, "file_url", URL, NONE, NONE, ANY)
MEMBER(M, "data", DATA, NONE, NONE, ANY)
MEMBER(C, "data", DATA_OR_URL, NONE, NONE, ANY)
MEMBER(C, "file_data", DATA_OR_URL, NONE, NONE, ANY)
MEMBER(M, "content", ENTER, BLOCK, NONE, ANY)
MEMBER(MC, "file_id", REFUSE, ACCOUNT, NONE, ANY)
PLACE_END(SOURCE)

/* What a tool_addition adds: a name, or the tool itself. */
PLACE_BEGIN(CHANGE)
MEMBER(MC, "definition", ENTER, TOOL, NONE, ANY)
PLACE_END(CHANGE)

PLACE_BEGIN(TOOL)
MEMBER(MC, "type", KIND, NONE, NONE, STRING)
MEMBER(MC, "name", NAME, NONE, NONE, STRING)
MEMBER(MC, "input_schema", SCHEMA, NONE, NONE, ANY)
MEMBER(MC, "parameters", SCHEMA, NONE, NONE, ANY)
MEMBER(C, "function", ENTER, BODY, NONE, OBJECT)
MEMBER(C, "custom", ENTER, BODY, NONE, OBJECT)
MEMBER(MC, "max_uses", USES, NONE, NONE, SIZE)
MEMBER(MC, "cache_control", ENTER, CACHE, NONE, ANY)
MEMBER(MC, "model", REFUSE, ROUTE, NONE, ANY)
MEMBER(MC, "file_ids", REFUSE, ACCOUNT, NONE, ANY)
MEMBER(MC, "vector_store_ids", REFUSE, ACCOUNT, NONE, ANY)
PLACE_END(TOOL)

/* What a Chat tool is inside. */
PLACE_BEGIN(BODY)
MEMBER(MC, "name", NAME, NONE, NONE, STRING)
MEMBER(MC, "parameters", SCHEMA, NONE, NONE, ANY)
PLACE_END(BODY)

/* The old form of a Chat tool. */
PLACE_BEGIN(FUNCTION)
MEMBER(MC, "name", NAME, NONE, NONE, STRING)
MEMBER(MC, "parameters", SCHEMA, NONE, NONE, ANY)
PLACE_END(FUNCTION)
/* clang-format on */
