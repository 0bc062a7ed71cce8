#include "bench/sim/sim_conn.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "bench/sim/sim_admin.h"
#include "bench/sim/sim_due.h"
#include "bench/sim/sim_error.h"
#include "bench/sim/sim_mcp.h"
#include "codec/base/must.h"

#define KEEP_CAP ((size_t)256 << 10) /* a larger buffer is given back between requests */
#define FILL_MAX ((size_t)1 << 20)
#define OUT_MAX ((size_t)1 << 20) /* more pipelined answers than this wait for the peer to read */

static bool in_work(const struct sim_conn *conn)
{
	return conn->phase != SIM_CONN_READING && conn->phase != SIM_CONN_CLOSING;
}

static size_t unwritten(const struct sim_conn *conn)
{
	return conn->out.len - conn->out_at;
}

/* ---- life ---- */

void sim_conn_new(struct sim_loop *loop, int fd)
{
	struct sim_conn *conn = calloc(1, sizeof(*conn));

	if (conn == NULL || !sim_io_init(&conn->io, fd, loop->shared->tls)) {
		free(conn);
		(void)close(fd);
		return;
	}
	conn->loop = loop;
	conn->timer_at = SIZE_MAX;
	conn->id = atomic_fetch_add(&loop->shared->connections, 1) + 1;
	conn->next = loop->conns;
	if (conn->next != NULL)
		conn->next->prev = conn;
	loop->conns = conn;
	conn->watched = EPOLLIN | EPOLLRDHUP;
	sim_loop_watch(loop, conn, conn->watched, false);
}

void sim_conn_free(struct sim_conn **owned)
{
	struct sim_conn *conn = *owned;
	struct sim_loop *loop = conn->loop;

	if (in_work(conn))
		sim_uncount(&loop->shared->counters.in_flight);
	sim_loop_forget(loop, conn);
	sim_mcp_forget(conn);
	if (conn->next != NULL)
		conn->next->prev = conn->prev;
	if (conn->prev != NULL)
		conn->prev->next = conn->next;
	else
		loop->conns = conn->next;
	sim_io_fini(&conn->io, conn->end);
	sim_buf_free(&conn->in);
	sim_buf_free(&conn->out);
	free(conn);
	*owned = NULL;
	sim_loop_freed(loop);
}

/* The peer went away, or the connection broke. */
static void peer_gone(struct sim_conn *conn)
{
	if (in_work(conn))
		sim_count(&conn->loop->shared->counters.cancelled);
	sim_conn_free(&conn);
}

/* ---- the request in work ---- */

/* Whether the connection ends with this answer. */
static bool worn_out(const struct sim_conn *conn)
{
	return conn->spec.once || (conn->spec.uses > 0 && conn->requests >= conn->spec.uses);
}

static struct sim_answer answer_of(struct sim_conn *conn)
{
	return (struct sim_answer){ .ask = &conn->ask,
				    .spec = &conn->spec,
				    .quota = &conn->quota,
				    .number = conn->number,
				    .keep_alive = conn->http.keep_alive && !worn_out(conn),
				    .now = sim_clock(),
				    .scratch = &conn->loop->scratch,
				    .input = &conn->loop->input };
}

/* The request is done with, its answer is in `out`: on to the next, or close. */
static void leave(struct sim_conn *conn, bool close_now)
{
	bool stay = conn->http.keep_alive && !close_now;

	if (in_work(conn))
		sim_uncount(&conn->loop->shared->counters.in_flight);
	conn->phase = stay ? SIM_CONN_READING : SIM_CONN_CLOSING;
	sim_buf_drop(&conn->in, conn->http.raw_at);
	if (conn->in.len == 0 && conn->in.cap > KEEP_CAP)
		sim_buf_free(&conn->in);
	conn->http = (struct sim_http){ 0 };
	conn->said_continue = false;
}

/* Everything of the answer is in `out`, behind `start`. */
static void complete(struct sim_conn *conn, size_t start, size_t cut_at)
{
	if (cut_at != SIZE_MAX && start + cut_at < conn->out.len)
		conn->out.len = start + cut_at;
	if (conn->spec.fault == SIM_FAULT_STALL) {
		conn->phase = SIM_CONN_HANGING;
		return;
	}
	if (cut_at != SIZE_MAX)
		conn->end = SIM_IO_CUT;
	if (conn->spec.dribble > 0) {
		conn->phase = SIM_CONN_DRIBBLING;
		sim_loop_at(conn->loop, conn, conn->loop->now + conn->spec.dribble);
		return;
	}
	leave(conn, worn_out(conn) || conn->end != SIM_IO_ORDERLY);
}

/* Writes the steps that are due: one, or all of a stream that does not pause. */
static void stream_on(struct sim_conn *conn)
{
	struct sim_answer answer = answer_of(conn);
	uint64_t steps = sim_answer_steps(&answer);
	size_t start = conn->out.len;

	do
		sim_answer_step(&answer, conn->step++, &conn->out);
	while (conn->step < steps && conn->spec.pace == 0);
	if (conn->step < steps) {
		conn->phase = SIM_CONN_STREAMING;
		sim_count(&conn->loop->shared->counters.pauses);
		sim_loop_at(conn->loop, conn, conn->loop->now + conn->spec.pace);
		return;
	}
	bool cut = conn->spec.fault == SIM_FAULT_CUT;

	complete(conn, start, cut ? conn->out.len - start : SIZE_MAX);
}

static void answer_ok(struct sim_conn *conn)
{
	struct sim_answer answer = answer_of(conn);
	size_t start = conn->out.len, cut_at;

	if (!conn->ask.counts && sim_ask_wants_calls(&conn->ask, conn->spec.loop != 0))
		sim_count(&conn->loop->shared->counters.tool_calls);
	if (conn->ask.stream && conn->spec.fault != SIM_FAULT_CUTHEAD) {
		sim_answer_head(&answer, &conn->out);
		stream_on(conn);
		return;
	}
	sim_answer_whole(&answer, &conn->out, &cut_at);
	complete(conn, start, cut_at);
}

/* The wait is over: answers, or does what the fault says. False: the connection is gone. */
static bool answer_now(struct sim_conn *conn)
{
	static const struct slice page =
		SLICE_INIT("<html><body><h1>" SIM_CANARY "</h1></body></html>\n");
	struct sim_answer answer = answer_of(conn);
	size_t start = conn->out.len;

	switch ((enum sim_fault)conn->spec.fault) {
	case SIM_FAULT_HANG:
		conn->phase = SIM_CONN_HANGING;
		return true;
	case SIM_FAULT_CLOSE:
	case SIM_FAULT_RESET:
		conn->end = conn->spec.fault == SIM_FAULT_RESET ? SIM_IO_RESET : SIM_IO_CUT;
		sim_conn_free(&conn);
		return false;
	case SIM_FAULT_ERROR:
		sim_error_answer(&answer, conn->ask.dialect, (unsigned)conn->spec.status,
				 "simulated error", &conn->out);
		complete(conn, start, SIZE_MAX);
		return true;
	case SIM_FAULT_HTML:
		sim_answer_plain(&conn->out,
				 conn->spec.status == 0 ? 502 : (unsigned)conn->spec.status,
				 "text/html", NULL, page, answer.keep_alive);
		complete(conn, start, SIZE_MAX);
		return true;
	case SIM_FAULT_GARBAGE:
		sim_buf_text(&conn->out, "220 " SIM_CANARY " ESMTP\r\n\r\n");
		complete(conn, start, conn->out.len - start);
		return true;
	default:
		answer_ok(conn);
		return true;
	}
}

/* ---- taking a request ---- */

/* Header X-Sim, else a model name that begins with "sim-", on top of the default. */
static bool choose_spec(struct sim_conn *conn, struct slice key, struct slice *wrong)
{
	static const struct slice prefix = SLICE_INIT("sim-");
	struct slice words = sim_http_header(&conn->http, SLICE("x-sim"));

	if (slice_absent(words) && slice_starts(conn->ask.model, prefix))
		words = slice_of(conn->ask.model.at + prefix.len, conn->ask.model.len - prefix.len);
	if (!slice_absent(words) && !sim_spec_parse(&conn->spec, words, wrong))
		return false;
	sim_due_spare(conn->loop->shared, &conn->spec, key, conn->id, conn->loop->now);
	return true;
}

/* What the key has left; a key with nothing left meets the provider's refusal, and no other fault. */
static void take_quota(struct sim_conn *conn, struct slice key)
{
	struct sim_spec *spec = &conn->spec;

	conn->quota = sim_keys_take(&conn->loop->shared->keys, key, spec,
				    (conn->ask.body_len + spec->size) / 4, conn->loop->now);
	if (!conn->quota.refused)
		return;
	spec->fault = SIM_FAULT_ERROR;
	spec->status = 429;
	spec->retry_after = conn->quota.reset;
}

/* What is wrong with the key; NULL when it will do. */
static const char *key_problem(const struct sim_conn *conn, struct slice key)
{
	struct slice wanted = slice_str(conn->loop->shared->api_key);

	if (slice_absent(wanted))
		return NULL;
	if (key.len == 0)
		return "no API key";
	return slice_eq(key, wanted) ? NULL : "wrong API key";
}

static void refuse(struct sim_conn *conn, enum sim_dialect dialect, unsigned status,
		   const char *problem)
{
	struct sim_answer answer = answer_of(conn);

	sim_count(&conn->loop->shared->counters.refused);
	sim_error_answer(&answer, dialect, status, problem, &conn->out);
	leave(conn, worn_out(conn));
}

/* What is wrong with the request in itself, with its status; NULL: nothing. */
static const char *check(struct sim_conn *conn, enum sim_dialect dialect, unsigned *status)
{
	struct slice type = sim_http_header(&conn->http, SLICE("content-type")), wrong;
	struct slice query = conn->http.target, path = slice_cut(&query, '?');
	struct slice key = sim_keys_of(&conn->http, dialect);
	const char *problem = key_problem(conn, key);

	*status = 401;
	if (problem != NULL)
		return problem;
	*status = 400;
	if (!slice_has_nocase(type, SLICE("application/json")))
		return "content-type: application/json is required";
	if (dialect == SIM_ANTHROPIC &&
	    slice_absent(sim_http_header(&conn->http, SLICE("anthropic-version"))))
		return "anthropic-version: header is required";
	problem = sim_ask_read(dialect, sim_ask_counts(path), conn->http.body, &conn->ask);
	if (problem != NULL)
		return problem;
	*status = 404;
	if (choose_spec(conn, key, &wrong)) {
		take_quota(conn, key);
		return NULL;
	}
	(void)snprintf(conn->problem, sizeof(conn->problem),
		       "model: no such behaviour, or a bad argument: %.*s",
		       wrong.len > 32 ? 32 : (int)wrong.len, wrong.at);
	return conn->problem;
}

static void count_behaviour(struct sim_conn *conn)
{
	struct sim_counters *counters = &conn->loop->shared->counters;

	sim_count(&counters->faults[conn->spec.fault]);
	if (conn->spec.fault == SIM_FAULT_ERROR)
		sim_count(&counters->statuses[conn->spec.status]);
	if (conn->ask.stream)
		sim_count(&counters->streams);
}

static void note_in_flight(struct sim_counters *counters)
{
	uint64_t now = 1 + atomic_fetch_add_explicit(&counters->in_flight, 1, memory_order_relaxed);
	uint64_t high = atomic_load_explicit(&counters->in_flight_high, memory_order_relaxed);

	while (now > high &&
	       !atomic_compare_exchange_weak_explicit(&counters->in_flight_high, &high, now,
						      memory_order_relaxed, memory_order_relaxed))
		;
}

/* False: the connection is gone. */
static bool take_provider(struct sim_conn *conn, enum sim_dialect dialect)
{
	struct sim_shared *shared = conn->loop->shared;
	unsigned status;

	sim_count(&shared->counters.requests);
	sim_count(&shared->counters.by_dialect[dialect]);
	if (conn->requests++ == 0)
		sim_count(&shared->counters.connections);
	conn->number = atomic_fetch_add(&shared->numbers, 1) + 1;
	sim_shared_remember(shared, &conn->http, conn->in.at, conn->number, conn->id,
			    conn->requests, conn->io.ssl);
	sim_shared_get_spec(shared, &conn->loop->spec, &conn->loop->spec_version);
	conn->spec = conn->loop->spec;
	conn->step = 0;
	conn->mcp = false;
	conn->quota = (struct sim_quota){ 0 };
	const char *problem = check(conn, dialect, &status);

	if (problem != NULL) {
		refuse(conn, dialect, status, problem);
		return true;
	}
	count_behaviour(conn);
	note_in_flight(&shared->counters);
	conn->phase = SIM_CONN_WAITING;
	if (conn->spec.latency == 0)
		return answer_now(conn);
	sim_loop_at(conn->loop, conn, conn->loop->now + conn->spec.latency);
	return true;
}

/* GET /health. It tells the truth unless the behaviour says otherwise; a fault that is not a status
 * ends the connection, or leaves the question without an answer. False: the connection is gone. */
static bool take_health(struct sim_conn *conn)
{
	struct sim_loop *loop = conn->loop;
	const struct sim_spec *spec = &loop->spec;

	sim_count(&loop->shared->counters.health);
	sim_shared_get_spec(loop->shared, &loop->spec, &loop->spec_version);
	const bool ill =
		spec->fault != SIM_FAULT_NONE && !spec->well && sim_due_by_time(spec, loop->now);

	if (ill && spec->fault == SIM_FAULT_HANG) {
		note_in_flight(&loop->shared->counters);
		conn->phase = SIM_CONN_HANGING;
		return true;
	}
	if (ill && (spec->fault == SIM_FAULT_CLOSE || spec->fault == SIM_FAULT_RESET)) {
		conn->end = SIM_IO_RESET;
		sim_conn_free(&conn);
		return false;
	}
	unsigned status = ill || spec->sick ? 503 : 200;

	if (ill && spec->status != 0)
		status = (unsigned)spec->status;
	sim_answer_plain(&conn->out, status, "application/json", NULL,
			 status == 200 ? SLICE("{\"status\":\"ok\"}\n")
				       : SLICE("{\"status\":\"unavailable\"}\n"),
			 conn->http.keep_alive);
	leave(conn, false);
	return true;
}

static void take_mcp(struct sim_conn *conn, struct slice path)
{
	struct sim_loop *loop = conn->loop;

	conn->number = atomic_fetch_add(&loop->shared->numbers, 1) + 1;
	sim_shared_get_spec(loop->shared, &loop->spec, &loop->spec_version);
	conn->spec = loop->spec;
	conn->mcp = true;
	if (sim_mcp_take(conn, path))
		leave(conn, false);
	else
		note_in_flight(&loop->shared->counters);
}

/* A complete request is at the front of `in`. False: the connection is gone. */
static bool take(struct sim_conn *conn)
{
	struct slice rest = conn->http.target, path = slice_cut(&rest, '?');
	enum sim_dialect dialect;

	if (sim_ask_dialect(path, &dialect) && slice_eq(conn->http.method, SLICE("POST")))
		return take_provider(conn, dialect);
	if (slice_eq(path, SLICE("/health")) && slice_eq(conn->http.method, SLICE("GET")))
		return take_health(conn);
	if (sim_mcp_has(path)) {
		take_mcp(conn, path);
		return true;
	}
	sim_admin_answer(conn->loop->shared, &conn->http, path, &conn->loop->scratch, &conn->out);
	leave(conn, false);
	return true;
}

static void refuse_http(struct sim_conn *conn)
{
	sim_count(&conn->loop->shared->counters.refused);
	sim_answer_plain(&conn->out, conn->http.status, "text/plain", NULL,
			 slice_str(conn->http.problem), false);
	conn->phase = SIM_CONN_CLOSING;
}

/* Takes requests as long as there are whole ones and the peer reads. False: connection gone. */
static bool take_all(struct sim_conn *conn)
{
	while (conn->phase == SIM_CONN_READING && conn->in.len > 0 && unwritten(conn) < OUT_MAX) {
		enum sim_http_step step = sim_http_read(&conn->http, conn->in.at, conn->in.len);

		if (step == SIM_HTTP_BAD) {
			refuse_http(conn);
		} else if (step == SIM_HTTP_DONE) {
			if (!take(conn))
				return false;
		} else {
			if (conn->http.wants_continue && !conn->said_continue)
				sim_buf_text(&conn->out, "HTTP/1.1 100 Continue\r\n\r\n");
			conn->said_continue = conn->http.wants_continue;
			break;
		}
	}
	return true;
}

/* ---- bytes ---- */

/* Writes up to `bytes` of `out`. False: the connection is gone. */
static bool flush(struct sim_conn *conn, size_t bytes)
{
	size_t end = bytes < unwritten(conn) ? conn->out_at + bytes : conn->out.len;

	while (conn->out_at < end) {
		ssize_t put =
			sim_io_write(&conn->io, conn->out.at + conn->out_at, end - conn->out_at);

		if (put == SIM_IO_AGAIN)
			return true;
		if (put < 0) {
			peer_gone(conn);
			return false;
		}
		conn->out_at += (size_t)put;
	}
	if (conn->out_at == conn->out.len) {
		conn->out_at = conn->out.len = 0;
		if (conn->out.cap > KEEP_CAP)
			sim_buf_free(&conn->out);
	}
	return true;
}

/* Reads what there is, at most about 1 MiB at once. False: the connection is gone. */
static bool fill(struct sim_conn *conn)
{
	size_t enough = conn->in.len + FILL_MAX;

	while (conn->in.len < enough) {
		sim_buf_room(&conn->in, 1);
		size_t room = conn->in.cap - conn->in.len;
		ssize_t got = sim_io_read(&conn->io, conn->in.at + conn->in.len, room);

		if (got == SIM_IO_AGAIN)
			return true;
		if (got == SIM_IO_FAILED || (got == SIM_IO_END && unwritten(conn) == 0)) {
			peer_gone(conn);
			return false;
		}
		if (got == SIM_IO_END) {
			conn->phase = SIM_CONN_CLOSING;
			return true;
		}
		conn->in.len += (size_t)got;
		if (conn->io.ssl == NULL && (size_t)got < room)
			return true; /* a short read: the next would be EAGAIN */
	}
	return true;
}

/* What epoll is to report. While a request is in work, EPOLLIN stays on until there is something
 * that must not be read yet: most peers do not pipeline, and changing it costs a call. */
static uint32_t wanted_events(struct sim_conn *conn)
{
	uint32_t events = conn->phase == SIM_CONN_CLOSING ? 0 : EPOLLRDHUP;

	if (conn->phase == SIM_CONN_READING)
		conn->paused = unwritten(conn) >= OUT_MAX;
	if (!conn->paused && conn->phase != SIM_CONN_CLOSING)
		events |= EPOLLIN;
	if ((conn->phase != SIM_CONN_DRIBBLING && unwritten(conn) > 0) || conn->io.wants_write)
		events |= EPOLLOUT;
	return events;
}

/* After anything happened: takes what can be taken, writes, closes or waits. */
static void settle(struct sim_conn *conn)
{
	for (;;) {
		if (!take_all(conn))
			return;
		if (conn->phase != SIM_CONN_DRIBBLING && !flush(conn, SIZE_MAX))
			return;
		if (conn->phase != SIM_CONN_READING || !sim_io_pending(&conn->io))
			break;
		if (!fill(conn))
			return;
	}
	if (conn->phase == SIM_CONN_CLOSING && unwritten(conn) == 0) {
		sim_conn_free(&conn);
		return;
	}
	uint32_t events = wanted_events(conn);

	if (events != conn->watched) {
		conn->watched = events;
		sim_loop_watch(conn->loop, conn, events, true);
	}
}

void sim_conn_event(struct sim_conn *conn, uint32_t events)
{
	bool gone = (events & (EPOLLHUP | EPOLLERR)) != 0;

	if (gone || ((events & EPOLLRDHUP) != 0 && in_work(conn))) {
		peer_gone(conn);
		return;
	}
	if ((events & EPOLLOUT) != 0 && conn->phase != SIM_CONN_DRIBBLING && !flush(conn, SIZE_MAX))
		return;
	if (conn->phase == SIM_CONN_READING) {
		if (!fill(conn))
			return;
	} else if ((events & EPOLLIN) != 0) {
		conn->paused = true;
	}
	settle(conn);
}

static void dribble_on(struct sim_conn *conn)
{
	if (!flush(conn, 1))
		return;
	if (unwritten(conn) > 0) {
		sim_loop_at(conn->loop, conn, conn->loop->now + conn->spec.dribble);
		return;
	}
	leave(conn, worn_out(conn) || conn->end != SIM_IO_ORDERLY);
	settle(conn);
}

void sim_conn_due(struct sim_conn *conn)
{
	if (conn->phase == SIM_CONN_DRIBBLING) {
		dribble_on(conn);
		return;
	}
	must(conn->phase == SIM_CONN_WAITING || conn->phase == SIM_CONN_STREAMING);
	if (conn->mcp) {
		if (sim_mcp_due(conn))
			leave(conn, false);
	} else if (conn->phase == SIM_CONN_STREAMING) {
		stream_on(conn);
	} else if (!answer_now(conn)) {
		return;
	}
	settle(conn);
}
