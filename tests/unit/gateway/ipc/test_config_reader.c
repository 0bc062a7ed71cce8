/* test_reader.c - questions to the process that reads the configuration: here a thread. */
#include "gateway/ipc/config_reader.h"

#include "gateway/base/fd_message.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define GOOD                                                                               \
	"providers: {p: {dialect: openai, endpoints: [{url: \"http://127.0.0.1:9/v1\"}], " \
	"keys: [\"file:secret\"]}}\n"                                                      \
	"models: [{id: m, provider: p, context: 1000, price: {input: 1, output: 1}}]\n"

struct rig {
	char directory[64], config[96], secret[96];
	int pair[2];
	pthread_t thread;
};

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void *run(void *arg)
{
	struct rig *rig = arg;

	reader_run(rig->pair[0], rig->config);
	return NULL;
}

static void begin_files(struct rig *rig)
{
	(void)snprintf(rig->directory, sizeof(rig->directory), "/tmp/sluice-reader-XXXXXX");
	assert_non_null(mkdtemp(rig->directory));
	(void)snprintf(rig->config, sizeof(rig->config), "%s/sluice.yaml", rig->directory);
	(void)snprintf(rig->secret, sizeof(rig->secret), "%s/secret", rig->directory);
	write_file(rig->config, GOOD);
	write_file(rig->secret, "sk-of-the-provider\n");
	assert_true(reader_pair(rig->pair));
}

static void begin(struct rig *rig)
{
	begin_files(rig);
	assert_int_equal(pthread_create(&rig->thread, NULL, run, rig), 0);
}

/* The reader ends when nobody is left who could ask. */
static void end(struct rig *rig)
{
	(void)close(rig->pair[1]);
	assert_int_equal(pthread_join(rig->thread, NULL), 0);
	(void)close(rig->pair[0]);
	(void)unlink(rig->config);
	(void)unlink(rig->secret);
	assert_int_equal(rmdir(rig->directory), 0);
}

static uint64_t wall_ns(void)
{
	struct timespec now;

	assert_int_equal(clock_gettime(CLOCK_REALTIME, &now), 0);
	return (uint64_t)now.tv_sec * SEC + (uint64_t)now.tv_nsec;
}

static void a_configuration_comes_with_every_file_it_names(void **state)
{
	struct rig rig;
	struct report_texts texts;
	bool whole = false;
	(void)state;

	begin(&rig);
	assert_true(reader_load(rig.pair[1], &texts, &whole));
	assert_true(whole);
	assert_int_equal(texts.count, 2);
	assert_true(slice_eq(texts.files[0].path, slice_str(rig.config)));
	assert_true(slice_eq(texts.files[0].text, SLICE(GOOD)));
	assert_true(slice_eq(texts.files[1].path, slice_str(rig.secret)));
	assert_true(slice_eq(texts.files[1].text, SLICE("sk-of-the-provider\n")));
	report_texts_free(&texts);
	end(&rig);
}

static void one_that_does_not_load_comes_as_the_reasons(void **state)
{
	struct rig rig;
	struct report_texts texts;
	bool whole = true;
	char reason[256];
	(void)state;

	begin(&rig);
	write_file(rig.config, GOOD "wrokers: 3\n");
	assert_true(reader_load(rig.pair[1], &texts, &whole));
	assert_false(whole);
	assert_int_equal(texts.count, 1);
	(void)snprintf(reason, sizeof(reason), "%s:3: wrokers: is no setting", rig.config);
	assert_true(slice_starts(texts.files[0].text, slice_str(reason)));
	report_texts_free(&texts);
	end(&rig);
}

static void what_has_changed_since_the_load_is_seen(void **state)
{
	uint8_t first[SHA256_BYTES], second[SHA256_BYTES];
	struct rig rig;
	struct report_texts texts;
	bool whole, changed = false;
	(void)state;

	begin(&rig);
	assert_true(reader_look(rig.pair[1], wall_ns(), &changed, first));
	assert_true(changed); /* nothing was loaded yet */
	assert_true(reader_load(rig.pair[1], &texts, &whole));
	report_texts_free(&texts);
	assert_true(reader_look(rig.pair[1], wall_ns(), &changed, first));
	assert_false(changed);
	write_file(rig.secret, "sk-another\n");
	assert_true(reader_look(rig.pair[1], wall_ns(), &changed, second));
	assert_true(changed);
	assert_memory_not_equal(first, second, sizeof(first));
	end(&rig);
}

/* What a dead server asked is answered to the next one, who did not ask. */
static void answers_to_others_are_passed_over(void **state)
{
	struct {
		uint64_t number, wall_ns, kind;
	} question = { .number = 1, .kind = 1 };
	struct rig rig;
	struct report_texts texts;
	bool whole = false;
	(void)state;

	begin(&rig);
	for (int i = 0; i < 3; i++)
		assert_true(fd_message_send(rig.pair[1], &question, sizeof(question), -1));
	assert_true(fd_message_send(rig.pair[1], "nonsense", 8, -1));
	write_file(rig.secret, "sk-another\n");
	assert_true(reader_load(rig.pair[1], &texts, &whole));
	assert_true(whole);
	assert_true(slice_eq(texts.files[1].text, SLICE("sk-another\n")));
	report_texts_free(&texts);
	end(&rig);
}

/* A reader that dies over the first `deaths` questions. */
struct mortal {
	struct rig rig;
	int deaths;
};

static void *die_and_run(void *arg)
{
	struct mortal *mortal = arg;
	const uint64_t begun[6] = { 0 };
	uint64_t question[3];
	int fd;

	for (int i = 0; i < mortal->deaths; i++) {
		struct pollfd ready = { .fd = mortal->rig.pair[0], .events = POLLIN };
		(void)poll(&ready, 1, -1);
		if (!fd_message_receive(mortal->rig.pair[0], question, sizeof(question), &fd))
			return NULL;
		if (i + 1 < mortal->deaths &&
		    !fd_message_send(mortal->rig.pair[0], begun, sizeof(begun), -1))
			return NULL;
	}
	return run(&mortal->rig);
}

static void begin_mortal(struct mortal *mortal, int deaths)
{
	mortal->deaths = deaths;
	begin_files(&mortal->rig);
	assert_int_equal(pthread_create(&mortal->rig.thread, NULL, die_and_run, mortal), 0);
}

static void a_question_that_a_reader_dies_over_is_put_to_the_next_one(void **state)
{
	struct mortal mortal;
	struct report_texts texts;
	bool whole = false;
	(void)state;

	begin_mortal(&mortal, 1);
	assert_true(reader_load(mortal.rig.pair[1], &texts, &whole));
	assert_true(whole);
	report_texts_free(&texts);
	end(&mortal.rig);
}

static void a_question_that_two_readers_die_over_is_given_up(void **state)
{
	struct mortal mortal;
	struct report_texts texts;
	bool whole = false;
	(void)state;

	begin_mortal(&mortal, 2);
	assert_false(reader_load(mortal.rig.pair[1], &texts, &whole));
	assert_int_equal(errno, ECONNABORTED);
	assert_true(reader_load(mortal.rig.pair[1], &texts, &whole));
	report_texts_free(&texts);
	end(&mortal.rig);
}

static void a_server_without_a_reader_is_told_so(void **state)
{
	struct report_texts texts;
	bool whole;
	int pair[2];
	(void)state;

	assert_true(reader_pair(pair));
	(void)close(pair[0]);
	assert_false(reader_load(pair[1], &texts, &whole));
	(void)close(pair[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_configuration_comes_with_every_file_it_names),
		cmocka_unit_test(one_that_does_not_load_comes_as_the_reasons),
		cmocka_unit_test(what_has_changed_since_the_load_is_seen),
		cmocka_unit_test(answers_to_others_are_passed_over),
		cmocka_unit_test(a_question_that_a_reader_dies_over_is_put_to_the_next_one),
		cmocka_unit_test(a_question_that_two_readers_die_over_is_given_up),
		cmocka_unit_test(a_server_without_a_reader_is_told_so),
	};

	return cmocka_run_group_tests_name("config_reader", tests, NULL, NULL);
}
