#include "gateway/limits/limiter_query.h"

#include "codec/base/must.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct question_part {
	uint8_t key[16];
	struct limit_state state;
};

struct limiter_query {
	pthread_mutex_t lock;
	pthread_cond_t answered;
	uint32_t holders; /* the thread that asks and the one that answers */
	bool has_answer;
	enum limiter_said said;
	uint8_t tag[16];
	uint64_t top_up;
	uint32_t count;
	struct question_part parts[];
};

struct limiter_query *limiter_query_new(const uint8_t tag[16], const uint8_t (*keys)[16],
					uint32_t count, uint64_t top_up)
{
	struct limiter_query *question;
	pthread_condattr_t clock;

	must(count >= 1);
	question = calloc(1, sizeof(*question) + count * sizeof(question->parts[0]));
	if (question == NULL)
		return NULL;
	must(pthread_condattr_init(&clock) == 0);
	must(pthread_condattr_setclock(&clock, CLOCK_MONOTONIC) == 0);
	must(pthread_mutex_init(&question->lock, NULL) == 0);
	must(pthread_cond_init(&question->answered, &clock) == 0);
	must(pthread_condattr_destroy(&clock) == 0);
	question->holders = 2;
	question->top_up = top_up;
	question->count = count;
	(void)memcpy(question->tag, tag, sizeof(question->tag));
	for (uint32_t i = 0; i < count; i++)
		(void)memcpy(question->parts[i].key, keys[i], sizeof(question->parts[i].key));
	return question;
}

static void let_go(struct limiter_query *question)
{
	must(pthread_mutex_lock(&question->lock) == 0);
	const uint32_t left = --question->holders;
	must(pthread_mutex_unlock(&question->lock) == 0);
	if (left != 0)
		return;
	must(pthread_cond_destroy(&question->answered) == 0);
	must(pthread_mutex_destroy(&question->lock) == 0);
	free(question);
}

enum limiter_said limiter_query_wait(struct limiter_query *question, nsec_t at_most)
{
	struct timespec until;
	enum limiter_said said = LIMITER_SAID_NOTHING;
	int err = 0;

	must(clock_gettime(CLOCK_MONOTONIC, &until) == 0);
	const nsec_t nsec = (nsec_t)until.tv_nsec + at_most;
	until.tv_sec += (time_t)(nsec / SEC);
	until.tv_nsec = (long)(nsec % SEC);
	must(pthread_mutex_lock(&question->lock) == 0);
	while (!question->has_answer && err == 0)
		err = pthread_cond_timedwait(&question->answered, &question->lock, &until);
	if (question->has_answer)
		said = question->said;
	must(pthread_mutex_unlock(&question->lock) == 0);
	return said;
}

const struct limit_state *limiter_query_state(const struct limiter_query *question, uint32_t i)
{
	must(i < question->count && question->said == LIMITER_SAID_DONE);
	return &question->parts[i].state;
}

void limiter_query_free(struct limiter_query *question)
{
	if (question != NULL)
		let_go(question);
}

const uint8_t *limiter_query_tag(const struct limiter_query *question)
{
	return question->tag;
}

const uint8_t *limiter_query_key(const struct limiter_query *question, uint32_t i)
{
	must(i < question->count);
	return question->parts[i].key;
}

uint32_t limiter_query_count(const struct limiter_query *question)
{
	return question->count;
}

uint64_t limiter_query_top_up(const struct limiter_query *question)
{
	return question->top_up;
}

struct limit_state *limiter_query_fill(struct limiter_query *question, uint32_t i)
{
	must(i < question->count);
	return &question->parts[i].state;
}

void limiter_query_answer(struct limiter_query *question, enum limiter_said said)
{
	must(pthread_mutex_lock(&question->lock) == 0);
	must(!question->has_answer);
	question->has_answer = true;
	question->said = said;
	must(pthread_cond_signal(&question->answered) == 0);
	must(pthread_mutex_unlock(&question->lock) == 0);
	let_go(question);
}
