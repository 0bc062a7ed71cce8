/* limiter_script_rig.h - limits/limits.lua in a real Redis, behind real stores of several gateways, with a clock that is the
 * test's: the script's TIME reads a list. The gateways' own clocks begin in 2026.
 *
 * To be included once, as limiter_redis_rig.h, by a test that says how many gateways there are (WORKERS) and
 * how many slots the table of each has (RIG_SLOTS). */
#ifndef TESTS_LIMITER_SCRIPT_RIG_H
#define TESTS_LIMITER_SCRIPT_RIG_H

#include "tests/unit/gateway/limits/limiter_redis_rig.h"

#include "tenants/limit.h"

#include <openssl/sha.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cmocka.h>

enum { MICROS = 1000000 };
#define RIG_EPOCH_US (UINT64_C(1767225600) * MICROS) /* 2026-01-01 */

/* In place of the ones that CMake makes: the same script, but for its clock. */
char limits_lua[1 << 15];
size_t limits_lua_len;
char limits_lua_sha1[2 * SHA_DIGEST_LENGTH + 1];

static char directory[] = "/tmp/sluice-redis-XXXXXX";
static pid_t server;
static redisContext *connection;
static struct net_loop loop;
static uint64_t clock_us;
static struct limiter_redis *workers[WORKERS];

/* ---- chance (xorshift64*) ---- */

static uint64_t chance(uint64_t *seed, uint64_t below)
{
	*seed ^= *seed >> 12;
	*seed ^= *seed << 25;
	*seed ^= *seed >> 27;
	return (*seed * UINT64_C(2685821657736338717) >> 11) % below;
}

/* Up to 10^digits, of any size. */
static uint64_t any_size(uint64_t *seed, unsigned digits)
{
	uint64_t most = 10;

	for (uint64_t i = chance(seed, digits); i > 0; i--)
		most *= 10;
	return 1 + chance(seed, most);
}

/* ---- Redis ---- */

static void command(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	redisReply *reply = redisvCommand(connection, format, args);
	va_end(args);
	assert_non_null(reply);
	assert_int_not_equal(reply->type, REDIS_REPLY_ERROR);
	freeReplyObject(reply);
}

/* A time of Redis by the gateways' clocks. */
static nsec_t here(uint64_t redis_ns)
{
	const uint64_t epoch_ns = RIG_EPOCH_US * USEC;

	return redis_ns > epoch_ns ? redis_ns - epoch_ns : 0;
}

static void tell_time(void)
{
	loop.now = here(clock_us * USEC);
	loop.wall_s = clock_us / MICROS;
	command("DEL clock");
	command("RPUSH clock %llu %llu", (unsigned long long)(clock_us / MICROS),
		(unsigned long long)(clock_us % MICROS));
}

/* But for TIME, which asks the test's clock. */
static void append(const struct redis_buffer *out)
{
	static const char was[] = "*1\r\n$4\r\nTIME\r\n";
	static const char is[] = "*4\r\n$6\r\nLRANGE\r\n$5\r\nclock\r\n$1\r\n0\r\n$1\r\n1\r\n";
	const char *from = out->at, *end = from + out->len;
	const char *clock = memmem(from, out->len, was, sizeof(was) - 1);

	if (clock != NULL) {
		assert_int_equal(
			redisAppendFormattedCommand(connection, from, (size_t)(clock - from)),
			REDIS_OK);
		assert_int_equal(redisAppendFormattedCommand(connection, is, sizeof(is) - 1),
				 REDIS_OK);
		from = clock + sizeof(was) - 1;
	}
	assert_int_equal(redisAppendFormattedCommand(connection, from, (size_t)(end - from)),
			 REDIS_OK);
}

/* Everything that a worker has sent is done; `answered`: and it learns what became of it. */
static void exchange(struct limiter_redis *redis, bool answered)
{
	struct redis_buffer *out = &redis->link->out;
	uint64_t count = rig_waiting(redis);

	append(out);
	redis_buffer_clear(out);
	for (; count > 0; count--) {
		void *reply = NULL;
		assert_int_equal(redisGetReply(connection, &reply), REDIS_OK);
		const bool error = ((redisReply *)reply)->type == REDIS_REPLY_ERROR;
		if (error && strncmp(((redisReply *)reply)->str, "NOSCRIPT", 8) != 0)
			fail_msg("%s", ((redisReply *)reply)->str);
		rig_answer(redis,
			   !answered ? REDIS_LOST
			   : error   ? REDIS_REFUSED
				     : REDIS_ANSWERED,
			   answered ? reply : NULL);
		freeReplyObject(reply);
	}
}

/* Until nothing is left to be told. */
static void settle_down(struct limiter_redis *redis)
{
	do {
		while (rig_waiting(redis) != 0)
			exchange(redis, true);
	} while (rig_fire(&redis->flush));
}

/* With the times of the gateways' clocks. */
static struct limiter_state state_in_redis(const struct limit_scope scopes[], uint32_t scope)
{
	struct redis_buffer out = { .most = 1024 };
	struct limiter_state state;
	void *reply = NULL;

	redis_put_count(&out, 2);
	redis_put(&out, SLICE("GET"));
	limiter_redis_put_key(&out, scopes[0].key, scopes[scope].key);
	assert_int_equal(redisAppendFormattedCommand(connection, out.at, out.len), REDIS_OK);
	assert_int_equal(redisGetReply(connection, &reply), REDIS_OK);
	assert_true(limiter_read_state(reply, clock_us * USEC, &state));
	state.requests.ns = here(state.requests.ns);
	state.tokens.ns = here(state.tokens.ns);
	freeReplyObject(reply);
	redis_buffer_fini(&out);
	return state;
}

/* ---- around it ---- */

static void read_script(void)
{
	static const char was[] = "redis.call('TIME')",
			  is[] = "redis.call('LRANGE', 'clock', 0, 1)";
	static char text[sizeof(limits_lua)];
	const char *source = getenv("SLUICE_SOURCE");
	uint8_t digest[SHA_DIGEST_LENGTH];
	char path[4096];

	(void)snprintf(path, sizeof(path), "%s/gateway/limits/limits.lua",
		       source == NULL ? "." : source);
	FILE *file = fopen(path, "rb");
	assert_non_null(file);
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	assert_true(feof(file));
	(void)fclose(file);
	char *at = strstr(text, was);
	assert_non_null(at);
	assert_null(strstr(at + 1, was));
	limits_lua_len = (size_t)snprintf(limits_lua, sizeof(limits_lua), "%.*s%s%s",
					  (int)(at - text), text, is, at + sizeof(was) - 1);
	assert_true(limits_lua_len < sizeof(limits_lua));
	(void)SHA1((const uint8_t *)limits_lua, limits_lua_len, digest);
	for (size_t i = 0; i < sizeof(digest); i++)
		(void)snprintf(limits_lua_sha1 + 2 * i, 3, "%02x", digest[i]);
}

static int begin_server(void **state)
{
	char path[128];

	(void)state;
	assert_non_null(mkdtemp(directory));
	(void)snprintf(path, sizeof(path), "%s/socket", directory);
	server = fork();
	assert_true(server >= 0);
	if (server == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)!freopen("/dev/null", "w", stdout);
		(void)execlp("redis-server", "redis-server", "--port", "0", "--unixsocket", path,
			     "--save", "", "--appendonly", "no", "--dir", directory, (char *)NULL);
		_exit(77);
	}
	do {
		int status;
		if (waitpid(server, &status, WNOHANG) == server)
			exit(77); /* there is no redis-server: ctest knows it as skipped */
		redisFree(connection);
		connection = redisConnectUnix(path);
		assert_non_null(connection);
	} while (connection->err != 0);
	read_script();
	clock_us = UINT64_C(1767571200) * MICROS; /* 2026-01-05 */
	tell_time();
	return 0;
}

/* Nobody knows a tenant yet. They live until the process ends. */
static int begin_workers(void **state)
{
	static struct limiter_redis *all[8 * WORKERS];
	static uint32_t made;

	(void)state;
	for (uint32_t i = 0; i < WORKERS; i++) {
		assert_true(made < COUNT_OF(all));
		workers[i] = all[made++] = rig_new(&loop, RIG_SLOTS);
		rig_ready(workers[i]);
		settle_down(workers[i]);
	}
	return 0;
}

static int end_server(void **state)
{
	char path[128];

	(void)state;
	redisFree(connection);
	(void)kill(server, SIGKILL);
	(void)waitpid(server, NULL, 0);
	(void)snprintf(path, sizeof(path), "%s/socket", directory);
	(void)unlink(path);
	(void)rmdir(directory);
	return 0;
}

#endif
