#include "bench/sim/sim_keys.h"

#include <string.h>

#include "codec/base/must.h"

void sim_keys_init(struct sim_keys *keys)
{
	keys->count = 0;
	must(pthread_mutex_init(&keys->lock, NULL) == 0);
}

void sim_keys_fini(struct sim_keys *keys)
{
	must(pthread_mutex_destroy(&keys->lock) == 0);
}

void sim_keys_reset(struct sim_keys *keys)
{
	must(pthread_mutex_lock(&keys->lock) == 0);
	keys->count = 0;
	must(pthread_mutex_unlock(&keys->lock) == 0);
}

struct slice sim_keys_of(const struct sim_http *http, enum sim_dialect dialect)
{
	static const struct slice bearer = SLICE_INIT("Bearer ");
	struct slice key = sim_http_header(http, SLICE("x-api-key"));

	if (dialect != SIM_ANTHROPIC || slice_absent(key))
		key = sim_http_header(http, SLICE("authorization"));
	if (slice_starts(key, bearer))
		key = slice_of(key.at + bearer.len, key.len - bearer.len);
	return slice_absent(key) ? SLICE("") : key;
}

/* NULL: not to be counted. */
static struct sim_key *find(struct sim_keys *keys, struct slice name)
{
	struct sim_key *row;

	for (row = keys->rows; row < keys->rows + keys->count; row++)
		if (slice_eq(slice_str(row->name), name))
			return row;
	if (keys->count == COUNT_OF(keys->rows) || name.len >= sizeof(row->name))
		return NULL;
	keys->count++;
	*row = (struct sim_key){ 0 };
	if (name.len > 0)
		memcpy(row->name, name.at, name.len);
	return row;
}

static uint64_t what_is_left(uint64_t limit, uint64_t used)
{
	return limit > used ? limit - used : 0;
}

static struct sim_quota take(struct sim_key *row, const struct sim_spec *spec, uint64_t tokens,
			     nsec_t now)
{
	struct sim_quota quota = { .limit = spec->quota, .token_limit = spec->token_quota };

	row->requests++;
	if (quota.limit == 0 && quota.token_limit == 0)
		return quota;
	if (row->began == 0 || now >= row->began + spec->window) {
		row->began = now;
		row->used = row->tokens = 0;
	}
	quota.refused = (quota.limit != 0 && row->used >= quota.limit) ||
			(quota.token_limit != 0 && row->tokens >= quota.token_limit);
	if (quota.refused) {
		row->refused++;
	} else {
		row->used++;
		row->tokens += tokens;
	}
	quota.left = what_is_left(quota.limit, row->used);
	quota.tokens_left = what_is_left(quota.token_limit, row->tokens);
	quota.reset = row->began + spec->window - now;
	return quota;
}

struct sim_quota sim_keys_take(struct sim_keys *keys, struct slice key, const struct sim_spec *spec,
			       uint64_t tokens, nsec_t now)
{
	struct sim_quota quota = { 0 };

	must(pthread_mutex_lock(&keys->lock) == 0);
	struct sim_key *row = find(keys, key);

	if (row != NULL)
		quota = take(row, spec, tokens, now);
	must(pthread_mutex_unlock(&keys->lock) == 0);
	return quota;
}

/* ---- headers ---- */

/* As Go writes durations, in whole milliseconds: 20ms, 1.5s, 6m0s, 1h0m0s. */
static void add_duration(struct sim_buf *out, nsec_t time)
{
	const uint64_t ms = (time + MSEC - 1) / MSEC, seconds = ms / 1000;

	if (seconds == 0) {
		sim_buf_format(out, "#ms", ms);
		return;
	}
	if (seconds >= 3600)
		sim_buf_format(out, "#h", seconds / 3600);
	if (seconds >= 60)
		sim_buf_format(out, "#m", seconds / 60 % 60);
	sim_buf_decimal(out, seconds % 60);
	if (ms % 1000 != 0)
		sim_buf_format(out, ".###", ms / 100 % 10, ms / 10 % 10, ms % 10);
	sim_buf_text(out, "s");
}

/* Limit, rest and reset of `what`. */
static void add_three(struct sim_buf *out, enum sim_dialect dialect, const char *what,
		      uint64_t limit, uint64_t left, nsec_t reset)
{
	const bool anthropic = dialect == SIM_ANTHROPIC;
	const char *format[] = {
		anthropic ? "anthropic-ratelimit-$-limit: #\r\n" : "x-ratelimit-limit-$: #\r\n",
		anthropic ? "anthropic-ratelimit-$-remaining: #\r\n"
			  : "x-ratelimit-remaining-$: #\r\n",
		anthropic ? "anthropic-ratelimit-$-reset: " : "x-ratelimit-reset-$: ",
	};

	if (limit == 0)
		return;
	sim_buf_format(out, format[0], slice_str(what), limit);
	sim_buf_format(out, format[1], slice_str(what), left);
	sim_buf_format(out, format[2], slice_str(what));
	if (anthropic)
		sim_buf_date(out, "%Y-%m-%dT%H:%M:%SZ", reset);
	else
		add_duration(out, reset);
	sim_buf_text(out, "\r\n");
}

void sim_keys_headers(const struct sim_quota *quota, enum sim_dialect dialect, struct sim_buf *out)
{
	add_three(out, dialect, "requests", quota->limit, quota->left, quota->reset);
	add_three(out, dialect, "tokens", quota->token_limit, quota->tokens_left, quota->reset);
}

void sim_keys_print(struct sim_keys *keys, struct sim_buf *out)
{
	const char *before = "\"";

	sim_buf_text(out, "{");
	must(pthread_mutex_lock(&keys->lock) == 0);
	for (const struct sim_key *row = keys->rows; row < keys->rows + keys->count; row++) {
		sim_buf_text(out, before);
		sim_buf_escaped(out, slice_str(row->name));
		sim_buf_format(out, "\":{\"requests\":#,\"refused\":#}", row->requests,
			       row->refused);
		before = ",\"";
	}
	must(pthread_mutex_unlock(&keys->lock) == 0);
	sim_buf_text(out, "}");
}
