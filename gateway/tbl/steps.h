/* steps.h - the walk of a request, in order: STEP(symbol, name, meaning)
 *
 * One function each in flow*.c; the name is the panic line's and the log's word for where a request
 * stood. */
STEP(HTTP, "http", "path, method, Origin, media types, size")
STEP(AUTH, "auth", "key, token or certificate to tenant")
STEP(HEADERS, "headers", "revision, session, idempotency, deadline")
STEP(DECODE, "decode", "body to JSON-RPC envelope and createMessage request")
STEP(METHOD, "method", "the small methods are answered here")
STEP(POLICY, "policy", "whether it may pass, and clamps")
STEP(ROUTE, "route", "model, endpoint and key")
STEP(ENCODE, "encode", "the provider's request as a gather list")
STEP(RESERVE, "reserve", "the tenant's limits take their share")
STEP(SEND, "send", "one attempt at the provider")
STEP(READ, "read", "the provider's answer to a result")
STEP(SETTLE, "settle", "what was reserved becomes what was used")
STEP(RETRY, "retry", "after a failure: whether, when and where the next attempt is made, from ROUTE")
STEP(ANSWER, "answer", "the caller's JSON-RPC response")
STEP(OVER, "over", "nothing is left to do")
