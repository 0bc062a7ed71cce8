#include "gateway/worker/panic.h"

#include "codec/base/must.h"
#include "gateway/flow/flow.h"

#include <signal.h>
#include <unistd.h>

enum { PANIC_LINE_MAX = 1024, PANIC_TENANT_MAX = 128 };

/* Per thread, because threads panic one by one; read by signal handlers, hence volatile. */
static _Thread_local const struct panic_context *volatile here;
static _Thread_local volatile sig_atomic_t printed;

struct panic_line {
	char bytes[PANIC_LINE_MAX];
	size_t len;
};

static void add(struct panic_line *line, struct slice s)
{
	size_t room = sizeof(line->bytes) - 1 - line->len; /* one is kept for the newline */
	size_t len = s.len < room ? s.len : room;

	if (len > 0)
		memcpy(line->bytes + line->len, s.at, len);
	line->len += len;
}

static void add_number(struct panic_line *line, size_t value)
{
	char digits[20];
	size_t n = sizeof(digits);

	do
		digits[--n] = (char)('0' + value % 10);
	while ((value /= 10) != 0);
	add(line, slice_of(digits + n, sizeof(digits) - n));
}

/* A tenant's id comes from a file: nothing but printable ASCII reaches a terminal. */
static void add_printable(struct panic_line *line, struct slice s)
{
	for (size_t i = 0; i < s.len && i < PANIC_TENANT_MAX; i++) {
		bool plain = s.at[i] > ' ' && s.at[i] <= '~';
		add(line, plain ? slice_of(s.at + i, 1) : SLICE("?"));
	}
}

/* Whatever state it is in: no must() may break here. */
static void add_flow(struct panic_line *line, const struct flow *flow)
{
	const bool known = flow != NULL && (unsigned)flow->step < FLOW_STEP_COUNT;

	add(line, known ? slice_str(flow_step_name(flow->step)) : SLICE("none"));
	if (flow == NULL || flow->ask == NULL || flow->ask->caller == NULL)
		return;
	add(line, SLICE(", tenant "));
	add_printable(line, flow->ask->caller->tenant);
}

static void add_slab(struct panic_line *line, const struct panic_slab *named)
{
	add(line, SLICE("; "));
	add(line, slice_str(named->name));
	add(line, SLICE(" "));
	add_number(line, named->slab->out);
	add(line, SLICE(" of "));
	add_number(line, named->slab->count);
	add(line, SLICE(" out, at most "));
	add_number(line, named->slab->out_high);
}

void panic_print(const struct panic_context *context, int fd)
{
	struct panic_line line = { .len = 0 };

	if (context == NULL)
		return;
	add(&line, SLICE("sluice: panic: step "));
	add_flow(&line, context->flow == NULL ? NULL : *context->flow);
	for (size_t i = 0; i < context->slab_count; i++)
		add_slab(&line, &context->slabs[i]);
	line.bytes[line.len++] = '\n';
	ssize_t written = write(fd, line.bytes, line.len);
	(void)written; /* there is nobody left to tell */
}

static void print_once(void)
{
	if (printed == 0) {
		printed = 1;
		panic_print(here, STDERR_FILENO);
	}
}

static void on_must(const char *what, const char *file, int line, const char *function)
{
	(void)what; /* must() has printed these four itself */
	(void)file;
	(void)line;
	(void)function;
	print_once();
}

static void on_abort(int number)
{
	print_once();
	/* The signal may be from outside: abort() alone would end the process by itself. This one is pending till
	 * the handler returns, and its action is the default by now. */
	(void)raise(number);
}

void panic_set_context(const struct panic_context *context)
{
	here = context;
}

void panic_install(void)
{
	const struct sigaction mine = { .sa_handler = on_abort, .sa_flags = (int)SA_RESETHAND };
	struct sigaction old;

	must_set_hook(on_must);
	if (sigaction(SIGABRT, NULL, &old) == 0 && old.sa_handler == SIG_DFL)
		must(sigaction(SIGABRT, &mine, NULL) == 0);
}
