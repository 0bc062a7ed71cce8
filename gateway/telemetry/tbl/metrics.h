/* metrics.h - every metric: METRIC(symbol, name, type, labels, unit, meaning)
 *
 * Feeds the scrape, `sluice metrics` and the tests. Names are the contract of DESIGN 4.5. Labels are
 * a list with commas. The order is that of the scrape. */

METRIC(REQUESTS, "sluice_requests_total", COUNTER, "tenant,outcome", "requests",
       "Requests answered. tenant is _none where nobody was authenticated, _other beyond metrics.tenants; outcome is ok or the error's reason")
METRIC(TOKENS, "sluice_tokens_total", COUNTER, "tenant,direction", "tokens",
       "Tokens that providers counted; direction is input or output")
METRIC(USD, "sluice_usd_total", COUNTER, "tenant", "US dollars",
       "Money spent at the prices of the configuration")
METRIC(REQUEST_DURATION, "sluice_request_duration_seconds", HISTOGRAM, "model,provider,outcome", "seconds",
       "From the complete request to its answer; model and provider are _none where none was chosen, _other beyond 2,047 pairs since the start")
METRIC(QUEUE, "sluice_queue_seconds", HISTOGRAM, "", "seconds",
       "Time that requests which reached a provider waited for a connection to it")
METRIC(TTFT, "sluice_ttft_seconds", HISTOGRAM, "model,provider", "seconds",
       "From the request sent to the provider to the first byte of its answer")
METRIC(IN_FLIGHT, "sluice_in_flight", GAUGE, "", "requests", "Requests whose answer has not left yet")
METRIC(CONNECTIONS, "sluice_connections", GAUGE, "", "connections", "Client connections open")
METRIC(ATTEMPTS, "sluice_provider_attempts_total", COUNTER, "provider,class", "attempts",
       "Attempts at a provider, _other beyond 511 names since the start; class is ok or the reason of the failure")
METRIC(POOL_CONNECTIONS, "sluice_pool_connections", GAUGE, "provider,state", "connections",
       "Provider connections that are idle, busy or connecting, and calls queued for one")
METRIC(CHECKS, "sluice_endpoint_checks_total", COUNTER, "provider,endpoint,result", "checks",
       "Active checks of endpoints (providers.*.check); result is ok or failed")
METRIC(ENDPOINT_UP, "sluice_endpoint_up", GAUGE, "provider,endpoint", "1 or 0",
       "Whether active checks let an endpoint get calls")
METRIC(BREAKER_STATE, "sluice_breaker_state", GAUGE, "provider,endpoint", "state",
       "Whether an endpoint gets calls: 0 closed (yes), 1 half open (one at a time, to see), 2 open (no); of the workers that see it worst")
METRIC(KEY_COOLDOWN, "sluice_key_cooldown_seconds", GAUGE, "provider,key", "seconds",
       "For how long a provider's key is left alone, after a rate limit, a refusal or spent money; key is its place in providers.*.keys, from 0; the longest of the workers'")
METRIC(LIMIT_DECISIONS, "sluice_limit_decisions_total", COUNTER, "limit,decision", "decisions",
       "Decisions of the tenants' limits; limit is all where every limit granted, else the one that refused (per_server. and per_model. before its name where it is not the tenant's own), or sessions, of which too many were begun, or held_bytes or copies (that wait), of which the tenant has its share; would_refuse is a refusal that enforce: false let pass, counted beside granted")
METRIC(LIMIT_SLOTS, "sluice_limit_slots", GAUGE, "state", "slots",
       "Places for what is counted against limits: all, and claimed (by tenants, and by their servers and globs that have limits of their own, until the supervisor ends). New servers are refused where half is claimed, new globs where three quarters are")
METRIC(LIMITER_MODE, "sluice_limiter_mode", GAUGE, "mode", "workers",
       "Workers whose limits are decided by this machine alone (memory), by Redis (shared), or, while Redis is not there, as on_store_failure says (away)")
METRIC(STORE_FAULT, "sluice_store_fault", GAUGE, "fault", "workers",
       "Workers that do not use Redis, by why: connecting (for the first time), unreachable, silent (no answer), late (after store.deadline), error (its answers), protocol (no Redis), cluster (a Redis Cluster of several shards), tls_port (it speaks TLS, store.url says redis://), plain_port (it does not, store.url says rediss://)")
METRIC(AWAY_DECISIONS, "sluice_away_decisions_total", COUNTER, "function,decision", "requests",
       "Requests decided while Redis is not there: function is rates, or budget for those that cost money; decision is local (by this gateway's own limits), closed (refused), or waited (it would have been refused, but Redis was only slow, and its answer came within store.patience)")
METRIC(AWAY_USD, "sluice_away_usd_total", COUNTER, "", "US dollars",
       "Money reserved while Redis is not there: what all gateways together may have granted too much")
METRIC(AWAY_USD_BOUND, "sluice_away_usd_bound", GAUGE, "", "US dollars",
       "The most that sluice_away_usd_total can grow in a UTC day: the sum of the tenants' on_store_failure.budget")
METRIC(STATE_AWAY, "sluice_state_away_total", COUNTER, "what", "requests",
       "Requests of sessions and tool loops while Redis is not there: a recall is answered with what this process knows, a note is known to this process only; and claims of requests that are not made twice, which other gateways do not know of")
METRIC(IDEMPOTENCY, "sluice_once_requests_total", COUNTER, "result", "requests",
       "Requests with an Idempotency-Key or of a session: first (made), answered (like the first: a copy), or a copy refused: done (answered too long ago), conflict (another body), elsewhere (under way at another gateway), late (its deadline passed while it waited), full (no room for its key; 8,192 copies wait already, or as many of the tenant as may)")
METRIC(STATE_RECORDS, "sluice_state_records", GAUGE, "kind", "records",
       "Sessions, tool loops, tool calls issued in them, and private blocks of answers in the memory of this process; those that have expired count until their place is looked at")
METRIC(STATE_EVICTIONS, "sluice_state_evictions_total", COUNTER, "kind", "records",
       "Records that went before their time, for want of room")
METRIC(STATE_BLOCKS_BYTES, "sluice_state_blocks_bytes", GAUGE, "", "bytes",
       "Memory that private blocks take, of store.blocks.bytes")
METRIC(STORE_COMMANDS, "sluice_store_commands_total", COUNTER, "result", "commands",
       "Commands sent to Redis: ok, error, late (answered after store.deadline), lost (never answered)")
METRIC(STORE_SECONDS, "sluice_store_seconds", HISTOGRAM, "", "seconds",
       "From a command to its answer, or to the loss of the connection")
METRIC(SETTLED_WITHOUT_USAGE, "sluice_settled_without_usage_total", COUNTER, "", "attempts",
       "Attempts whose usage never arrived: charged by what was seen of the answer, or their full reservation where nothing was")
METRIC(UNKNOWN_CALLS, "sluice_unknown_tool_calls_total", COUNTER, "", "calls",
       "Calls in the last round of a request's history that were not issued here, to the same server and in the same session, within the last hour: invented, another's, or too old")
METRIC(BUDGET_OVERRUN, "sluice_budget_overrun_usd_total", COUNTER, "", "US dollars",
       "Money spent beyond what was reserved for the attempt")
METRIC(GUARD_KILLS, "sluice_guard_kills_total", COUNTER, "cause", "connections",
       "Client connections closed by the guard in front of the HTTP reader, and requests over HTTP/2 that it ended early while their connections went on")
METRIC(TLS_HANDSHAKES, "sluice_tls_handshakes_total", COUNTER, "result", "handshakes",
       "TLS handshakes of clients; result is full, resumed or failed")
METRIC(JWT_CHECKS, "sluice_jwt_checks_total", COUNTER, "result", "tokens",
       "Tokens (JWT) of callers; result is remembered (its signature was found right before), verified, or why it was refused: the data.token of the answer. signature that grows is somebody guessing, or an issuer whose keys are not those at jwks")
METRIC(JWKS_FETCHES, "sluice_jwks_fetches_total", COUNTER, "jwks,result", "fetches",
       "Attempts to fetch the keys of an issuer; result is ok or failed")
METRIC(JWKS_KEYS, "sluice_jwks_keys", GAUGE, "jwks", "keys",
       "Keys of an issuer that can be used now; 0: its tokens are refused")
METRIC(JWKS_AGE, "sluice_jwks_age_seconds", GAUGE, "jwks", "seconds",
       "Since the keys of an issuer were last fetched; after a day they are not used any longer")
METRIC(MCP_MESSAGES, "sluice_mcp_messages_total", COUNTER, "server,direction,kind", "messages",
       "Messages to (direction client) and of (server) an MCP server behind the proxy: those of clients that were read, in a batch each, and those of servers that passed; kind is request, response, notification or other (of clients a GET, a DELETE, or what is none of them). A server's arrays are not looked into. server is _other beyond 2,048 names since the start, in each of these six families")
METRIC(MCP_SESSIONS, "sluice_mcp_sessions", GAUGE, "server", "sessions",
       "Sessions with an MCP server that are counted at this gateway; one that nobody uses counts for an hour")
METRIC(MCP_SAMPLINGS, "sluice_mcp_samplings_total", COUNTER, "server,outcome", "samplings",
       "Samplings of an MCP server that were answered here: outcome is ok, or the reason of the error that it got, or cancelled (it was not answered: the server gave it up, or the session ended). Beside these, answers that did not arrive: server_unavailable, server_configuration (the server said 401 or 403), session_unknown (404), server_answer_invalid (another refusal)")
METRIC(MCP_UPSTREAM, "sluice_mcp_upstream_seconds", HISTOGRAM, "server", "seconds",
       "From a client's POST to the first byte of the MCP server's answer")
METRIC(MCP_STREAMS, "sluice_mcp_streams", GAUGE, "server,kind", "streams",
       "Event streams open: of POSTs (post), of clients' GETs (get), and the gateway's own of sessions (own)")
METRIC(MCP_FAILURES, "sluice_mcp_failures_total", COUNTER, "server,outcome", "requests",
       "Requests of clients that failed for their MCP server: outcome is server_unavailable, server_answer_invalid, or server_configuration (the server said 401 or 403)")
METRIC(RELOADS, "sluice_reloads_total", COUNTER, "result", "reloads",
       "Configurations taken over (ok) and refused (refused) since this server process started")
METRIC(CONFIG_REFUSED, "sluice_config_refused", GAUGE, "", "1 or 0",
       "Whether the files on disk were refused when they were last read, so that a configuration from before is in force")
METRIC(CONFIG_TIMESTAMP, "sluice_config_timestamp_seconds", GAUGE, "", "seconds",
       "When the configuration in force was loaded, in seconds since 1970")
METRIC(DRAINING, "sluice_draining", GAUGE, "", "1 or 0",
       "Whether this gateway was told to end and lets its requests end first")
METRIC(RESTARTS, "sluice_restarts_total", COUNTER, "", "restarts",
       "Times the supervisor had to start the server process again; the other counters begin at 0 then")
METRIC(LOG_DROPPED, "sluice_log_dropped_total", COUNTER, "", "lines",
       "Log lines dropped because stdout was not read fast enough")
METRIC(BUILD_INFO, "sluice_build_info", GAUGE, "version", "1", "1, labelled with the version that runs")
METRIC(ARENA_CHUNKS_HIGH, "sluice_arena_chunks_high", GAUGE, "worker", "chunks of 4 KiB",
       "Most request memory that a worker had out at once")
METRIC(REQUESTS_SLAB_HIGH, "sluice_requests_slab_high", GAUGE, "worker", "requests",
       "Most requests that a worker held at once")
