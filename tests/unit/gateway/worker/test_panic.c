/* test_panic.c - the last words say what is known and fit one line whatever the context holds. */
#include "gateway/worker/panic.h"

#include "codec/base/attr.h"
#include "codec/base/must.h"
#include "gateway/flow/flow.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char said[8192];

/* What is printed of `context`. */
static const char *words(const struct panic_context *context)
{
	int fds[2];

	assert_int_equal(pipe2(fds, O_NONBLOCK), 0);
	panic_print(context, fds[1]);
	(void)close(fds[1]);
	ssize_t len = read(fds[0], said, sizeof(said) - 1);
	(void)close(fds[0]);
	said[len < 0 ? 0 : len] = '\0';
	return said;
}

static void step_tenant_and_slabs_are_named(void **state)
{
	(void)state;
	const struct slab requests = { .count = 32768, .out = 3, .out_high = 17 };
	const struct panic_slab slabs[] = { { "requests", &requests } };
	const struct caller caller = { .tenant = SLICE("acme") };
	const struct sampling_ask ask = { .caller = &caller };
	const struct flow flow = { .step = FLOW_STEP_SETTLE, .ask = &ask };
	const struct flow *const at = &flow;
	const struct panic_context context = { &at, slabs, 1 };

	assert_string_equal(words(&context),
			    "sluice: panic: step settle, tenant acme; requests 3 of "
			    "32768 out, at most 17\n");
}

static void what_is_not_known_is_left_out(void **state)
{
	(void)state;
	const struct panic_context nothing = { .flow = NULL };
	const struct flow stranger = { .step = FLOW_STEP_HOLD };
	const struct flow *const at = &stranger;
	const struct panic_context early = { .flow = &at };

	assert_string_equal(words(NULL), "");
	assert_string_equal(words(&nothing), "sluice: panic: step none\n");
	assert_string_equal(words(&early), "sluice: panic: step hold\n");
}

static void a_step_that_there_is_not_does_no_harm(void **state)
{
	(void)state;
	const struct flow flow = { .step = FLOW_STEP_COUNT };
	const struct flow *const at = &flow;
	const struct panic_context context = { .flow = &at };

	assert_string_equal(words(&context), "sluice: panic: step none\n");
}

static void a_tenant_that_is_no_plain_text_does_no_harm(void **state)
{
	(void)state;
	char tenant[5000];

	memset(tenant, '\x1b', sizeof(tenant));
	const struct caller caller = { .tenant = slice_of(tenant, sizeof(tenant)) };
	const struct sampling_ask ask = { .caller = &caller };
	const struct flow flow = { .step = FLOW_STEP_HOLD, .ask = &ask };
	const struct flow *const at = &flow;
	const struct panic_context context = { .flow = &at };
	const char *line = words(&context);
	assert_null(strchr(line, '\x1b'));
	assert_non_null(strstr(line, "tenant ????"));
	assert_true(strlen(line) <= 1024);
	assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
}

static void many_slabs_fill_the_line_and_no_more(void **state)
{
	(void)state;
	const struct slab slab = { .count = SIZE_MAX, .out = SIZE_MAX, .out_high = SIZE_MAX };
	struct panic_slab slabs[100];

	for (size_t i = 0; i < COUNT_OF(slabs); i++)
		slabs[i] = (struct panic_slab){ "slab", &slab };
	const struct caller caller = { .tenant = SLICE("t") };
	const struct sampling_ask ask = { .caller = &caller };
	const struct flow flow = { .step = FLOW_STEP_HOLD, .ask = &ask };
	const struct flow *const at = &flow;
	const struct panic_context context = { &at, slabs, COUNT_OF(slabs) };
	const char *line = words(&context);
	assert_int_equal(strlen(line), 1024);
	assert_ptr_equal(strchr(line, '\n'), line + 1023);
}

/* Runs `die` in a child and returns what it leaves on stderr; it must end by SIGABRT. */
static const char *last_words(void (*die)(void))
{
	int fds[2], status;

	assert_int_equal(pipe(fds), 0);
	pid_t pid = fork();
	if (pid == 0) {
		static const struct caller caller = { .tenant = SLICE_INIT("acme") };
		static const struct sampling_ask ask = { .caller = &caller };
		static const struct flow flow = { .step = FLOW_STEP_RESERVE, .ask = &ask };
		static const struct flow *const at = &flow;
		static const struct panic_context context = { .flow = &at };
		(void)dup2(fds[1], STDERR_FILENO);
		(void)signal(SIGABRT, SIG_DFL); /* cmocka's */
		panic_install();
		panic_set_context(&context);
		die();
		_exit(0);
	}
	(void)close(fds[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	ssize_t len = read(fds[0], said, sizeof(said) - 1);
	(void)close(fds[0]);
	said[len < 0 ? 0 : len] = '\0';
	return said;
}

static void break_a_promise(void)
{
	must(getpid() == 0);
}

static void a_broken_promise_says_where_and_for_whom_once(void **state)
{
	(void)state;
	const char *text = last_words(break_a_promise);
	const char *line = strstr(text, "sluice: panic: step reserve, tenant acme\n");

	assert_non_null(strstr(text, "must(getpid() == 0) failed\n"));
	assert_non_null(line);
	assert_null(strstr(line + 1, "sluice: panic"));
}

static void an_abort_of_a_library_says_for_whom(void **state)
{
	(void)state;
	assert_string_equal(last_words(abort), "sluice: panic: step reserve, tenant acme\n");
}

static void be_killed(void)
{
	(void)kill(getpid(), SIGABRT);
}

static void a_signal_from_outside_ends_the_process_too(void **state)
{
	(void)state;
	assert_string_equal(last_words(be_killed), "sluice: panic: step reserve, tenant acme\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(step_tenant_and_slabs_are_named),
		cmocka_unit_test(what_is_not_known_is_left_out),
		cmocka_unit_test(a_step_that_there_is_not_does_no_harm),
		cmocka_unit_test(a_tenant_that_is_no_plain_text_does_no_harm),
		cmocka_unit_test(many_slabs_fill_the_line_and_no_more),
		cmocka_unit_test(a_broken_promise_says_where_and_for_whom_once),
		cmocka_unit_test(an_abort_of_a_library_says_for_whom),
		cmocka_unit_test(a_signal_from_outside_ends_the_process_too),
	};
	return cmocka_run_group_tests_name("panic", tests, NULL, NULL);
}
