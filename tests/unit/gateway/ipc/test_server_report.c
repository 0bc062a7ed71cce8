/* test_report.c - what a server says arrives at its supervisor, texts included. */
#include "gateway/ipc/server_report.h"

#include "codec/base/attr.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

static const struct config_file files[] = {
	{ SLICE_INIT("/etc/sluice/sluice.yaml"), SLICE_INIT("listen: []\nnul: \0byte") },
	{ SLICE_INIT("empty"), SLICE_INIT("") },
	{ SLICE_INIT(""), SLICE_INIT("a file without a name") },
};

static void ready_arrives_and_then_there_is_nothing(void **state)
{
	(void)state;
	struct report report;
	int fds[2];

	assert_true(report_pair(fds));
	assert_false(report_receive(fds[0], &report));
	assert_true(report_ready(fds[1]));
	assert_true(report_receive(fds[0], &report));
	assert_int_equal(report.kind, REPORT_READY);
	assert_int_equal(report.texts_fd, -1);
	assert_false(report_receive(fds[0], &report));
	(void)close(fds[0]);
	(void)close(fds[1]);
}

static void a_wish_to_end_arrives(void **state)
{
	(void)state;
	struct report report;
	int fds[2];

	assert_true(report_pair(fds));
	assert_true(report_stop(fds[1]));
	assert_true(report_receive(fds[0], &report));
	assert_int_equal(report.kind, REPORT_STOP);
	assert_int_equal(report.texts_fd, -1);
	(void)close(fds[0]);
	(void)close(fds[1]);
}

static void a_configuration_arrives_with_the_texts_of_all_its_files(void **state)
{
	(void)state;
	const struct config config = { .drain = 30 * SEC,
				       .digest = "0123456789abcdef",
				       .files = files,
				       .file_count = COUNT_OF(files) };
	struct report report;
	struct report_texts texts;
	int fds[2];

	assert_true(report_pair(fds));
	assert_true(report_config(fds[1], &config));
	(void)close(fds[1]); /* a dead server's last report is still there */
	assert_true(report_receive(fds[0], &report));
	assert_int_equal(report.kind, REPORT_CONFIG);
	assert_int_equal(report.drain, 30 * SEC);
	assert_string_equal(report.digest, "0123456789abcdef");
	assert_true(report_texts_load(report.texts_fd, &texts));
	assert_int_equal(texts.count, COUNT_OF(files));
	for (size_t i = 0; i < COUNT_OF(files); i++) {
		assert_true(slice_eq(texts.files[i].path, files[i].path));
		assert_true(slice_eq(texts.files[i].text, files[i].text));
	}
	report_texts_free(&texts);
	assert_false(report_receive(fds[0], &report));
	(void)close(report.texts_fd);
	(void)close(fds[0]);
}

static void the_texts_cannot_be_changed_any_more(void **state)
{
	(void)state;
	int fd = report_texts_save(files, COUNT_OF(files));

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "x", 1), -1);
	assert_int_equal(ftruncate(fd, 0), -1);
	(void)close(fd);
}

static void anything_else_is_not_taken_for_texts(void **state)
{
	(void)state;
	int good = report_texts_save(files, COUNT_OF(files));
	char bytes[4096];
	ssize_t len = pread(good, bytes, sizeof(bytes), 0);
	struct report_texts texts;

	assert_true(len > 0);
	for (ssize_t cut = 0; cut < len; cut++) {
		int fd = memfd_create("cut", MFD_CLOEXEC);
		assert_int_equal(write(fd, bytes, (size_t)cut), cut);
		assert_false(report_texts_load(fd, &texts));
		assert_int_equal(errno, EBADMSG);
		(void)close(fd);
	}
	(void)close(good);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ready_arrives_and_then_there_is_nothing),
		cmocka_unit_test(a_wish_to_end_arrives),
		cmocka_unit_test(a_configuration_arrives_with_the_texts_of_all_its_files),
		cmocka_unit_test(the_texts_cannot_be_changed_any_more),
		cmocka_unit_test(anything_else_is_not_taken_for_texts),
	};
	return cmocka_run_group_tests_name("server_report", tests, NULL, NULL);
}
