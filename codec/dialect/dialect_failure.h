/* dialect_failure.h - error answers of every dialect to one classification (contract/providers.md 2,
 * 3, 5 and 7); private to codec/.
 *
 * The formats overlap so much that one tolerant reader serves all: error as object, string or list,
 * nested or flat, JSON or a proxy's page. Provider texts are only compared, never passed on. */
#ifndef CODEC_DIALECT_DIALECT_FAILURE_H
#define CODEC_DIALECT_DIALECT_FAILURE_H

#include "codec/dialect/dialect.h"

/* Classifies an answer that is an error by its status, or by an error object in a 200 body. ERR_OK
 * means that it is a refusal (a prompt filter's 400), which is a result. Else failure->err is
 * returned; *failure is always filled. `teachable`: decode_context's. */
MUST_USE enum err failure_classify(const struct provider_answer *answer, learn_set teachable,
				   struct json_work *work, struct arena *into,
				   struct provider_failure *failure);

/* An answer with status 200 that cannot be used: ERR_PROVIDER_ANSWER, or ERR_BUSY for our own want of
 * memory. `detail` static, NULL: the row's text. */
enum err failure_unusable(const struct provider_answer *answer, enum err err, const char *detail,
			  const struct usage *usage, struct arena *into,
			  struct provider_failure *failure);

/* Whether an answer with status 200 that has nothing in it, and no error object either, is an error itself. */
bool failure_is_told(const struct provider_answer *answer, struct json_work *work,
		     struct arena *into);

/* The detail of an answer in which the model wrote a tool call that nobody can read. */
extern const char failure_bad_call[];

/* An answer with status 200 whose host says that it failed within it, after that usage. Returns failure->err. */
enum err failure_broken(const struct provider_answer *answer, const struct usage *usage,
			struct json_work *work, struct arena *into,
			struct provider_failure *failure);

/* Milliseconds that the headers ask to wait, or -1. */
int64_t failure_retry_after(const struct provider_headers *headers, uint64_t wall_s);

/* An HTTP date in any of its three forms, as seconds since the epoch. */
bool http_date(struct slice text, uint64_t *epoch_s);

#endif
