/* load.c - open-loop load: sends requests when a schedule says so, whatever became of those before.
 *
 *   load --to HOST:PORT [--to ...] --path /P --schedule FILE --log FILE [--body FILE] [--http1]
 *        [--connections N] [--field "name: value"]... [--keys FILE] [--keyed NAME] [--patience S]
 *        [--stamps FILE]
 *
 * A line of the schedule is "MICROSECONDS KEY": when a request is due, from the start, rising; and
 * which line of --keys is the value of its --keyed field (authorization). A line of the log is "DUE SENT DONE STATUS", in the same
 * order and unit; status 0: never answered. Latency is DONE - DUE, so that a request that had to wait
 * for a connection, or for this program, has waited. Times are Python's business (bench/suite).
 *
 * Requests go round the connections that have room. Connections go round the addresses of --to, and
 * to the next one where nobody listens. What a server says it has not touched is sent again.
 * --stamps: how old the events of streams are when they come, a line each (load_stamps.h).
 * SIGTERM: nothing more is sent, and the log has what was. */
#include "bench/load/load_stamps.h"
#include "bench/load/load_wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "codec/base/must.h"

enum {
	CONNECTIONS_MAX = 1024,
	SLOTS_PER_CONNECTION = 3, /* those that leave still have answers to come */
	TARGETS_MAX = 4,
	FIELDS_MAX = 16,
	EVENTS_MAX = 64,
	RETRY_US = 1000,
	START_S = 10,
	READ_MAX = 1 << 16,
};

struct load {
	const struct load_wire *wire;
	struct load_request request;
	struct sockaddr_in targets[TARGETS_MAX];
	size_t target_count, target;
	struct load_conn *conns;
	size_t conn_count, slot_count, turn;
	struct load_shot *shots;
	size_t shot_count, next, ended;
	struct load_shot **again; /* untouched ones; room for all */
	size_t again_count;
	uint64_t started_us, patience_us, connect_after_us;
	FILE *stamps; /* NULL: nobody asks */
	int epoll, timer;
};

struct load_files {
	const char *schedule, *log, *body, *keys, *stamps;
	char *fields[FIELDS_MAX];
};

static volatile sig_atomic_t stopping;

static void on_sigterm(int number)
{
	(void)number;
	stopping = 1;
}

static _Noreturn void die(const char *what, const char *why)
{
	(void)fprintf(stderr, "load: %s: %s\n", what, why);
	exit(2);
}

static void *must_have(void *memory)
{
	if (memory == NULL)
		die("memory", strerror(errno));
	return memory;
}

static uint64_t clock_us(void)
{
	struct timespec now;
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static uint64_t since_start(const struct load *load)
{
	return clock_us() - load->started_us;
}

/* ---- buffers ---- */
void load_buf_add(struct load_buf *buf, const void *bytes, size_t len)
{
	if (buf->room - buf->len < len) {
		buf->room = (buf->len + len) * 2;
		buf->base = must_have(realloc(buf->base, buf->room));
	}
	(void)memcpy(buf->base + buf->len, bytes, len);
	buf->len += len;
}

void load_buf_drop(struct load_buf *buf, size_t len)
{
	must(len <= buf->len);
	(void)memmove(buf->base, buf->base + len, buf->len - len);
	buf->len -= len;
}

void load_buf_fini(struct load_buf *buf)
{
	free(buf->base);
	*buf = (struct load_buf){ 0 };
}

/* ---- what becomes of requests ---- */
void load_ended(struct load_conn *conn, struct load_shot *shot, int status)
{
	struct load *load = conn->load;
	must(shot->done_us == 0 && conn->in_flight > 0);
	conn->in_flight--;
	shot->status = status;
	shot->done_us = since_start(load);
	load->ended++;
}

void load_untouched(struct load_conn *conn, struct load_shot *shot)
{
	struct load *load = conn->load;
	must(shot->done_us == 0 && conn->in_flight > 0);
	conn->in_flight--;
	load->again[load->again_count++] = shot;
}

/* ---- connections ---- */
static void watch(struct load *load, struct load_conn *conn, bool writing)
{
	struct epoll_event event = { .events = EPOLLIN | (writing ? EPOLLOUT : 0U),
				     .data.ptr = conn };
	must(epoll_ctl(load->epoll, EPOLL_CTL_MOD, conn->fd, &event) == 0);
	conn->want_write = writing;
}

static void conn_close(struct load *load, struct load_conn *conn)
{
	if (conn->fd == -1)
		return;
	if (conn->connected)
		load->wire->end(conn);
	else
		load->connect_after_us = clock_us() + RETRY_US;
	(void)close(conn->fd);
	load_buf_fini(&conn->out);
	*conn = (struct load_conn){ .fd = -1, .request = &load->request, .load = load };
}

static void conn_open(struct load *load, struct load_conn *conn)
{
	const struct sockaddr_in *address = &load->targets[load->target++ % load->target_count];
	int on = 1;
	conn->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (conn->fd == -1)
		die("socket", strerror(errno));
	(void)setsockopt(conn->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT, .data.ptr = conn };
	must(epoll_ctl(load->epoll, EPOLL_CTL_ADD, conn->fd, &event) == 0);
	conn->want_write = true;
	if (connect(conn->fd, (const struct sockaddr *)address, sizeof(*address)) == -1 &&
	    errno != EINPROGRESS)
		conn_close(load, conn);
}

/* As many connections as there should be, besides those that leave. */
static void conns_keep(struct load *load)
{
	size_t have = 0;
	for (size_t i = 0; i < load->slot_count; i++) {
		struct load_conn *conn = &load->conns[i];
		if (conn->fd != -1 && conn->leaving && conn->in_flight == 0)
			conn_close(load, conn);
		have += conn->fd != -1 && !conn->leaving;
	}
	for (size_t i = 0; i < load->slot_count && have < load->conn_count; i++) {
		if (load->conns[i].fd != -1)
			continue;
		if (clock_us() < load->connect_after_us)
			return;
		conn_open(load, &load->conns[i]);
		have++;
	}
}

static bool conn_connected(struct load *load, struct load_conn *conn)
{
	int error = 0;
	socklen_t len = sizeof(error);
	if (getsockopt(conn->fd, SOL_SOCKET, SO_ERROR, &error, &len) == -1 || error != 0)
		return false;
	conn->connected = true;
	return load->wire->start(conn);
}

static bool conn_read(struct load *load, struct load_conn *conn)
{
	static char bytes[READ_MAX];
	ssize_t len = read(conn->fd, bytes, sizeof(bytes));
	if (len == -1)
		return errno == EAGAIN || errno == EINTR;
	if (len > 0 && load->stamps != NULL)
		load_stamps_find(load->stamps, bytes, (size_t)len, clock_us());
	return len > 0 && load->wire->received(conn, bytes, (size_t)len);
}

static bool conn_write(struct load *load, struct load_conn *conn)
{
	if (!load->wire->flush(conn))
		return false;
	while (conn->out.len != 0) {
		ssize_t len = write(conn->fd, conn->out.base, conn->out.len);
		if (len == -1 && errno == EAGAIN)
			break;
		if (len == -1)
			return false;
		load_buf_drop(&conn->out, (size_t)len);
	}
	if ((conn->out.len != 0) != conn->want_write)
		watch(load, conn, conn->out.len != 0);
	return true;
}

static void conn_event(struct load *load, struct load_conn *conn, uint32_t events)
{
	bool well = true;
	if (!conn->connected)
		well = conn_connected(load, conn);
	else if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0)
		well = conn_read(load, conn);
	if (!well)
		conn_close(load, conn);
}

static void conns_write(struct load *load)
{
	for (size_t i = 0; i < load->slot_count; i++) {
		struct load_conn *conn = &load->conns[i];
		if (conn->fd != -1 && conn->connected && !conn_write(load, conn))
			conn_close(load, conn);
	}
}

/* ---- the loop ---- */
static struct load_conn *conn_with_room(struct load *load)
{
	for (size_t i = 0; i < load->slot_count; i++) {
		struct load_conn *conn = &load->conns[load->turn++ % load->slot_count];
		if (conn->fd != -1 && conn->connected && load->wire->room(conn) > 0)
			return conn;
	}
	return NULL;
}

static struct load_shot *shot_due(struct load *load)
{
	if (load->again_count != 0)
		return load->again[load->again_count - 1];
	if (load->next < load->shot_count && load->shots[load->next].due_us <= since_start(load))
		return &load->shots[load->next];
	return NULL;
}

static void send_due(struct load *load)
{
	struct load_shot *shot;
	struct load_conn *conn;
	while ((shot = shot_due(load)) != NULL && (conn = conn_with_room(load)) != NULL) {
		if (load->again_count != 0)
			load->again_count--;
		else
			load->next++;
		conn->in_flight++;
		shot->sent_us = since_start(load);
		if (!load->wire->send(conn, shot))
			conn_close(load, conn);
	}
}

static void timer_set(struct load *load)
{
	uint64_t at = clock_us() + RETRY_US * 10;
	if (load->next < load->shot_count) {
		uint64_t due = load->started_us + load->shots[load->next].due_us;
		at = due < at ? due : at;
	}
	struct itimerspec spec = { .it_value = { .tv_sec = (time_t)(at / 1000000),
						 .tv_nsec = (long)(at % 1000000) * 1000 } };
	must(timerfd_settime(load->timer, TFD_TIMER_ABSTIME, &spec, NULL) == 0);
}

static void turn(struct load *load)
{
	struct epoll_event events[EVENTS_MAX];
	uint64_t ticks;
	conns_write(load);
	conns_keep(load);
	timer_set(load);
	int n = epoll_wait(load->epoll, events, EVENTS_MAX, -1);
	for (int i = 0; i < n; i++) {
		if (events[i].data.ptr == NULL)
			(void)!read(load->timer, &ticks, sizeof(ticks));
		else
			conn_event(load, events[i].data.ptr, events[i].events);
	}
}

static bool all_connected(const struct load *load)
{
	size_t connected = 0;
	for (size_t i = 0; i < load->slot_count; i++)
		connected += load->conns[i].connected;
	return connected == load->conn_count;
}

static void run(struct load *load)
{
	load->epoll = epoll_create1(EPOLL_CLOEXEC);
	load->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = NULL };
	must(load->epoll != -1 && load->timer != -1 &&
	     epoll_ctl(load->epoll, EPOLL_CTL_ADD, load->timer, &event) == 0);
	const size_t planned = load->shot_count;
	load->shot_count = 0; /* nothing is due before all are connected */
	for (uint64_t end = clock_us() + START_S * 1000000; !all_connected(load); turn(load))
		if (clock_us() > end)
			die("connecting", "nobody listens");
	load->shot_count = planned;
	load->started_us = clock_us();
	uint64_t last = planned != 0 ? load->shots[planned - 1].due_us : 0;
	while (load->ended < load->shot_count && since_start(load) < last + load->patience_us) {
		send_due(load);
		turn(load);
		if (stopping)
			load->shot_count = load->next;
	}
}

/* ---- files and options ---- */
static size_t file_read(const char *path, char **bytes)
{
	FILE *file = fopen(path, "rb");
	if (file == NULL)
		die(path, strerror(errno));
	struct load_buf all = { 0 };
	char piece[READ_MAX];
	size_t len;
	while ((len = fread(piece, 1, sizeof(piece), file)) > 0)
		load_buf_add(&all, piece, len);
	load_buf_add(&all, "", 1);
	(void)fclose(file);
	*bytes = all.base;
	return all.len - 1;
}

static void schedule_read(struct load *load, const char *path)
{
	char *text, *at, *end;
	size_t room = 0;
	(void)file_read(path, &text);
	for (at = text; *at != '\0'; at = end + strspn(end, "\n")) {
		if (load->shot_count == room) {
			room = room * 2 + 1024;
			load->shots = must_have(realloc(load->shots, room * sizeof(*load->shots)));
		}
		struct load_shot *shot = &load->shots[load->shot_count++];
		*shot = (struct load_shot){ .due_us = strtoull(at, &end, 10) };
		shot->key = (uint32_t)strtoul(end, &end, 10);
		if (*end != '\n' || (shot > load->shots && shot[-1].due_us > shot->due_us))
			die(path, "not a schedule: lines of rising MICROSECONDS and a KEY");
	}
	free(text);
	if (load->shot_count == 0)
		die(path, "nothing to send");
	load->again = must_have(calloc(load->shot_count, sizeof(struct load_shot *)));
}

static void keys_read(struct load_request *request, const char *path)
{
	char *text, *save = NULL;
	size_t len = file_read(path, &text);
	request->keys = must_have(calloc(len + 1, sizeof(char *))); /* a line has a byte */
	for (char *line = strtok_r(text, "\n", &save); line != NULL;
	     line = strtok_r(NULL, "\n", &save))
		request->keys[request->key_count++] = line;
}

static void log_write(const struct load *load, const char *path)
{
	FILE *file = fopen(path, "wb");
	if (file == NULL)
		die(path, strerror(errno));
	for (size_t i = 0; i < load->shot_count; i++) {
		const struct load_shot *shot = &load->shots[i];
		(void)fprintf(file, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %d\n", shot->due_us,
			      shot->sent_us, shot->done_us, shot->status);
	}
	if (fclose(file) != 0)
		die(path, strerror(errno));
}

static void target_add(struct load *load, char *text)
{
	struct sockaddr_in *address = &load->targets[load->target_count];
	char *colon = strrchr(text, ':');
	if (load->target_count == TARGETS_MAX || colon == NULL)
		die("--to", "at most four HOST:PORT");
	if (load->target_count++ == 0)
		load->request.authority = must_have(strdup(text));
	*colon = '\0';
	address->sin_family = AF_INET;
	address->sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10));
	if (inet_pton(AF_INET, text, &address->sin_addr) != 1)
		die(text, "not an IPv4 address");
}

static unsigned number(const char *name, const char *text, unsigned most)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);
	if (*text == '\0' || *end != '\0' || value == 0 || value > most)
		die(name, "a number from 1, within reason");
	return (unsigned)value;
}

static void option(struct load *load, struct load_files *files, int which, char *value)
{
	switch (which) {
	case 't':
		target_add(load, value);
		break;
	case 'p':
		load->request.path = value;
		break;
	case 's':
		files->schedule = value;
		break;
	case 'l':
		files->log = value;
		break;
	case 'b':
		files->body = value;
		break;
	case 'k':
		files->keys = value;
		break;
	case 'a':
		files->stamps = value;
		break;
	case 'n':
		load->request.keyed = value;
		break;
	case '1':
		load->wire = &load_wire_h1;
		break;
	case 'c':
		load->conn_count = number("--connections", value, CONNECTIONS_MAX);
		break;
	case 'w':
		load->patience_us = number("--patience", value, 3600) * UINT64_C(1000000);
		break;
	case 'f':
		if (load->request.field_count == FIELDS_MAX || strchr(value, ':') == NULL)
			die(value, "at most 16 fields, each \"name: value\"");
		files->fields[load->request.field_count++] = value;
		break;
	default:
		die("usage", "see the head of bench/load/load.c");
	}
}

static void options_read(struct load *load, struct load_files *files, int argc, char **argv)
{
	static const struct option options[] = {
		{ "to", required_argument, NULL, 't' },
		{ "path", required_argument, NULL, 'p' },
		{ "schedule", required_argument, NULL, 's' },
		{ "log", required_argument, NULL, 'l' },
		{ "body", required_argument, NULL, 'b' },
		{ "keys", required_argument, NULL, 'k' },
		{ "keyed", required_argument, NULL, 'n' },
		{ "http1", no_argument, NULL, '1' },
		{ "connections", required_argument, NULL, 'c' },
		{ "patience", required_argument, NULL, 'w' },
		{ "field", required_argument, NULL, 'f' },
		{ "stamps", required_argument, NULL, 'a' },
		{ 0 },
	};
	int which;
	while ((which = getopt_long(argc, argv, "", options, NULL)) != -1)
		option(load, files, which, optarg);
	if (optind != argc || load->target_count == 0 || files->schedule == NULL ||
	    files->log == NULL)
		die("usage", "--to, --schedule and --log are needed");
}

static void load_prepare(struct load *load, const struct load_files *files)
{
	char *body = NULL;
	schedule_read(load, files->schedule);
	if (files->body != NULL)
		load->request.body_len = file_read(files->body, &body);
	load->request.body = body;
	load->stamps = files->stamps == NULL ? NULL : fopen(files->stamps, "wb");
	if (files->stamps != NULL && load->stamps == NULL)
		die(files->stamps, strerror(errno));
	if (files->keys != NULL)
		keys_read(&load->request, files->keys);
	load->slot_count = load->conn_count * SLOTS_PER_CONNECTION;
	load->conns = must_have(calloc(load->slot_count, sizeof(*load->conns)));
	for (size_t i = 0; i < load->slot_count; i++)
		load->conns[i] =
			(struct load_conn){ .fd = -1, .request = &load->request, .load = load };
}

static void load_fini(struct load *load)
{
	for (size_t i = 0; i < load->slot_count; i++)
		conn_close(load, &load->conns[i]); /* what is in flight now stays unanswered */
	if (load->request.key_count != 0)
		free(load->request.keys[0]); /* the text that all of them are in */
	free(load->request.keys);
	free((char *)(uintptr_t)load->request.body);
	free((char *)(uintptr_t)load->request.authority);
	free(load->conns);
	free(load->again);
	free(load->shots);
}

int main(int argc, char **argv)
{
	static struct load load = { .wire = &load_wire_h2,
				    .conn_count = 8,
				    .patience_us = 10000000,
				    .request = { .path = "/", .keyed = "authorization" } };
	struct load_files files = { 0 };

	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGTERM, on_sigterm);
	load.request.fields = files.fields;
	options_read(&load, &files, argc, argv);
	load_prepare(&load, &files);
	run(&load);
	log_write(&load, files.log);
	if (load.stamps != NULL && fclose(load.stamps) != 0)
		die(files.stamps, strerror(errno));
	load_fini(&load);
	return 0;
}
