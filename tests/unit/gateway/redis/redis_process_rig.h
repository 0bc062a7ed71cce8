/* redis_process_rig.h - a real Redis, and connections to it that the test is (fake_redis_link.h): what was sent on them is
 * done and answered when the test says so. To be included once. */
#ifndef TESTS_REDIS_PROCESS_RIG_H
#define TESTS_REDIS_PROCESS_RIG_H

#include "tests/unit/gateway/redis/fake_redis_link.h"

#include <hiredis/hiredis.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char directory[] = "/tmp/sluice-redis-XXXXXX";
static char socket_path[64];
static pid_t server;
static redisContext *connection;

static inline redisReply *ask(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	redisReply *reply = redisvCommand(connection, format, args);
	va_end(args);
	assert_non_null(reply);
	if (reply->type == REDIS_REPLY_ERROR)
		fail_msg("%s: %s", format, reply->str);
	return reply;
}

static inline void command(const char *format, const char *argument)
{
	freeReplyObject(ask(format, argument));
}

static inline void one_answer(struct redis_link *link)
{
	void *reply = NULL;

	assert_int_equal(redisGetReply(connection, &reply), REDIS_OK);
	const bool error = ((redisReply *)reply)->type == REDIS_REPLY_ERROR;
	if (error && strncmp(((redisReply *)reply)->str, "NOSCRIPT", 8) != 0)
		fail_msg("%s", ((redisReply *)reply)->str);
	fake_answer(link, error ? REDIS_REFUSED : REDIS_ANSWERED, reply);
	freeReplyObject(reply);
}

/* Everything that was sent on that connection is done and answered, and what is sent then, too. Returns how many
 * commands. */
static inline uint64_t exchange_link(struct redis_link *link)
{
	uint64_t sum = 0;

	while (fake_waiting(link) != 0) {
		const uint64_t count = fake_waiting(link);
		assert_int_equal(
			redisAppendFormattedCommand(connection, link->out.at, link->out.len),
			REDIS_OK);
		redis_buffer_clear(&link->out);
		for (uint64_t i = 0; i < count; i++)
			one_answer(link);
		sum += count;
	}
	return sum;
}

static inline int start_server(void **state)
{
	(void)state;
	if (mkdtemp(directory) == NULL)
		return -1;
	(void)snprintf(socket_path, sizeof(socket_path), "%s/redis.sock", directory);
	server = fork();
	if (server == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)!freopen("/dev/null", "w", stdout);
		(void)execlp("redis-server", "redis-server", "--port", "0", "--unixsocket",
			     socket_path, "--save", "", "--dir", directory, (char *)NULL);
		_exit(127);
	}
	do {
		if (waitpid(server, NULL, WNOHANG) == server)
			exit(77); /* there is no redis-server: ctest knows it as skipped */
		redisFree(connection);
		connection = redisConnectUnix(socket_path);
		assert_non_null(connection);
	} while (connection->err != 0);
	return 0;
}

static inline int stop_server(void **state)
{
	(void)state;
	redisFree(connection);
	(void)kill(server, SIGKILL);
	(void)waitpid(server, NULL, 0);
	(void)unlink(socket_path);
	return rmdir(directory);
}

#endif
