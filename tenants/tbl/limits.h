/* limits.h - every number a plan's `limits` may hold: LIMIT(limit, unit, minimum, default, maximum, meaning)
 *
 * `limit` is the key in the configuration and the name in a refusal (data.limit). Numbers are in the
 * unit of struct tenant_limits, which the column names: the configuration writes USD and durations,
 * the record holds nano-USD and nanoseconds. LIMIT_DERIVED as a default: computed from the rate when
 * the key is absent (requests_burst max(1, a tenth), tokens_burst a whole minute's figure).
 * LIMIT_NONE as a default: no such limit when the key is absent. COUNTED rows, with the same columns,
 * are what the store counts: they are limits of a server and of models as well. DESIGN 4.2. */
#ifndef COUNTED
#define COUNTED LIMIT
#endif
COUNTED(requests_per_minute, "requests", 1, 60, QUOTA_RATE_MAX, "requests a minute")
COUNTED(requests_burst, "requests", 1, LIMIT_DERIVED, QUOTA_RATE_MAX, "requests at once; default: max(1, a tenth of requests_per_minute)")
COUNTED(tokens_per_minute, "tokens", 1, 100000, QUOTA_RATE_MAX, "tokens a minute, estimated before and settled after the call")
COUNTED(tokens_burst, "tokens", 1, LIMIT_DERIVED, QUOTA_RATE_MAX, "tokens at once; default: tokens_per_minute")
COUNTED(concurrent, "requests", 1, 8, 1000000, "requests in flight")
LIMIT(count_tokens_per_minute, "requests", 1, LIMIT_DERIVED, QUOTA_RATE_MAX, "requests to /v1/messages/count_tokens a minute, which cost neither tokens nor money, nor any of requests_per_minute; default: 10 x requests_per_minute")
LIMIT(max_tokens, "tokens", 1, 4096, 1000000000, "highest maxTokens; max_tokens_mode says whether more is clamped or refused")
LIMIT(tool_rounds, "rounds", 1, 10, 1000000, "rounds of one tool loop; tool_rounds_action says what happens then")
LIMIT(loop_tokens, "tokens", 1, 200000, 1000000000000, "tokens of one tool loop, retries and forks included; who has spent them is refused")
LIMIT(loop_usd, "nano-USD", 0, LIMIT_NONE, 10000000000000000, "money of one tool loop, likewise; who has spent it is refused")
COUNTED(usd_per_day, "nano-USD", 0, 5000000000, 10000000000000000, "money a UTC day")
COUNTED(usd_per_month, "nano-USD", 0, LIMIT_NONE, 10000000000000000, "money a UTC month")
LIMIT(deadline, "ns", 1 * MSEC, 55 * SEC, 3600 * SEC, "of a whole request, retries included")
LIMIT(deadline_progress, "ns", 1 * MSEC, 600 * SEC, 3600 * SEC, "the same where the caller is told about progress (an event stream)")
#undef COUNTED
