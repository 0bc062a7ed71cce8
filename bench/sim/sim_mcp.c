#include "bench/sim/sim_mcp.h"

#include "bench/sim/sim_conn.h"
#include "bench/sim/sim_json.h"

enum { EVENTS = 3 /* of an answer of the tool "events" */ };

/* ---- answers ---- */

static struct slice id_of(const struct sim_conn *conn)
{
	return sim_json_field(conn->http.body, SLICE("id"));
}

/* The response to tools/call. */
static void put_result(const struct sim_conn *conn, struct sim_buf *out)
{
	sim_buf_format(out,
		       "{\"jsonrpc\":\"2.0\",\"id\":$,\"result\":{\"content\":[{\"type\":\"text\","
		       "\"text\":\"",
		       id_of(conn));
	sim_answer_filler(out, 0, conn->spec.size);
	sim_buf_text(out, "\"}],\"isError\":false}}");
}

/* What is in the loop's scratch buffer, as JSON. */
static bool answer_json(struct sim_conn *conn, unsigned status, const char *headers)
{
	const struct sim_buf *body = &conn->loop->scratch;

	sim_answer_plain(&conn->out, status, "application/json", headers,
			 slice_of(body->at, body->len), conn->http.keep_alive);
	return true;
}

/* The same as an event, which is a chunk of its own. */
static void put_event(struct sim_conn *conn)
{
	static const struct slice before = SLICE_INIT("event: message\ndata: ");
	const struct sim_buf *message = &conn->loop->scratch;

	sim_buf_hex(&conn->out, before.len + message->len + 2);
	sim_buf_format(&conn->out, "\r\n$$\n\n\r\n", before, slice_of(message->at, message->len));
}

static void begin_stream(struct sim_conn *conn)
{
	sim_buf_text(&conn->out, "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
				 "cache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n");
}

static bool end_stream(struct sim_conn *conn)
{
	conn->loop->scratch.len = 0;
	put_result(conn, &conn->loop->scratch);
	put_event(conn);
	sim_buf_text(&conn->out, "0\r\n\r\n");
	return true;
}

/* ---- tools ---- */

static bool events_on(struct sim_conn *conn)
{
	struct sim_buf *scratch = &conn->loop->scratch;

	if (conn->step == 0)
		begin_stream(conn);
	while (++conn->step < EVENTS) {
		scratch->len = 0;
		sim_buf_format(scratch,
			       "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\","
			       "\"params\":{\"level\":\"info\",\"data\":\"step #\"}}",
			       conn->step);
		put_event(conn);
		if (conn->spec.pace == 0)
			continue;
		conn->phase = SIM_CONN_STREAMING;
		sim_loop_at(conn->loop, conn, conn->loop->now + conn->spec.pace);
		return false;
	}
	return end_stream(conn);
}

static struct sim_conn **asking(struct sim_loop *loop, uint64_t number)
{
	return &loop->mcp.asking[number % SIM_MCP_ASKING];
}

static bool ask(struct sim_conn *conn)
{
	struct sim_conn **place = asking(conn->loop, conn->number);

	if (*place != NULL) {
		sim_buf_format(&conn->loop->scratch,
			       "{\"jsonrpc\":\"2.0\",\"id\":$,\"error\":{\"code\":-32603,"
			       "\"message\":\"too many samplings\"}}",
			       id_of(conn));
		return answer_json(conn, 200, NULL);
	}
	*place = conn;
	sim_buf_format(
		&conn->loop->scratch,
		"{\"jsonrpc\":\"2.0\",\"id\":#,\"method\":\"sampling/createMessage\",\"params\":{"
		"\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"",
		conn->number);
	sim_answer_filler(&conn->loop->scratch, 0, conn->spec.size);
	sim_buf_text(&conn->loop->scratch, "\"}}],\"maxTokens\":100}}");
	begin_stream(conn);
	put_event(conn);
	conn->phase = SIM_CONN_WAITING;
	conn->asked = sim_clock();
	return false;
}

static bool call(struct sim_conn *conn)
{
	const struct slice params = sim_json_field(conn->http.body, SLICE("params"));
	const struct slice tool = sim_json_string(sim_json_field(params, SLICE("name")));

	sim_shared_remember(conn->loop->shared, &conn->http, conn->in.at, conn->number, conn->id,
			    conn->requests, conn->io.ssl);
	conn->step = 0;
	if (slice_eq(tool, SLICE("events")))
		return events_on(conn);
	if (slice_eq(tool, SLICE("sample")))
		return ask(conn);
	put_result(conn, &conn->loop->scratch);
	return answer_json(conn, 200, NULL);
}

/* ---- messages ---- */

/* An answer to a sampling: who has asked goes on, at the end of this turn. One that went wrong has no time. */
static void hear(struct sim_conn *conn)
{
	struct sim_loop *loop = conn->loop;
	uint64_t number;

	if (!slice_to_u64(id_of(conn), &number))
		return;
	struct sim_conn *asker = *asking(loop, number);

	if (asker == NULL || asker->number != number)
		return;
	*asking(loop, number) = NULL;
	if (sim_json_present(sim_json_field(conn->http.body, SLICE("result"))))
		sim_buf_format(&loop->mcp.took, "#\n", (sim_clock() - asker->asked) / USEC);
	sim_loop_at(loop, asker, loop->now);
}

static bool initialize(struct sim_conn *conn)
{
	const struct slice params = sim_json_field(conn->http.body, SLICE("params"));
	struct sim_buf header = { 0 };

	sim_buf_format(&conn->loop->scratch,
		       "{\"jsonrpc\":\"2.0\",\"id\":$,\"result\":{\"protocolVersion\":$,"
		       "\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"sim\","
		       "\"version\":\"1\"}}}",
		       id_of(conn), sim_json_field(params, SLICE("protocolVersion")));
	sim_buf_format(&header, "mcp-session-id: 1868a90c-2f4d-4e6a-9b0c-#\r\n",
		       UINT64_C(100000000000) + conn->number);
	sim_buf_add(&header, slice_of("", 1));
	const bool whole = answer_json(conn, 200, header.at);

	sim_buf_free(&header);
	return whole;
}

static bool post(struct sim_conn *conn)
{
	const struct slice method =
		sim_json_string(sim_json_field(conn->http.body, SLICE("method")));

	if (slice_absent(method))
		hear(conn);
	if (slice_absent(method) || slice_absent(id_of(conn)))
		return answer_json(conn, 202, NULL);
	if (slice_eq(method, SLICE("tools/call")))
		return call(conn);
	if (slice_eq(method, SLICE("initialize")))
		return initialize(conn);
	sim_buf_format(&conn->loop->scratch, "{\"jsonrpc\":\"2.0\",\"id\":$,\"result\":{}}",
		       id_of(conn));
	return answer_json(conn, 200, NULL);
}

static bool samplings(struct sim_conn *conn)
{
	struct sim_buf *took = &conn->loop->mcp.took;

	sim_answer_plain(&conn->out, 200, "text/plain", NULL, slice_of(took->at, took->len),
			 conn->http.keep_alive);
	took->len = 0;
	return true;
}

bool sim_mcp_has(struct slice path)
{
	return slice_eq(path, SLICE("/mcp")) || slice_eq(path, SLICE("/mcp/samplings"));
}

bool sim_mcp_take(struct sim_conn *conn, struct slice path)
{
	const struct slice method = conn->http.method;

	conn->loop->scratch.len = 0;
	if (!slice_eq(path, SLICE("/mcp")))
		return samplings(conn);
	sim_count(&conn->loop->shared->counters.mcp);
	if (slice_eq(method, SLICE("POST")))
		return post(conn);
	if (!slice_eq(method, SLICE("GET")))
		return answer_json(conn, slice_eq(method, SLICE("DELETE")) ? 200 : 405, NULL);
	begin_stream(conn);
	conn->phase = SIM_CONN_HANGING;
	return false;
}

bool sim_mcp_due(struct sim_conn *conn)
{
	return conn->phase == SIM_CONN_STREAMING ? events_on(conn) : end_stream(conn);
}

void sim_mcp_forget(struct sim_conn *conn)
{
	struct sim_conn **place = asking(conn->loop, conn->number);

	if (*place == conn)
		*place = NULL;
}
