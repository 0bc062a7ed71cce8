/* edge_echo_fronts.h - edge_echo's paths for what fronts other than /v1/sampling ask of http.h. Included by edge_echo.c
 * alone.
 *
 *   /asked        what the request is, a line each: method, path, query, authority, listener, loopback, body, then its
 *                 headers as http_next_header gives them; last what http_find_header says of x-find
 *   /status/N     an answer of that status with a body, and a content-type that no list knows
 *   /fields/N     an answer with N fields
 *   /silent       status and fields, and nothing more; at rest
 *   /wakes/N      the same, then N pieces 20 ms apart, of which each is three slices, and an empty end
 *   /cut/N        N pieces, or with 0 the head alone, then a cut
 *   /cut-unsent   a large piece, and a cut before it has left
 *   /cut-at-once  the head alone, and a cut from inside of the same call */
#ifndef TESTS_SUPPORT_EDGE_ECHO_FRONTS_H
#define TESTS_SUPPORT_EDGE_ECHO_FRONTS_H

enum { FIELDS_MAX = 256 };

static const struct http_field stream_field = { SLICE_INIT("content-type"),
						SLICE_INIT("text/event-stream") };

/* ---- what was asked ---- */
struct asked {
	size_t len;
	char text[16384];
};

static void put_asked(struct asked *to, const char *what, struct slice value)
{
	const int len =
		slice_absent(value)
			? snprintf(to->text + to->len, sizeof(to->text) - to->len, "%s-\n", what)
			: snprintf(to->text + to->len, sizeof(to->text) - to->len, "%s=%.*s\n",
				   what, (int)value.len, value.at);

	must(len > 0 && (size_t)len < sizeof(to->text) - to->len);
	to->len += (size_t)len;
}

static struct slice describe(const struct http_incoming *in)
{
	static struct asked asked; /* one asker at a time */
	struct http_field field;
	char name[256], listener[16];
	size_t at = 0;

	asked.len = 0;
	(void)snprintf(listener, sizeof(listener), "%u", in->listener);
	put_asked(&asked, "method", in->method);
	put_asked(&asked, "path", in->path);
	put_asked(&asked, "query", in->query);
	put_asked(&asked, "authority", in->authority);
	put_asked(&asked, "listener", slice_str(listener));
	put_asked(&asked, "loopback", in->loopback ? SLICE("yes") : SLICE("no"));
	put_asked(&asked, "body", in->body);
	while (http_next_header(in, &at, &field)) {
		(void)snprintf(name, sizeof(name), "header %.*s", (int)field.name.len,
			       field.name.at);
		put_asked(&asked, name, field.value);
	}
	put_asked(&asked, "find", http_find_header(in, SLICE("x-find")));
	return slice_of(asked.text, asked.len);
}

/* ---- answers ---- */
static void answer_fields(struct http_exchange *exchange, size_t count)
{
	struct http_field fields[FIELDS_MAX];
	char names[FIELDS_MAX][16];

	count = count < FIELDS_MAX ? count : FIELDS_MAX;
	for (size_t i = 0; i < count; i++) {
		(void)snprintf(names[i], sizeof(names[i]), "x-field-%zu", i);
		fields[i] = (struct http_field){ slice_str(names[i]), slice_str(names[i]) };
	}
	http_refuse(exchange, 200, fields, count, SLICE("many"));
}

static void answer_status(struct http_exchange *exchange, size_t status)
{
	const struct http_field field = { SLICE("content-type"), SLICE("odd/type; Q=\"a b\"") };

	http_refuse(exchange, (int)status, &field, 1, SLICE("a body"));
}

/* True: it was one of these, and is done with. */
static bool answer_as_fronts(struct http_exchange *exchange, const struct http_incoming *in)
{
	size_t n;

	if (slice_eq(in->path, SLICE("/asked")))
		http_refuse(exchange, 200, NULL, 0, describe(in));
	else if (number_after(in->path, "/status/", &n))
		answer_status(exchange, n);
	else if (number_after(in->path, "/fields/", &n))
		answer_fields(exchange, n);
	else
		return false;
	return true;
}

/* ---- streams ---- */
static void rest_in(struct job *job)
{
	job->next = program.resting;
	program.resting = job;
	job->rests = true;
	job->path = job->body = (struct slice){ NULL, 0 };
	http_forget_request(job->exchange);
	http_rest(job->exchange, true);
}

static void rest_out(struct job *job)
{
	struct job **at = &program.resting;

	if (!job->rests)
		return;
	while (*at != job)
		at = &(*at)->next;
	*at = job->next;
	job->rests = false;
}

static void end_job(struct job *job, bool cut)
{
	rest_out(job);
	job->answered = true;
	program.answered++;
	if (cut)
		http_cut(job->exchange);
	else
		http_end(job->exchange, NULL, 0, 0);
}

/* As a front does when the gateway leaves. */
static void end_resting(void)
{
	while (program.resting != NULL)
		end_job(program.resting, false);
}

static void begin_silence(struct job *job)
{
	job->front = FRONT_SILENT;
	http_begin_pieces(job->exchange, 200, &stream_field, 1, slice_of(NULL, 0));
	rest_in(job);
}

static bool is_front_stream(struct slice path)
{
	return slice_eq(path, SLICE("/silent")) || slice_starts(path, SLICE("/wakes/"));
}

static bool start_stream(struct job *job)
{
	const struct slice unsent = slice_of(program.fill, FILL_MAX), none = { NULL, 0 };
	const bool cut_unsent = slice_eq(job->path, SLICE("/cut-unsent"));
	size_t n = 0;

	if (number_after(job->path, "/cut/", &n))
		job->front = FRONT_CUTS;
	else if (number_after(job->path, "/wakes/", &n))
		job->front = FRONT_WAKES;
	else if (slice_eq(job->path, SLICE("/silent")))
		job->front = FRONT_SILENT;
	else if (!cut_unsent && !slice_eq(job->path, SLICE("/cut-at-once")))
		return false;
	job->pieces = n;
	job->piece_bytes = 10;
	http_begin_pieces(job->exchange, 200, &stream_field, 1, cut_unsent ? unsent : none);
	if (job->front == 0)
		end_job(job, true);
	else if (job->front != FRONT_CUTS)
		rest_in(job);
	return true;
}

/* A piece of three slices. */
static void tell(struct job *job)
{
	const struct iovec piece[] = { { program.fill, 3 },
				       { program.fill, 0 },
				       { program.fill, job->piece_bytes - 3 } };

	http_more_of(job->exchange, piece, COUNT_OF(piece), job->piece_bytes);
}

static void on_wake(struct job *job)
{
	if (job->pieces-- == 0)
		end_job(job, false);
	else
		tell(job);
}

static void on_front_ready(struct job *job)
{
	if (job->front == FRONT_WAKES)
		net_timer_set(program.loop, &job->timer, net_now(program.loop) + ANSWER_AFTER);
	else if (job->front == FRONT_CUTS && job->pieces-- == 0)
		end_job(job, true);
	else if (job->front == FRONT_CUTS)
		tell(job);
}

#endif
