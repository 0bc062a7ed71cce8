#include "bench/sim/sim_admin.h"

#include "bench/sim/sim_answer.h"
#include "bench/sim/sim_json.h"
#include "codec/base/must.h"

typedef unsigned admin_fn(struct sim_shared *shared, const struct sim_http *http,
			  struct sim_buf *body);

/* "ok": 3, "error-429": 1; those that never happened are left out. */
static void put_behaviours(const struct sim_counters *counters, struct sim_buf *body)
{
	const char *before = "";

	for (size_t i = 0; i < COUNT_OF(counters->faults); i++) {
		uint64_t count = atomic_load(&counters->faults[i]);

		if (count == 0 || i == SIM_FAULT_ERROR)
			continue;
		sim_buf_format(body, "$\"$\":#", slice_str(before),
			       slice_str(sim_spec_fault_name((enum sim_fault)i)), count);
		before = ",";
	}
	for (size_t i = 0; i < COUNT_OF(counters->statuses); i++) {
		uint64_t count = atomic_load(&counters->statuses[i]);

		if (count == 0)
			continue;
		sim_buf_format(body, "$\"error-#\":#", slice_str(before), (uint64_t)i, count);
		before = ",";
	}
}

static unsigned get_stats(struct sim_shared *shared, const struct sim_http *http,
			  struct sim_buf *body)
{
	const struct sim_counters *c = &shared->counters;
	const struct {
		const char *name;
		const _Atomic uint64_t *counter;
	} rows[] = {
		{ "requests", &c->requests },
		{ "messages", &c->by_dialect[SIM_ANTHROPIC] },
		{ "chat", &c->by_dialect[SIM_OPENAI] },
		{ "responses", &c->by_dialect[SIM_RESPONSES] },
		{ "streams", &c->streams },
		{ "pauses", &c->pauses },
		{ "refused", &c->refused },
		{ "tool_calls", &c->tool_calls },
		{ "connections", &c->connections },
		{ "in_flight", &c->in_flight },
		{ "in_flight_high", &c->in_flight_high },
		{ "cancelled", &c->cancelled },
		{ "health", &c->health },
		{ "mcp", &c->mcp },
	};

	(void)http;
	sim_buf_text(body, "{");
	for (size_t i = 0; i < COUNT_OF(rows); i++)
		sim_buf_format(body, "\"$\":#,", slice_str(rows[i].name),
			       atomic_load(rows[i].counter));
	sim_buf_text(body, "\"behaviours\":{");
	put_behaviours(c, body);
	sim_buf_text(body, "},\"keys\":");
	sim_keys_print(&shared->keys, body);
	sim_buf_text(body, "}\n");
	return 200;
}

static void put_string(struct sim_buf *out, struct slice s)
{
	sim_buf_text(out, "\"");
	sim_buf_escaped(out, s);
	sim_buf_text(out, "\"");
}

/* The headers as an object with lower-case names; of a repeated one the last counts. */
static void put_headers(struct sim_buf *body, struct slice lines)
{
	const char *before = "";

	while (lines.len > 2) {
		struct slice value = slice_cut(&lines, '\n');
		struct slice name = slice_cut(&value, ':');

		value = slice_trim(slice_of(value.at, value.len - 1)); /* the CR */
		sim_buf_text(body, before);
		size_t mark = body->len;

		put_string(body, name);
		for (size_t i = mark; i < body->len; i++)
			if (body->at[i] >= 'A' && body->at[i] <= 'Z')
				body->at[i] = (char)(body->at[i] | 0x20);
		sim_buf_text(body, ":");
		put_string(body, value);
		before = ",";
	}
}

static void put_last(const struct sim_last *last, struct sim_buf *body)
{
	struct slice head = slice_of(last->bytes.at, last->head_len);
	struct slice sent = slice_of(head.at + head.len, last->bytes.len - head.len);
	struct slice line = slice_cut(&head, '\n');

	sim_buf_format(body,
		       "{\"number\":#,\"connection\":#,\"position\":#,\"method\":", last->number,
		       last->connection, last->position);
	put_string(body, slice_cut(&line, ' '));
	sim_buf_text(body, ",\"path\":");
	put_string(body, slice_cut(&line, ' '));
	sim_buf_text(body, ",\"headers\":{");
	put_headers(body, head);
	sim_buf_text(body, "},\"tls\":");
	if (last->tls[0] == '\0') {
		sim_buf_text(body, "null");
	} else {
		sim_buf_format(body, "{\"version\":\"$\",\"resumed\":$,\"server_name\":",
			       slice_str(last->tls), slice_str(last->resumed ? "true" : "false"));
		put_string(body, slice_str(last->server_name));
		sim_buf_text(body, "}");
	}
	sim_buf_text(body, ",\"body\":");
	if (sent.len > 0 && sim_json_whole(sent)) {
		sim_buf_add(body, sent);
	} else {
		sim_buf_text(body, "null,\"body_text\":");
		put_string(body, sent);
	}
	sim_buf_text(body, "}\n");
}

static unsigned get_last(struct sim_shared *shared, const struct sim_http *http,
			 struct sim_buf *body)
{
	(void)http;
	must(pthread_mutex_lock(&shared->last.lock) == 0);
	bool any = shared->last.number > 0;

	if (any)
		put_last(&shared->last, body);
	else
		sim_buf_text(body, "{\"error\":\"no request yet\"}\n");
	must(pthread_mutex_unlock(&shared->last.lock) == 0);
	return any ? 200 : 404;
}

static unsigned get_last_body(struct sim_shared *shared, const struct sim_http *http,
			      struct sim_buf *body)
{
	struct sim_last *last = &shared->last;

	(void)http;
	must(pthread_mutex_lock(&last->lock) == 0);
	bool any = last->number > 0;

	if (any)
		sim_buf_add(body, slice_of(last->bytes.at + last->head_len,
					   last->bytes.len - last->head_len));
	must(pthread_mutex_unlock(&last->lock) == 0);
	return any ? 200 : 404;
}

static unsigned post_reset(struct sim_shared *shared, const struct sim_http *http,
			   struct sim_buf *body)
{
	(void)http;
	sim_shared_reset(shared);
	sim_buf_text(body, "{}\n");
	return 200;
}

static unsigned post_default(struct sim_shared *shared, const struct sim_http *http,
			     struct sim_buf *body)
{
	struct sim_spec spec = shared->start_spec;
	struct slice wrong;

	if (!sim_spec_parse(&spec, http->body, &wrong)) {
		sim_buf_text(body, "{\"error\":\"no such behaviour, or a bad argument: ");
		sim_buf_escaped(body, wrong);
		sim_buf_text(body, "\"}\n");
		return 400;
	}
	sim_shared_set_spec(shared, &spec);
	sim_buf_text(body, "{}\n");
	return 200;
}

void sim_admin_answer(struct sim_shared *shared, const struct sim_http *http, struct slice path,
		      struct sim_buf *scratch, struct sim_buf *out)
{
	static const struct {
		struct slice method, path;
		admin_fn *answer;
	} table[] = {
		{ SLICE_INIT("GET"), SLICE_INIT("/stats"), get_stats },
		{ SLICE_INIT("GET"), SLICE_INIT("/last"), get_last },
		{ SLICE_INIT("GET"), SLICE_INIT("/last/body"), get_last_body },
		{ SLICE_INIT("POST"), SLICE_INIT("/reset"), post_reset },
		{ SLICE_INIT("POST"), SLICE_INIT("/default"), post_default },
	};
	unsigned status = 404;

	scratch->len = 0;
	for (size_t i = 0; i < COUNT_OF(table); i++) {
		if (!slice_eq(path, table[i].path))
			continue;
		status = 405;
		if (slice_eq(http->method, table[i].method)) {
			status = table[i].answer(shared, http, scratch);
			break;
		}
	}
	if (scratch->len == 0 && status != 200)
		sim_buf_text(scratch, "{\"error\":\"no such path, or another method\"}\n");
	sim_answer_plain(out, status, "application/json", NULL, slice_of(scratch->at, scratch->len),
			 http->keep_alive);
}
