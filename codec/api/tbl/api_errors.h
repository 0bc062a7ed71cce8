/* api_errors.h - what the direct APIs say for each reason of codec/tbl/errors.h (contract/direct.md 2.4, 3.4):
 *
 *   API_ERROR(symbol, status and type of Messages, status, type and code of Chat, hint, text)
 *
 * Status, type and code are what SDKs choose their exceptions by. `code` "" is null. `hint`: RETRY, the SDKs retry by the
 * status; NEVER, they are told not to. `text` NULL is that of codec/tbl/errors.h; others say the same in the words of these
 * APIs. Reasons that only other fronts have are there, too: a call may be answered by code that all fronts share. */

/* clang-format off */
#define API_BAD(symbol, text) API_ERROR(symbol, 400, "invalid_request_error", 400, "invalid_request_error", "", NEVER, text)
#define API_FORBIDDEN(symbol, text) API_ERROR(symbol, 403, "permission_error", 403, "invalid_request_error", "", NEVER, text)
#define API_LARGE(symbol) API_ERROR(symbol, 413, "request_too_large", 413, "invalid_request_error", "", NEVER, NULL)
#define API_BUDGET(symbol) API_ERROR(symbol, 402, "billing_error", 429, "insufficient_quota", "insufficient_quota", NEVER, NULL)
#define API_RATE(symbol, text) API_ERROR(symbol, 429, "rate_limit_error", 429, "rate_limit_exceeded", "rate_limit_exceeded", RETRY, text)
#define API_CONFLICT(symbol) API_ERROR(symbol, 409, "invalid_request_error", 409, "invalid_request_error", "", NEVER, NULL)
#define API_OVERLOAD(symbol) API_ERROR(symbol, 529, "overloaded_error", 503, "server_error", "server_is_overloaded", RETRY, NULL)
#define API_OPERATOR(symbol) API_ERROR(symbol, 500, "api_error", 500, "server_error", "", NEVER, NULL)
#define API_ANSWER(symbol) API_ERROR(symbol, 500, "api_error", 502, "server_error", "", RETRY, NULL)

/* the request */
API_BAD(JSON, NULL)
API_BAD(DUPLICATE_KEY, NULL)
API_BAD(TOO_DEEP, NULL)
API_BAD(TOO_MANY_KEYS, NULL)
API_BAD(REQUEST, "The body is not a request")
API_BAD(BATCH, "Batches are not accepted")
API_BAD(ID_MISSING, "The request needs an id")
API_BAD(UNKNOWN_METHOD, NULL)
API_BAD(PARAMS, "The body must be a JSON object")
API_BAD(MESSAGES, NULL)
API_BAD(MESSAGES_EMPTY, NULL)
API_BAD(MAX_TOKENS, "must be a whole number of at least 1")
API_BAD(ROLE, NULL)
API_BAD(CONTENT, NULL)
API_BAD(MEDIA, "Images, documents and sounds need data and a type")
API_BAD(FIELD, NULL)
API_BAD(PREFERENCES, "Sluice-Preferences is malformed")
API_FORBIDDEN(TOOLS_NOT_GRANTED, "Policy does not permit tools")
API_BAD(TOOL, "Every tool needs a unique name and a schema of type object")
API_BAD(TOOL_CHOICE, "tool_choice is malformed")
API_BAD(TOOL_CHOICE_TOOLS, "tool_choice needs tools")
API_BAD(TOOL_RESULTS_MIXED, NULL)
API_BAD(TOOL_RESULT_MISSING, NULL)
API_BAD(TOOL_RESULT_ORPHAN, NULL)
API_BAD(TOOL_ID_DUPLICATE, NULL)
API_BAD(TOOL_BLOCK_ROLE, NULL)
API_BAD(TOOL_INPUT, NULL)
API_BAD(CONTENT_UNSUPPORTED, NULL)
API_BAD(TOOLS_TOO_MANY, NULL)
API_BAD(REVISION, NULL)
API_BAD(NOT_AVAILABLE, NULL)
API_BAD(IDEMPOTENCY_KEY, NULL)
API_BAD(TIMEOUT_HEADER, NULL)
API_ERROR(SESSION_UNKNOWN, 404, "not_found_error", 404, "invalid_request_error", "", NEVER, NULL)

/* who asks, and what may be asked */
API_ERROR(UNAUTHORIZED, 401, "authentication_error", 401, "invalid_request_error", "invalid_api_key", NEVER, NULL)
API_BUDGET(BUDGET)
API_BUDGET(OVER_BUDGET)
API_FORBIDDEN(ORIGIN, NULL)
API_FORBIDDEN(HOST, NULL)
API_FORBIDDEN(POLICY, NULL)
API_FORBIDDEN(MODEL_FORBIDDEN, NULL)
API_ERROR(MODEL_UNKNOWN, 404, "not_found_error", 404, "invalid_request_error", "model_not_found", NEVER, NULL)
API_FORBIDDEN(IMAGES_FORBIDDEN, NULL)
API_FORBIDDEN(AUDIO_FORBIDDEN, NULL)
API_FORBIDDEN(MAX_TOKENS_FORBIDDEN, "The bound of output tokens is over the tenant's limit")
API_FORBIDDEN(TOOL_ROUNDS, NULL)
API_FORBIDDEN(LOOP_TOKENS, NULL)
API_FORBIDDEN(LOOP_USD, NULL)
API_FORBIDDEN(UNKNOWN_CALLS, NULL)
API_FORBIDDEN(FRONT_FORBIDDEN, NULL)
API_FORBIDDEN(SERVER_FORBIDDEN, NULL)
API_ERROR(SERVER_UNKNOWN, 404, "not_found_error", 404, "invalid_request_error", "", NEVER, NULL)
API_ERROR(NOT_FOUND, 404, "not_found_error", 404, "invalid_request_error", "", NEVER, NULL)
API_ERROR(HTTP_METHOD, 405, "invalid_request_error", 405, "invalid_request_error", "", NEVER, NULL)
API_ERROR(NOT_ACCEPTABLE, 406, "invalid_request_error", 406, "invalid_request_error", "", NEVER, NULL)
API_CONFLICT(DUPLICATE_IN_FLIGHT)
API_CONFLICT(DUPLICATE_DONE)
API_CONFLICT(DUPLICATE_CONFLICT)
API_LARGE(BODY_TOO_LARGE)
API_LARGE(OVER_BURST)
API_ERROR(MEDIA_TYPE, 415, "invalid_request_error", 415, "invalid_request_error", "", NEVER, NULL)
API_OVERLOAD(NO_MODEL)
API_RATE(RATE_LIMITED, NULL)
API_RATE(CONCURRENCY, NULL)
API_RATE(SESSIONS, NULL)

/* of MCP servers alone */
API_FORBIDDEN(SAMPLING_REFUSED, NULL)
API_FORBIDDEN(UNSOLICITED, NULL)
API_RATE(SAMPLINGS_BUSY, NULL)
API_ANSWER(SAMPLING_CANCELLED)
API_ANSWER(ROUNDS)
API_ANSWER(ROUND_SAMPLINGS)
API_BAD(ROUND_STATE, NULL)
API_OVERLOAD(NOBODY_LISTENS)
API_OVERLOAD(GATEWAY_LOST)
API_OVERLOAD(SERVER_DRAINING)
API_OVERLOAD(SERVER_UNAVAILABLE)
API_ANSWER(SERVER_ANSWER)
API_OPERATOR(SERVER_CREDENTIALS)

/* the gateway and the provider */
API_OVERLOAD(BUSY)
API_OVERLOAD(DRAINING)
API_OVERLOAD(STORE)
API_RATE(PROVIDER_RATE, NULL)
API_ERROR(PROVIDER_DOWN, 500, "api_error", 503, "server_error", "", RETRY, NULL) /* api_error_row: overloaded, if it said so */
API_OVERLOAD(PROVIDER_NO_ATTEMPT)
API_OPERATOR(PROVIDER_OPERATOR)
API_OPERATOR(PROVIDER_BILLING)
API_BAD(PROVIDER_REJECTED, NULL)
API_ERROR(CONTEXT_WINDOW, 400, "invalid_request_error", 400, "invalid_request_error", "context_length_exceeded", NEVER, "prompt is too long")
API_ANSWER(PROVIDER_ANSWER)
API_ANSWER(SCHEMA_MISMATCH)
API_ERROR(DEADLINE, 504, "timeout_error", 504, "server_error", "", RETRY, NULL)
API_ERROR(CANCELLED, 499, "api_error", 499, "server_error", "", NEVER, NULL)
API_ERROR(INTERNAL, 500, "api_error", 500, "server_error", "", RETRY, NULL)

#undef API_BAD
#undef API_FORBIDDEN
#undef API_LARGE
#undef API_BUDGET
#undef API_RATE
#undef API_CONFLICT
#undef API_OVERLOAD
#undef API_OPERATOR
#undef API_ANSWER
/* clang-format on */
