/* redis_reply_rig.h - answers of Redis, made of their bytes. */
#ifndef TESTS_REDIS_REPLY_RIG_H
#define TESTS_REDIS_REPLY_RIG_H

#include <hiredis/hiredis.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* As the link reads: what comes in pieces of `step` bytes. NULL: more is awaited, or a protocol error. */
static inline redisReply *read_in_steps(const char *bytes, size_t len, size_t step)
{
	redisReader *reader = redisReaderCreate();
	void *reply = NULL;
	int ok = REDIS_OK;

	assert_non_null(reader);
	for (size_t at = 0; at < len && ok == REDIS_OK && reply == NULL; at += step) {
		ok = redisReaderFeed(reader, bytes + at, len - at < step ? len - at : step);
		if (ok == REDIS_OK)
			ok = redisReaderGetReply(reader, &reply);
	}
	redisReaderFree(reader);
	return reply;
}

#define READ(bytes) read_in_steps(bytes, sizeof(bytes) - 1, sizeof(bytes))

#endif
