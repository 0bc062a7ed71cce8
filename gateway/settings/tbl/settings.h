/* settings.h - every key of the configuration (DESIGN 4.2); read, checked and printed from here.
 *
 * SETTING(scope, key, type, field, minimum, default, maximum, when, meaning)
 *     one value; bounds in its base unit (bytes, ns, nano-USD), of texts the length
 * CHOICE(scope, key, field, choices, default, when, meaning)
 *     one of "a|b"; "!c" is a choice that this version does not have
 * LIST(scope, key, type, field, maximum count, when, meaning)
 *     a list of values; absent is the same as empty
 * VALUES(scope, key, type, field, maximum count, when, meaning)
 *     a map of names (of headers; of a FACTOR: any) to values; likewise
 * ENTRIES(scope, key, form, field, entry scope, minimum count, default, maximum count, when, meaning)
 *     a list or map of scopes
 * LATER(scope, key)
 *     of DESIGN, without a function in this version: refused
 *
 * LIMIT_SETTING(scope, limit, ...), PART_LIMIT(scope, key prefix, field, limit, ...)
 *     a row of tenants/tbl/limits.h: a tenant's, and a server's or some models', without a default
 *
 * `key` is the path inside the scope, `field` the member of the scope's struct in settings_form.h.
 * The default is text as it would stand in the file; NEEDED: there is none; WITH_GROUP: there is none,
 * and the key is needed where its map is; in parentheses: words for what is computed when the key is
 * absent. `when` says whether a change needs a RESTART or a RELOAD.
 * Rows of a scope stand together. */

ENTRIES(MAIN, "listen", LIST, listen, LISTEN, 1, "(127.0.0.1:8080 alone)", CONFIG_LISTEN_MAX, RESTART, "public addresses: HTTP/1.1, and HTTP/2 with prior knowledge or by ALPN")
SETTING(MAIN, "admin.address", ADDRESS, admin_address, 1, "(none)", 256, RESTART, "where healthz, readyz and metrics are served; a reload is taken from loopback only")
SETTING(MAIN, "admin.socket", PATH, admin_socket, 1, "(none)", 107, RESTART, "UNIX socket for the same, and for reload")
LIST(MAIN, "admin.names", ID, admin_names, 64, RELOAD, "names that the admin address may be asked by, in a Host header, for metrics and all that is for this machine alone, beside localhost and any IP address; a scrape that asks by another name is refused")
SETTING(MAIN, "workers", AUTO_COUNT, workers, 1, "auto", 256, RESTART, "worker threads; auto: as many as this process may use CPUs")
SETTING(MAIN, "zone", ID, zone, 1, "(none)", 64, RELOAD, "where this gateway runs; providers are called at their endpoints of the same zone as long as half of these are healthy")
SETTING(MAIN, "user", ID, user, 1, "(none: nothing is dropped)", USER_NAME_MAX, RESTART, "whom the server process becomes for good, before it accepts anything, with that user's groups and no capability; started as root, the supervisor binds the addresses, ports below 1024 too, and reads this file and those it names, which may be root's alone")
SETTING(MAIN, "reload_watch", DURATION, reload_watch, 100 * MSEC, "(never)", 86400 * SEC, RELOAD, "how often this file and those it names are looked at; a change is taken over like a reload")
SETTING(MAIN, "limits.body_bytes", SIZE, body_bytes, 1024, "16MiB", 1073741824, RELOAD, "largest request body")
SETTING(MAIN, "limits.connections", COUNT, connections, 1, "20000", 1000000, RELOAD, "open connections of callers, all workers together")
SETTING(MAIN, "limits.unfinished_bytes", SIZE, unfinished_bytes, 1048576, "256MiB", 1099511627776, RELOAD, "request bodies that have not come to their end, all connections together, and as much of providers' answers of more than 64 KiB, in one piece or as streams, likewise; each worker has its share, one body at least")
SETTING(MAIN, "limits.held_bytes", SIZE, held_bytes, 1048576, "1GiB", 1099511627776, RELOAD, "bodies of requests that wait for their answers, all connections together; a request beyond that is answered 503 `overloaded`; each worker has its share, one body at least. A tenant that holds more than is free gets no more: alone it has half and one body; the last sixteenth is for bodies of up to 64 KiB")
SETTING(MAIN, "drain", DURATION, drain, 0, "(longest provider total + 30s)", 86400 * SEC, RELOAD, "time that requests in flight have to finish at shutdown")
CHOICE(MAIN, "store.kind", store_kind, "memory|redis", "memory", RESTART, "where limits, sessions and tool loops are kept: this machine alone, or a Redis that gateways share")
SETTING(MAIN, "store.url", SECRET, store_url, 1, "(none)", 2048, RESTART, "redis://, rediss:// (TLS) or unix:// of kind redis: redis://USER:PASSWORD@HOST:PORT/DATABASE; USER and PASSWORD may change by a reload")
SETTING(MAIN, "store.ca", PATH, store_ca, 1, "(the system's)", 4096, RESTART, "PEM file of the certificate authority of a rediss:// store")
SETTING(MAIN, "store.deadline", DURATION, store_deadline, 1 * MSEC, "(20ms)", 10 * SEC, RESTART, "how long a request waits for Redis; after that on_store_failure decides")
SETTING(MAIN, "store.patience", DURATION, store_patience, 0, "(250ms)", 10 * SEC, RESTART, "how long a request waits for a Redis that is slow where on_store_failure would refuse it (rates: closed; budget: closed and it costs money); no longer than store.deadline: it does not")
SETTING(MAIN, "store.blocks.bytes", SIZE, blocks_bytes, 0, "256MiB", 1099511627776, RESTART, "private blocks (a model's reasoning within tool loops) in the memory of this process: beyond, those not used for longest go; 0: none are kept")
SETTING(MAIN, "store.blocks.each", SIZE, blocks_each, 1024, "1MiB", STATE_FOUND_MAX, RESTART, "largest private blocks of one answer; larger ones are not kept, and its caller is told so (reasoning_not_saved)")
SETTING(MAIN, "store.blocks.ttl", DURATION, blocks_ttl, 1 * SEC, "1h", 86400 * SEC, RESTART, "how long private blocks are kept after they were used last")
ENTRIES(MAIN, "identity.jwt", LIST, jwt, ISSUER, 0, "(none)", JWT_ISSUERS_MAX, RELOAD, "whose tokens (JWT) are taken as Bearer, beside keys; each issuer may speak for every tenant")
CHOICE(MAIN, "identity.certificates.san", certificates_san, "uri|dns", "uri", RELOAD, "which names in a caller's verified certificate are looked up in tenants[].names")
LIST(MAIN, "identity.origins", ORIGIN, origins, 1000, RELOAD, "values of an Origin header that are allowed; any other is refused")
SETTING(MAIN, "public_url", URL, public_url, 1, "(none)", 2048, RELOAD, "how callers see this gateway, up to where its own paths begin: needed for the OAuth metadata of MCP servers, which is never made from a Host header")
LIST(MAIN, "seal_keys", SECRET, seal_keys, CONFIG_SEAL_SECRETS_MAX, RELOAD, "what ids of MCP sessions are sealed with: 32 random bytes each, in base64 (`openssl rand -base64 32`). The first seals, all open; without it there is a random one, which no other gateway has and no restart keeps. To rotate: add the new key last everywhere, then put it first, drop the old one after the longest session")
SETTING(MAIN, "metrics.tenants", COUNT, metrics_tenants, 0, "1000", 1000000, RELOAD, "tenants with metric series of their own; the rest is _other; a reload takes it over, and it counts from the next restart on")
SETTING(MAIN, "retries.attempts", COUNT, attempts, 1, "4", 8, RELOAD, "most attempts of one request, the first included; 1: nothing is tried again")
SETTING(MAIN, "retries.budget", FRACTION, retry_budget, 0, "0.15", 1, RELOAD, "retries for each request of the last ten seconds, of a tenant and of a provider: what an outage may add to a provider's load")
SETTING(MAIN, "retries.floor", COUNT, retry_floor, 0, "5", 1000, RELOAD, "retries in ten seconds that each tenant and each provider has in any case, on each worker")
ENTRIES(MAIN, "providers", MAP, providers, PROVIDER, 1, NEEDED, CONFIG_PROVIDERS_MAX, RELOAD, "LLM providers by name")
ENTRIES(MAIN, "models", LIST, models, MODEL, 1, NEEDED, CATALOG_MODELS_MAX, RELOAD, "the catalogue")
ENTRIES(MAIN, "mcp_servers", MAP, mcp_servers, MCP_SERVER, 0, "(none)", CONFIG_MCP_SERVERS_MAX, RELOAD, "MCP servers that callers reach at /mcp/NAME, by that name: 1 to 64 letters, digits, _, . and -; it is the server of policy, limits and log")
ENTRIES(MAIN, "plans", MAP, plans, PLAN, 0, "(none)", 100000, RELOAD, "what tenants may do, by name")
ENTRIES(MAIN, "tenants", LATE_LIST, tenants, TENANT, 0, "(none)", 10000000, RELOAD, "who may ask; an entry may have every key of a plan as well: maps merge key by key, lists replace")

SETTING(LISTEN, "address", ADDRESS, address, 1, NEEDED, 256, RESTART, "IP address and port; or unix:PATH, a UNIX socket that its owner alone may use")
SETTING(LISTEN, "trusted_proxy", BOOL, trusted_proxy, 0, "false", 1, RESTART, "true: only your own proxies reach this address (Envoy, nginx, a mesh's sidecar), and an HTTP/2 connection carries requests of many callers; it may have 16 times as many given up, control frames and unfinished bytes before it is closed")
SETTING(LISTEN, "tls.cert", PATH, tls_cert, 1, WITH_GROUP, 4096, RELOAD, "PEM file of the certificate, then of those that link it to its authority; a listener with tls speaks nothing else")
SETTING(LISTEN, "tls.key", PATH, tls_key, 1, WITH_GROUP, 4096, RELOAD, "PEM file of the certificate's private key, without a passphrase")
SETTING(LISTEN, "tls.client_ca", PATH, tls_client_ca, 1, "(none: no certificate is asked for)", 4096, RELOAD, "PEM file of authorities whose certificates callers may show instead of a key")
LIST(LISTEN, "fronts", FRONT, fronts, 3, RELOAD, "what may be asked for here: sampling is /v1/sampling, mcp /mcp/NAME, direct the APIs of providers; without it all of them")

SETTING(ISSUER, "issuer", TEXT, issuer, 1, NEEDED, 512, RELOAD, "what tokens have as iss, to the letter")
SETTING(ISSUER, "audience", TEXT, audience, 1, NEEDED, 512, RELOAD, "what tokens must have as aud, or among others in it")
SETTING(ISSUER, "jwks", URL, jwks, 1, NEEDED, 2048, RELOAD, "where the issuer's keys are (JWKS); redirects are not followed")
SETTING(ISSUER, "refresh", DURATION, refresh, 1 * SEC, "5m", 43200 * SEC, RELOAD, "how often the keys are fetched again: a key that the issuer has removed is good for so long; the last keys are used for a day while they cannot be fetched")
SETTING(ISSUER, "ca", PATH, ca, 1, "(the system's)", 4096, RELOAD, "PEM file of the certificate authority that the certificate at jwks must come from")
LIST(ISSUER, "algorithms", ALGORITHM, algorithms, 3, RELOAD, "signatures that are taken; without it all that there are here")
SETTING(ISSUER, "tenant_claim", TEXT, tenant_claim, 1, "tenant", 256, RELOAD, "the claim that is looked up in tenants[].names: its name or, where there is none of that name, a path with dots")
SETTING(ISSUER, "server_claim", TEXT, server_claim, 1, "(none)", 256, RELOAD, "the claim that tells a tenant's MCP servers apart, likewise; tokens without it are of no server")
SETTING(ISSUER, "skew", DURATION, skew, 0, "60s", 600 * SEC, RELOAD, "by how much the issuer's clock may differ")

CHOICE(PROVIDER, "dialect", dialect, DIALECT_CHOICES "!gemini", NEEDED, RELOAD, "wire format: anthropic is the Messages API, openai Chat Completions, openai-responses the Responses API")
SETTING(PROVIDER, "version", DATE, version, 10, "(2026-10-21)", 10, RELOAD, "anthropic-version header; dialect anthropic only")
ENTRIES(PROVIDER, "endpoints", LIST, endpoints, ENDPOINT, 1, NEEDED, CONFIG_ENDPOINTS_MAX, RELOAD, "where the provider is reached")
LIST(PROVIDER, "keys", SECRET, keys, CONFIG_KEYS_MAX, RELOAD, "API keys: literal, ${NAME} or file:PATH; none for a provider that asks for none")
CHOICE(PROVIDER, "key_header", key_header, "authorization|x-api-key|api-key", "(anthropic: x-api-key; openai, openai-responses: authorization)", RELOAD, "the header that carries the key; authorization has it as Bearer")
SETTING(PROVIDER, "query", TEXT, query, 1, "(none)", 1024, RELOAD, "what every call has behind its path and a ?, such as api-version=2024-10-21")
LIST(PROVIDER, "direct.refuse", ID, refused, API_NAMES_MAX, RELOAD, "names of members, at the top of requests by the direct APIs, that this provider is not sent, in any case: such a request goes to another provider of the model, or is refused (403)")
SETTING(PROVIDER, "ca", PATH, ca, 1, "(the system's)", 4096, RELOAD, "PEM file of the certificate authority that the provider's certificate must come from")
SETTING(PROVIDER, "timeouts.connect", DURATION, connect, MSEC, "2s", 3600 * SEC, RELOAD, "of one attempt: until the connection stands, TLS included")
SETTING(PROVIDER, "timeouts.first_byte", DURATION, first_byte, MSEC, "60s", 3600 * SEC, RELOAD, "of one attempt: from the request to the first byte of the answer")
SETTING(PROVIDER, "timeouts.idle", DURATION, idle, MSEC, "30s", 3600 * SEC, RELOAD, "of one attempt: between two reads")
SETTING(PROVIDER, "timeouts.total", DURATION, total, MSEC, "600s", 3600 * SEC, RELOAD, "of one attempt: all of it")
SETTING(PROVIDER, "breaker.failures", COUNT, breaker_failures, 1, "5", 1000, RELOAD, "failures in a row after which an endpoint is left alone")
SETTING(PROVIDER, "breaker.ratio", FRACTION, breaker_ratio, 0, "0.5", 1, RELOAD, "share of an endpoint's calls in the window that fail after which it is left alone; 0: the share does not matter")
SETTING(PROVIDER, "breaker.calls", COUNT, breaker_calls, 1, "20", 1000000, RELOAD, "calls in the window that a share is taken from, at least")
SETTING(PROVIDER, "breaker.window", DURATION, breaker_window, 1 * SEC, "10s", 600 * SEC, RELOAD, "the window of ratio")
SETTING(PROVIDER, "breaker.open", DURATION, breaker_open, 10 * MSEC, "1s", 3600 * SEC, RELOAD, "how long an endpoint is left alone before one call tries it; twice as long each time that this call fails, unless the provider has no other one left")
SETTING(PROVIDER, "breaker.open_max", DURATION, breaker_open_max, 10 * MSEC, "30s", 3600 * SEC, RELOAD, "how long at most")
SETTING(PROVIDER, "breaker.slow_start", DURATION, breaker_slow_start, 0, "10s", 600 * SEC, RELOAD, "in which an endpoint that has come back gets its whole share again; 0s: at once")
SETTING(PROVIDER, "check.path", TEXT, check_path, 1, "(none: no checks)", 1024, RELOAD, "asked by GET at each endpoint's host, without a key: an endpoint that does not answer with a status of 2xx gets no calls")
SETTING(PROVIDER, "check.interval", DURATION, check_interval, 100 * MSEC, "(5s)", 3600 * SEC, RELOAD, "from one check to the next")
SETTING(PROVIDER, "check.timeout", DURATION, check_timeout, 10 * MSEC, "(2s)", 60 * SEC, RELOAD, "how long an answer may take")
SETTING(PROVIDER, "check.unhealthy", COUNT, check_unhealthy, 1, "(3)", 100, RELOAD, "checks in a row that fail before an endpoint gets no calls")
SETTING(PROVIDER, "check.healthy", COUNT, check_healthy, 1, "(2)", 100, RELOAD, "checks in a row that succeed before it gets calls again")
SETTING(PROVIDER, "enabled", BOOL, enabled, 0, "true", 1, RELOAD, "false: its models are not used")

SETTING(ENDPOINT, "url", URL, url, 1, NEEDED, 2048, RELOAD, "everything before /v1/messages (anthropic), /chat/completions (openai) or /responses (openai-responses)")
SETTING(ENDPOINT, "weight", COUNT, weight, 1, "1", 1000, RELOAD, "share of the provider's calls")
SETTING(ENDPOINT, "zone", ID, zone, 1, "(none)", 64, RELOAD, "where it is; see zone")
SETTING(ENDPOINT, "concurrent", COUNT, concurrent, 1, "(no bound)", 1000000, RELOAD, "calls in flight, all workers together; each worker has its share, one at least")
SETTING(ENDPOINT, "queue", COUNT, queue, 0, "4096", 1000000, RELOAD, "calls that may wait for a place, all workers together; each worker has its share; more are sent elsewhere, or refused (503)")
SETTING(ENDPOINT, "queue_deadline", DURATION, queue_deadline, 1 * MSEC, "(no bound of its own)", 3600 * SEC, RELOAD, "how long a call waits for a place; the request's deadline holds in any case")

SETTING(MCP_SERVER, "url", URL, url, 1, "(endpoints)", 2048, RELOAD, "where the server is, http or https; path and query are used to the letter, redirects are not followed")
ENTRIES(MCP_SERVER, "endpoints", LIST, endpoints, MCP_ENDPOINT, 1, "(url alone)", CONFIG_ENDPOINTS_MAX, RELOAD, "instead of url: several places of one server; a session stays where it began")
CHOICE(MCP_SERVER, "transport", transport, "auto|http|sse", "auto", RELOAD, "auto: Streamable HTTP, and HTTP+SSE of 2024-11-05 where the server answers so; http, sse: that alone")
CHOICE(MCP_SERVER, "sampling", sampling, "backfill|force|relay|refuse", "backfill", RELOAD, "backfill: a client that declares sampling answers by itself, for others the gateway does; force: the gateway does for all; relay: nothing is changed or answered here; refuse: servers see no client that can, and a request all the same is refused")
VALUES(MCP_SERVER, "headers", HEADER_VALUE, headers, 64, RELOAD, "added to every request to the server; none that the gateway writes or passes by itself")
SETTING(MCP_SERVER, "authorization", HEADER_VALUE, authorization, 1, "(none)", 8192, RELOAD, "the Authorization header of every request to the server, such as \"Bearer ${TOKEN}\"; a caller's own never gets there")
CHOICE(MCP_SERVER, "auth", auth, "gateway|client", "gateway", RELOAD, "client: a caller's Sluice-Upstream-Authorization becomes the server's Authorization, for public servers and tokens of users' own; kept in this process's memory alone, so that no other gateway takes such a session over")
CHOICE(MCP_SERVER, "unsolicited", unsolicited, "allow|refuse", "allow", RELOAD, "refuse: the server may sample only while the session has a call open")
LIST(MCP_SERVER, "pass_headers", HEADER_NAME, pass_headers, 64, RELOAD, "further headers of callers' requests that go on to the server; never credentials")
SETTING(MCP_SERVER, "ca", PATH, ca, 1, "(the system's)", 4096, RELOAD, "PEM file of the certificate authority that the server's certificate must come from")
SETTING(MCP_SERVER, "timeouts.connect", DURATION, connect, MSEC, "2s", 3600 * SEC, RELOAD, "until the connection stands, TLS included")
SETTING(MCP_SERVER, "timeouts.first_byte", DURATION, first_byte, MSEC, "10m", 86400 * SEC, RELOAD, "of a POST: from the request to the first byte of the answer")
SETTING(MCP_SERVER, "timeouts.idle", DURATION, idle, MSEC, "10m", 86400 * SEC, RELOAD, "of a POST: between two reads; streams that a server may leave silent have no such bound")
SETTING(MCP_SERVER, "sessions", COUNT, sessions, 1, "10000", 1000000, RELOAD, "sessions at once, on all gateways of one Redis together; each may hold one connection to the server for as long as it lasts")
SETTING(MCP_SERVER, "enabled", BOOL, enabled, 0, "true", 1, RELOAD, "false: its path is not there")

SETTING(MCP_ENDPOINT, "url", URL, url, 1, NEEDED, 2048, RELOAD, "as the url of a server")
SETTING(MCP_ENDPOINT, "weight", COUNT, weight, 1, "(1)", 1000, RELOAD, "share of the server's sessions")
SETTING(MCP_ENDPOINT, "zone", ID, zone, 1, "(none)", 64, RELOAD, "where it is; see zone")

SETTING(MODEL, "id", ID, id, 1, NEEDED, 128, RELOAD, "the name that plans and hints use")
SETTING(MODEL, "provider", ID, provider, 1, NEEDED, 128, RELOAD, "a name under providers")
SETTING(MODEL, "name", TEXT, name, 1, "(the id)", 256, RELOAD, "what the provider calls it; of a name that the catalogue of this version knows, context, price, speed, intelligence and profile need not be said: `sluice check --verbose` prints what is in force and where it comes from")
LIST(MODEL, "aliases", TEXT, aliases, 64, RELOAD, "further names that hints may match, and by which the direct APIs ask for the model; there one with * or ? is a glob over the whole name, upper and lower case alike (claude-haiku-*): ids and other names come first, then the glob with the longest text in front of its first wildcard")
SETTING(MODEL, "context", COUNT, context, 1, "(the catalogue's; needed for other models)", 1000000000000, RELOAD, "context window in tokens")
SETTING(MODEL, "price.input", PRICE, price_input, 0, "(the catalogue's; needed for other models)", 1000000000000, RELOAD, "USD per million input tokens; 0 is a price, and whoever writes one writes all of it: nothing of price comes from the catalogue then")
SETTING(MODEL, "price.output", PRICE, price_output, 0, "(the catalogue's; needed for other models)", 1000000000000, RELOAD, "USD per million output tokens")
SETTING(MODEL, "price.cache_read", PRICE, price_cache_read, 0, "(price.input)", 1000000000000, RELOAD, "USD per million tokens read from the provider's cache")
SETTING(MODEL, "price.cache_write", PRICE, price_cache_write, 0, "(price.input)", 1000000000000, RELOAD, "USD per million tokens written to the provider's cache")
SETTING(MODEL, "price.cache_write_1h", PRICE, price_cache_write_1h, 0, "(twice price.input)", 1000000000000, RELOAD, "USD per million tokens written to the provider's cache for an hour, which Anthropic counts apart; only callers of the direct APIs can ask for that")
SETTING(MODEL, "price.server_tool", USD, price_server_tool, 0, "(none: no server tool is let through)", 1000000000000, RELOAD, "USD for each use of a tool that the provider runs (plans.*.direct.server_tools): a request is reserved for max_uses of each of its tools; 0: such tools may do without max_uses")
SETTING(MODEL, "speed", FRACTION, speed, 0, "0.5", 1, RELOAD, "declared, 0 to 1")
SETTING(MODEL, "intelligence", FRACTION, intelligence, 0, "0.5", 1, RELOAD, "declared, 0 to 1")
SETTING(MODEL, "profile.version", DATE, version, 10, "(the provider's)", 10, RELOAD, "anthropic-version header for this model; dialect anthropic only")
SETTING(MODEL, "profile.max_output", COUNT, max_output, 1, "4096", 1000000000, RELOAD, "most tokens of one answer")
SETTING(MODEL, "profile.max_stop", COUNT, max_stop, 0, "(anthropic: 16; openai: 4; openai-responses: 0)", 1000, RELOAD, "stop sequences that the provider takes; more are searched by the gateway")
SETTING(MODEL, "profile.image", BOOL, image, 0, "false", 1, RELOAD, "takes images; dialect anthropic: and PDFs in tool results")
SETTING(MODEL, "profile.audio", BOOL, audio, 0, "false", 1, RELOAD, "takes audio; dialect openai only")
SETTING(MODEL, "profile.forced_tool", BOOL, forced_tool, 0, "true", 1, RELOAD, "can be forced to call a tool")
SETTING(MODEL, "profile.structured_output", BOOL, structured_output, 0, "false", 1, RELOAD, "has native structured output")
SETTING(MODEL, "profile.prefill", BOOL, prefill, 0, "false", 1, RELOAD, "continues a last message of the assistant")
SETTING(MODEL, "profile.temperature", RANGE, temperature, 0, "(anthropic: [0, 1] under 2023-06-01, later null; openai, openai-responses: [0, 2])", 10, RELOAD, "range [lowest, highest]; null: never sent")
CHOICE(MODEL, "profile.max_tokens_field", max_tokens_field, "max_tokens|max_completion_tokens", "(max_completion_tokens on api.openai.com, else max_tokens)", RELOAD, "how the request names its token limit")
SETTING(MODEL, "profile.reasoning", BOOL, reasoning, 0, "false", 1, RELOAD, "a reasoning model")
SETTING(MODEL, "profile.tools_need_effort_none", BOOL, tools_need_effort_none, 0, "false", 1, RELOAD, "tools work with reasoning effort none only")
SETTING(MODEL, "profile.replay_reasoning", BOOL, replay_reasoning, 0, "false", 1, RELOAD, "wants its reasoning back in a tool loop: DeepSeek's reasoning_content, encrypted reasoning of openai-responses. What others want back (thinking and signatures) they get without being asked")
SETTING(MODEL, "profile.text_content_as_string", BOOL, text_content_as_string, 0, "false", 1, RELOAD, "takes text content as one string only")
SETTING(MODEL, "profile.user_after_tool", BOOL, user_after_tool, 0, "true", 1, RELOAD, "takes a user message right after tool results")
SETTING(MODEL, "profile.think_tags", BOOL, think_tags, 0, "false", 1, RELOAD, "writes its thoughts between <think> tags")
SETTING(MODEL, "profile.audio_as_string", BOOL, audio_as_string, 0, "false", 1, RELOAD, "takes audio as one string (its data), not as an object with data and format; dialect openai only")
SETTING(MODEL, "profile.count_tokens", BOOL, count_tokens, 0, "true", 1, RELOAD, "asks the provider when a caller wants the tokens of a request counted (/v1/messages/count_tokens); false: for hosts that have no such path or answer with a stub: the gateway estimates; dialect anthropic only")
SETTING(MODEL, "profile.stream_usage", BOOL, stream_usage, 0, "true", 1, RELOAD, "asks for the usage of a stream (stream_options); false: for hosts that refuse that member and send the usage anyway; dialect openai only")
SETTING(MODEL, "profile.max_tools", COUNT, max_tools, 1, "(128 on api.openai.com and *.openai.azure.com, else any number)", 65534, RELOAD, "tools that the provider takes; a request with more goes to another model, or is refused")
SETTING(MODEL, "profile.merge_same_role", BOOL, merge_same_role, 0, "false", 1, RELOAD, "neighbouring messages of one role become one, for chat templates that refuse them; dialect openai only")
CHOICE(MODEL, "profile.user_id_field", user_id_field, "safety_identifier|user|none", "(anthropic: metadata.user_id; else safety_identifier)", RELOAD, "where a request's metadata.user_id goes; none: nowhere, for hosts that refuse members that they do not know. anthropic: none, or leave it out")
CHOICE(MODEL, "profile.id_rule", id_rule, "none|alnum9", "none", RELOAD, "what tool-call ids must look like: alnum9 is nine letters and digits")
SETTING(MODEL, "profile.body", TEXT, body, 2, "(none)", 4096, RELOAD, "JSON object whose members every request to the model has as well, such as {\"reasoning_effort\": \"high\"}; none that the gateway writes itself")
SETTING(MODEL, "enabled", BOOL, enabled, 0, "true", 1, RELOAD, "false: not used")

#define GRANT(key, type, field, minimum, preset, maximum, meaning) \
	SETTING(PLAN, key, type, field, minimum, preset, maximum, RELOAD, meaning)
#define GRANT_CHOICE(key, field, choices, preset, meaning) CHOICE(PLAN, key, field, choices, preset, RELOAD, meaning)
#define GRANT_LIST(key, type, field, most, meaning) LIST(PLAN, key, type, field, most, RELOAD, meaning)
#define GRANT_ENTRIES(key, field, entry, most, meaning) \
	ENTRIES(PLAN, key, LIST, field, entry, 0, "(none)", most, RELOAD, meaning)
#include "gateway/settings/tbl/grants.h"
#undef GRANT
#undef GRANT_CHOICE
#undef GRANT_LIST
#undef GRANT_ENTRIES
#define LIMIT(limit, unit, minimum, preset, maximum, meaning) \
	LIMIT_SETTING(PLAN, limit, unit, minimum, preset, maximum, meaning)
#include "tenants/tbl/limits.h"
#undef LIMIT
CHOICE(PLAN, "limits.max_tokens_mode", max_tokens_mode, "clamp|refuse", "clamp", RELOAD, "what happens to a request over max_tokens")
CHOICE(PLAN, "limits.tool_rounds_action", tool_rounds_action, "final|refuse", "final", RELOAD, "at tool_rounds: one last answer without calls, or a refusal")
SETTING(PLAN, "limits.enforce", BOOL, enforce, 0, "true", 1, RELOAD, "false: all limits here count and refuse nothing (requests that would be refused: sluice_limit_decisions_total)")
SETTING(PLAN, "limits.mcp_messages_per_minute", COUNT, mcp_messages_per_minute, 1, "600", QUOTA_RATE_MAX, RELOAD, "messages of clients a minute to all MCP servers together, those of a batch and each GET included; each gateway counts alone")
SETTING(PLAN, "limits.mcp_sessions", COUNT, mcp_sessions, 1, "100", 1000000, RELOAD, "sessions with MCP servers at once, on all gateways of one Redis together")
#define LIMIT(limit, unit, minimum, preset, maximum, meaning)
#define COUNTED(limit, unit, minimum, preset, maximum, meaning) \
	PART_LIMIT(PLAN, "limits.per_server.", per_server.limits, limit, unit, minimum, preset, maximum, meaning)
#include "tenants/tbl/limits.h"
#undef LIMIT
SETTING(PLAN, "limits.per_server.enforce", BOOL, per_server.enforce, 0, "true", 1, RELOAD, "false: the limits of each server count and refuse nothing")
ENTRIES(PLAN, "limits.per_model", LATE_MAP, per_model, MODEL_LIMITS, 0, "(none)", 64, RELOAD, "limits of some models together, by a glob over their ids; at most two globs for one model")
CHOICE(PLAN, "unknown_tool_calls", unknown_tool_calls, "accept|refuse", "accept", RELOAD, "tool results for calls that were not issued here, to the same server and in the same session, or longer than an hour ago")
CHOICE(PLAN, "on_store_failure.rates", away_rates, "local|closed", "local", RELOAD, "while Redis is not there: requests, tokens and places are limited by each gateway alone, or refused")
SETTING(PLAN, "on_store_failure.budget", AWAY_USD, away_usd, 1, "closed", 10000000000000000, RELOAD, "while Redis is not there: requests that cost money are refused, or each gateway spends up to {local: USD} a day")
LIST(PLAN, "fronts", FRONT, fronts, 3, RELOAD, "what the tenant may ask for: sampling is /v1/sampling, mcp /mcp/NAME, direct the APIs of providers; without it all of them")
LIST(PLAN, "mcp_servers.allow", GLOB, mcp_allow, 1024, RELOAD, "MCP servers that the tenant reaches at /mcp/NAME: globs over the names under mcp_servers; none without this")
LIST(PLAN, "mcp_servers.deny", GLOB, mcp_deny, 1024, RELOAD, "wins over allow")
LIST(PLAN, "direct.server_tools", GLOB, server_tools, 64, RELOAD, "of the direct APIs: tools that a provider runs and bills, by type: as the API writes it, without the date at its end, or a glob (web_search_*); members that are as good as one by their name (mcp_servers, web_search_options, audio, moderation). The model needs price.server_tool. Without this none")
VALUES(PLAN, "direct.service_tiers", FACTOR, service_tiers, 16, RELOAD, "of the direct APIs: values of service_tier and speed beside the usual ones, each with the factor by which it changes the price of tokens: {flex: 1.0, priority: 2.0}")
SETTING(PLAN, "direct.remote_files", BOOL, remote_files, 0, "false", 1, RELOAD, "of the direct APIs: content may be a URL. The provider fetches it: one of your own can be made to read your network")
SETTING(PLAN, "direct.n", COUNT, answers, 1, "1", 1000, RELOAD, "of the direct APIs: answers to one request (n) at most")
SETTING(PLAN, "direct.tool_rounds", COUNT, direct_rounds, 1, "(tool loops do not count)", 1000000, RELOAD, "of the direct APIs, instead of limits.tool_rounds: rounds of one tool loop; limits.tool_rounds_action says what happens then. With it, loop_tokens, loop_usd and unknown_tool_calls are about these APIs, too")
ENTRIES(PLAN, "servers", LATE_MAP, servers, SERVER, 0, "(none)", 1000, RELOAD, "what differs for one MCP server of the tenant (the server of its keys), by name")

#define LIMIT(limit, unit, minimum, preset, maximum, meaning)
#define COUNTED(limit, unit, minimum, preset, maximum, meaning) \
	PART_LIMIT(MODEL_LIMITS, "", limits, limit, unit, minimum, preset, maximum, meaning)
#include "tenants/tbl/limits.h"
#undef LIMIT
SETTING(MODEL_LIMITS, "enforce", BOOL, enforce, 0, "(true)", 1, RELOAD, "false: counts and refuses nothing")

#define GRANT(key, type, field, minimum, preset, maximum, meaning) \
	SETTING(SERVER, key, type, field, minimum, preset, maximum, RELOAD, meaning)
#define GRANT_CHOICE(key, field, choices, preset, meaning) CHOICE(SERVER, key, field, choices, preset, RELOAD, meaning)
#define GRANT_LIST(key, type, field, most, meaning) LIST(SERVER, key, type, field, most, RELOAD, meaning)
#define GRANT_ENTRIES(key, field, entry, most, meaning) \
	ENTRIES(SERVER, key, LIST, field, entry, 0, "(none)", most, RELOAD, meaning)
#include "gateway/settings/tbl/grants.h"
#undef GRANT
#undef GRANT_CHOICE
#undef GRANT_LIST
#undef GRANT_ENTRIES
#define LIMIT(limit, unit, minimum, preset, maximum, meaning) \
	LIMIT_SETTING(SERVER, limit, unit, minimum, preset, maximum, meaning)
#define COUNTED(limit, unit, minimum, preset, maximum, meaning) \
	PART_LIMIT(SERVER, "limits.", per_server.limits, limit, unit, minimum, preset, maximum, meaning)
#include "tenants/tbl/limits.h"
#undef LIMIT
CHOICE(SERVER, "limits.max_tokens_mode", max_tokens_mode, "clamp|refuse", "clamp", RELOAD, "what happens to a request over max_tokens")
CHOICE(SERVER, "limits.tool_rounds_action", tool_rounds_action, "final|refuse", "final", RELOAD, "at tool_rounds: one last answer without calls, or a refusal")
SETTING(SERVER, "limits.enforce", BOOL, per_server.enforce, 0, "true", 1, RELOAD, "false: this server's own limits count and refuse nothing")

SETTING(ALIAS, "hint", GLOB, hint, 1, NEEDED, 128, RELOAD, "what callers name: a glob over the whole hint, upper and lower case alike")
LIST(ALIAS, "models", GLOB, models, 64, RELOAD, "the models meant: ids, or globs over them; the score chooses among those that are permitted")

SETTING(TENANT, "id", ID, id, 1, NEEDED, 128, RELOAD, "unique")
SETTING(TENANT, "plan", ID, plan_name, 1, "(the defaults of a plan)", 128, RELOAD, "a name under plans")
ENTRIES(TENANT, "keys", LIST, keys, TENANT_KEY, 0, "(none)", 1000, RELOAD, "what it authenticates with; `sluice key` makes one")
SETTING(TENANT, "disabled", BOOL, disabled, 0, "false", 1, RELOAD, "its keys are known and refused")
SETTING(TENANT, "files", FILES, files, 1, "(none)", 4096, RELOAD, "instead of a tenant: a glob of files, each a list of tenants; a folder that its wildcards lead to has to be readable")
LIST(TENANT, "names", ID, names, 64, RELOAD, "what callers' certificates and tokens call it, instead of its id; DNS names in lower case")

SETTING(TENANT_KEY, "sha256", SHA256, sha256, 64, NEEDED, 64, RELOAD, "lower-case hex SHA-256 of the key")
SETTING(TENANT_KEY, "server", ID, server, 1, "(not said)", 128, RELOAD, "the MCP server that uses the key")
