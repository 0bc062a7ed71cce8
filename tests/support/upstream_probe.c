/* upstream_probe - drives gateway/upstream/upstream.h by hand, for integration/test_upstream.py.
 *
 * upstream_probe CONNECTIONS IDLE QUEUE IDLE_FOR_MS HEAD_MAX BODY_MAX
 *
 * Reads one command per line and answers each with one line of JSON, `call` when it is done:
 *   pool NAME http|https HOST PORT [CA_PATH]
 *   sweep NAME...                  a new snapshot that has only these pools
 *   resolve NAME [ADDRESS...]      no address: the resolution failed
 *   call ID NAME BODY_BYTES DEADLINE CONNECT FIRST_BYTE IDLE TOTAL     all in ms
 *   any ID NAME ...                the same, but it is not a provider's call
 *   pieces ID NAME BODY_BYTES DEADLINE CONNECT FIRST_BYTE IDLE TOTAL ENOUGH
 *                                  the same, but a 200 comes in pieces; ENOUGH: no more of them after
 *                                  so many bytes, the connection to be closed if negative; 0: never
 *   state ID   cancel ID   count NAME   pause ID   resume ID   got ID
 * The end of the input ends it, with whatever is in flight. */
#include "codec/base/must.h"
#include "gateway/upstream/upstream.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { WORDS_MAX = 16, POOLS_MAX = 16, ADDRESSES_MAX = 8 };

struct line {
	struct net_message message;
	bool end;
	char text[512];
};

struct probe_pool {
	char name[32];
	struct endpoint endpoint; /* its texts are owned, until the end */
	struct upstream_pool *pool;
};

struct probe_call {
	struct upstream_call call;
	struct upstream_extra extra;
	struct probe_call *next;
	struct arena arena;
	char id[32];
	char head[256];
	char *body;
	struct iovec request[2];
	struct {
		char *bytes;
		size_t len, room, largest;
		unsigned count;
		long enough;
	} pieces;
};

static struct probe {
	struct net_loop *loop;
	struct upstream *up;
	struct arena_pool arenas;
	struct probe_pool pools[POOLS_MAX];
	size_t pool_count;
	struct probe_call *calls; /* all there ever were */
	bool over;
} probe;

static const char *const state_names[] = {
	[UPSTREAM_IDLE] = "idle", [UPSTREAM_QUEUED] = "queued", [UPSTREAM_CONNECT] = "connect",
	[UPSTREAM_SENT] = "sent", [UPSTREAM_BODY] = "body",
};

/* ---- output ---------------------------------------------------------------------------------- */

/* "name":"text"; quotes, backslashes and control characters do not occur in what is printed here,
 * or are shown as '?'. */
static void print_text(const char *name, struct slice text)
{
	if (slice_absent(text)) {
		printf(",\"%s\":null", name);
		return;
	}
	printf(",\"%s\":\"", name);
	for (size_t i = 0; i < text.len; i++) {
		char c = text.at[i];
		putchar(c == '"' || c == '\\' || (unsigned char)c < 0x20 ? '?' : c);
	}
	putchar('"');
}

static void print_hex(const char *name, struct slice bytes)
{
	static const char digits[] = "0123456789abcdef";

	printf(",\"%s\":\"", name);
	for (size_t i = 0; i < bytes.len; i++) {
		putchar(digits[(unsigned char)bytes.at[i] >> 4]);
		putchar(digits[(unsigned char)bytes.at[i] & 15]);
	}
	putchar('"');
}

static void print_ms(const char *name, nsec_t from, nsec_t to)
{
	printf(",\"%s\":%.3f", name, (double)(to - from) / (double)MSEC);
}

static void print_end(void)
{
	(void)puts("}");
	(void)fflush(stdout);
}

static void print_ok(const char *event)
{
	printf("{\"event\":\"%s\"", event);
	print_end();
}

static _Noreturn void give_up(const char *why, const char *what)
{
	(void)fprintf(stderr, "upstream_probe: %s: %s\n", why, what);
	exit(2);
}

/* ---- pools ----------------------------------------------------------------------------------- */

static struct probe_pool *find_pool(const char *name)
{
	for (size_t i = 0; i < probe.pool_count; i++)
		if (strcmp(probe.pools[i].name, name) == 0)
			return &probe.pools[i];
	give_up("no such pool", name);
}

static struct slice own(const char *text)
{
	char *copy = strdup(text);

	must(copy != NULL);
	return slice_of(copy, strlen(copy));
}

static struct slice read_file(const char *path)
{
	static char bytes[65536];
	FILE *file = fopen(path, "r");

	if (file == NULL)
		give_up("cannot open", path);
	size_t len = fread(bytes, 1, sizeof(bytes) - 1, file);
	(void)fclose(file);
	bytes[len] = '\0';
	return own(bytes);
}

static void do_pool(char **words, size_t count)
{
	must(count >= 5 && probe.pool_count < POOLS_MAX);
	struct probe_pool *pool = &probe.pools[probe.pool_count++];
	char identity[128], problem[256] = "";
	(void)snprintf(pool->name, sizeof(pool->name), "%s", words[1]);
	(void)snprintf(identity, sizeof(identity), "%s|%s|%s", words[2], words[3], words[4]);
	pool->endpoint = (struct endpoint){
		.tls = strcmp(words[2], "https") == 0,
		.host = own(words[3]),
		.port = (uint16_t)atoi(words[4]),
		.identity = own(identity),
		.concurrent = UINT32_MAX, /* the command line's bounds count */
		.queue = UINT32_MAX,
	};
	if (count > 5)
		pool->endpoint.ca_pem = read_file(words[5]);
	pool->pool = upstream_pool_for(probe.up, &pool->endpoint, problem, sizeof(problem));
	printf("{\"event\":\"pool\"");
	print_text("problem", pool->pool != NULL ? slice_of(NULL, 0) : slice_str(problem));
	print_end();
}

static void do_sweep(char **words, size_t count)
{
	char problem[256];

	upstream_mark(probe.up);
	for (size_t i = 1; i < count; i++)
		must(upstream_pool_for(probe.up, &find_pool(words[i])->endpoint, problem,
				       sizeof(problem)) != NULL);
	upstream_sweep(probe.up);
	print_ok("swept");
}

static void do_resolve(char **words, size_t count)
{
	struct upstream_address addresses[ADDRESSES_MAX] = { 0 };
	uint32_t n = 0;

	for (size_t i = 2; i < count && n < ADDRESSES_MAX; i++, n++) {
		struct sockaddr_in *v4 = (void *)&addresses[n].address;
		v4->sin_family = AF_INET;
		must(inet_pton(AF_INET, words[i], &v4->sin_addr) == 1);
		addresses[n].len = sizeof(*v4);
	}
	upstream_resolved(probe.up, find_pool(words[1])->endpoint.identity, addresses, n);
	print_ok("resolved");
}

static void do_count(char **words, size_t count)
{
	must(count == 2);
	struct upstream_counts n = upstream_count(probe.up, find_pool(words[1])->endpoint.identity);
	printf("{\"event\":\"count\",\"idle\":%ju,\"busy\":%ju,\"connecting\":%ju,\"queued\":%ju",
	       (uintmax_t)n.idle, (uintmax_t)n.busy, (uintmax_t)n.connecting, (uintmax_t)n.queued);
	print_end();
}

/* ---- calls ----------------------------------------------------------------------------------- */

static struct probe_call *find_call(const char *id)
{
	struct probe_call *call = probe.calls;

	while (call != NULL && strcmp(call->id, id) != 0)
		call = call->next;
	if (call == NULL)
		give_up("no such call", id);
	return call;
}

static void print_answer(const struct provider_answer *answer)
{
	printf(",\"status\":%u,\"wall_s\":%ju", (unsigned)answer->status,
	       (uintmax_t)answer->wall_s);
	print_hex("body", answer->body);
	print_text("date", answer->headers.date);
	print_text("retry_after", answer->headers.retry_after);
	print_text("retry_after_ms", answer->headers.retry_after_ms);
	print_text("should_retry", answer->headers.should_retry);
	print_text("request_id", answer->headers.request_id);
}

static bool on_head(struct upstream_call *call)
{
	must(call->answer.status != 0 && slice_absent(call->answer.body) == false &&
	     call->answer.body.len == 0);
	if (call->answer.status == 200)
		call->answer.headers = (struct provider_headers){ 0 };
	return call->answer.status == 200;
}

static bool on_any_head(struct upstream_call *call)
{
	(void)call;
	return false;
}

static void on_piece(struct upstream_call *of, struct slice bytes)
{
	struct probe_call *call = CONTAINER_OF(of, struct probe_call, call);
	long most = labs(call->pieces.enough);

	must(bytes.len != 0 && of->state == UPSTREAM_BODY);
	if (call->pieces.len + bytes.len > call->pieces.room) {
		call->pieces.room = 2 * (call->pieces.len + bytes.len);
		call->pieces.bytes = realloc(call->pieces.bytes, call->pieces.room);
		must(call->pieces.bytes != NULL);
	}
	(void)memcpy(call->pieces.bytes + call->pieces.len, bytes.at, bytes.len);
	call->pieces.len += bytes.len;
	call->pieces.count++;
	if (bytes.len > call->pieces.largest)
		call->pieces.largest = bytes.len;
	if (most != 0 && call->pieces.len >= (size_t)most)
		upstream_enough(of, call->pieces.enough > 0);
}

static void print_pieces(const struct probe_call *call)
{
	printf(",\"pieces\":%u,\"largest\":%zu,\"bytes\":%zu", call->pieces.count,
	       call->pieces.largest, call->pieces.len);
	print_hex("taken", slice_of(call->pieces.bytes, call->pieces.len));
}

static void on_done(struct upstream_call *done)
{
	struct probe_call *call = CONTAINER_OF(done, struct probe_call, call);

	must(done->state == UPSTREAM_IDLE);
	printf("{\"event\":\"done\",\"id\":\"%s\",\"err\":\"%s\"", call->id,
	       err_info(done->err)->reason);
	print_text("detail", slice_str(done->detail));
	printf(",\"bytes_sent\":%s", done->bytes_sent ? "true" : "false");
	print_ms("queued_ms", 0, done->queued_ns);
	if (done->sent_at != 0)
		print_ms("sent_to_done_ms", done->sent_at, done->done_at);
	if (done->first_byte_at != 0)
		print_ms("sent_to_first_ms", done->sent_at, done->first_byte_at);
	if (done->err == ERR_OK)
		print_answer(&done->answer);
	if (call->pieces.count != 0)
		print_pieces(call);
	print_end();
	upstream_finish(done);
	arena_give(&call->arena);
	free(call->body);
	call->body = NULL;
}

static nsec_t ms(const char *word)
{
	return (nsec_t)strtoull(word, NULL, 10) * MSEC;
}

static void do_call(char **words, size_t count)
{
	bool pieces = strcmp(words[0], "pieces") == 0;
	must(count == (pieces ? 10 : 9));
	struct probe_call *call = calloc(1, sizeof(*call));
	size_t bytes = strtoul(words[3], NULL, 10);
	must(call != NULL);
	call->body = malloc(bytes + 1);
	must(call->body != NULL);
	(void)memset(call->body, 'b', bytes);
	arena_init(&call->arena, &probe.arenas, (size_t)1 << 20);
	(void)snprintf(call->id, sizeof(call->id), "%s", words[1]);
	int len = snprintf(call->head, sizeof(call->head),
			   "POST /%s HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n", call->id,
			   bytes);
	call->request[0] = (struct iovec){ call->head, (size_t)len };
	call->request[1] = (struct iovec){ call->body, bytes };
	call->call = (struct upstream_call){
		.request = call->request,
		.request_count = 2,
		.deadline = net_now(probe.loop) + ms(words[4]),
		.into = &call->arena,
		.timeouts = { .connect = ms(words[5]),
			      .first_byte = ms(words[6]),
			      .idle = ms(words[7]),
			      .total = ms(words[8]) },
		.done = on_done,
	};
	if (pieces) {
		call->call.head = on_head;
		call->call.piece = on_piece;
		call->pieces.enough = atol(words[9]);
	}
	if (strcmp(words[0], "any") == 0) {
		call->call.head = on_any_head;
		call->call.piece = on_piece;
		call->call.extra = &call->extra;
	}
	call->next = probe.calls;
	probe.calls = call;
	upstream_start(find_pool(words[2])->pool, &call->call);
}

static void cancel_call(struct probe_call *call)
{
	upstream_cancel(&call->call);
	upstream_finish(&call->call);
	arena_give(&call->arena);
	free(call->body);
	call->body = NULL;
}

static void do_cancel(char **words, size_t count)
{
	must(count == 2);
	cancel_call(find_call(words[1]));
	print_ok("cancelled");
}

static void do_state(char **words, size_t count)
{
	must(count == 2);
	printf("{\"event\":\"state\",\"state\":\"%s\"",
	       state_names[find_call(words[1])->call.state]);
	print_end();
}

static void do_pause(char **words, size_t count)
{
	must(count == 2);
	if (strcmp(words[0], "pause") == 0)
		upstream_pause(&find_call(words[1])->call);
	else
		upstream_resume(&find_call(words[1])->call);
	print_ok(words[0]);
}

static void do_got(char **words, size_t count)
{
	must(count == 2);
	printf("{\"event\":\"got\",\"bytes\":%zu", find_call(words[1])->pieces.len);
	print_end();
}

/* ---- commands -------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	void (*run)(char **words, size_t count);
} commands[] = {
	{ "pool", do_pool },    { "sweep", do_sweep }, { "resolve", do_resolve },
	{ "count", do_count },  { "call", do_call },   { "cancel", do_cancel },
	{ "state", do_state },  { "pieces", do_call }, { "pause", do_pause },
	{ "resume", do_pause }, { "got", do_got },     { "any", do_call },
};

static void run_command(char *text)
{
	char *words[WORDS_MAX];
	size_t count = 0;

	for (char *word = strtok(text, " \n"); word != NULL && count < WORDS_MAX;
	     word = strtok(NULL, " \n"))
		words[count++] = word;
	for (size_t i = 0; count != 0 && i < COUNT_OF(commands); i++) {
		if (strcmp(commands[i].name, words[0]) == 0) {
			commands[i].run(words, count);
			return;
		}
	}
	give_up("unknown command", count == 0 ? "" : words[0]);
}

static void on_line(struct net_message *message, void *owner)
{
	struct line *line = CONTAINER_OF(message, struct line, message);

	(void)owner;
	if (line->end)
		probe.over = true;
	else
		run_command(line->text);
	free(line);
}

static void *read_lines(void *arg)
{
	bool end = false;

	(void)arg;
	while (!end) {
		struct line *line = calloc(1, sizeof(*line));
		must(line != NULL);
		line->message.run = on_line;
		end = line->end = fgets(line->text, sizeof(line->text), stdin) == NULL;
		net_post(probe.loop, &line->message); /* its own no more */
	}
	return NULL;
}

/* Everything goes back, so that a leak is a leak of upstream's. */
static void clean_up(void)
{
	for (struct probe_call *call = probe.calls, *next; call != NULL; call = next) {
		next = call->next;
		cancel_call(call);
		free(call->pieces.bytes);
		free(call);
	}
	upstream_mark(probe.up);
	upstream_sweep(probe.up);
	for (size_t i = 0; i < probe.pool_count; i++) {
		free((void *)probe.pools[i].endpoint.host.at);
		free((void *)probe.pools[i].endpoint.identity.at);
		free((void *)probe.pools[i].endpoint.ca_pem.at);
	}
}

int main(int argc, char **argv)
{
	pthread_t reader;

	if (argc != 7)
		give_up("usage", "CONNECTIONS IDLE QUEUE IDLE_FOR_MS HEAD_MAX BODY_MAX");
	const struct upstream_limits limits = {
		.connections_max = (uint32_t)atoi(argv[1]),
		.idle_max = (uint32_t)atoi(argv[2]),
		.queue_max = (uint32_t)atoi(argv[3]),
		.idle_for = ms(argv[4]),
		.fresh_for = ms(argv[4]),
		.head_max = strtoul(argv[5], NULL, 10),
		.body_max = strtoul(argv[6], NULL, 10),
	};
	probe.loop = net_loop_new();
	must(probe.loop != NULL);
	probe.up = upstream_new(probe.loop, &limits);
	must(probe.up != NULL);
	must(pthread_create(&reader, NULL, read_lines, NULL) == 0);
	while (!probe.over)
		net_turn(probe.loop,
			 3600 * SEC); /* so that what only time would wake never wakes */
	must(pthread_join(reader, NULL) == 0);
	clean_up();
	return 0;
}
