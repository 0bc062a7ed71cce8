/* fake_redis_link.h - a connection to Redis that the test is, in place of redis_link.c: what is sent gathers in `out`,
 * and the test says what comes back, and when.
 *
 * To be included once; it defines functions of redis_link.h, so that the other is not linked. */
#ifndef TESTS_FAKE_REDIS_LINK_H
#define TESTS_FAKE_REDIS_LINK_H

#include "codec/base/must.h"
#include "gateway/redis/redis_link.h"

#include <stdlib.h>

enum { FAKE_COMMANDS = 256 };

struct redis_link {
	struct redis_user *users, **users_end;
	struct redis_script *loaded;
	uint64_t generation;
	bool ready;
	bool slow, closed_to_late; /* while it is not ready; it takes nothing more for now */
	struct redis_buffer out;
	size_t begun_at; /* where the latest command begins in it */
	struct redis_command ring[FAKE_COMMANDS];
	uint64_t first, next; /* numbers of those that are not over, from 1 on */
};

static inline struct redis_link *fake_link_new(void)
{
	struct redis_link *link = calloc(1, sizeof(*link));

	must(link != NULL);
	link->users_end = &link->users;
	link->out.most = 64 << 20;
	link->first = link->next = 1;
	return link;
}

void redis_link_join(struct redis_link *link, struct redis_user *user)
{
	*link->users_end = user;
	link->users_end = &user->next;
}

void redis_link_load(struct redis_link *link, struct redis_script *script)
{
	link->loaded = script;
}

bool redis_link_ready(const struct redis_link *link)
{
	return link->ready;
}

uint64_t redis_link_generation(const struct redis_link *link)
{
	return link->generation;
}

static inline struct redis_buffer *fake_begin(struct redis_link *link, bool open)
{
	link->begun_at = link->out.len;
	return open && link->next - link->first < FAKE_COMMANDS ? &link->out : NULL;
}

struct redis_buffer *redis_link_begin(struct redis_link *link)
{
	return fake_begin(link, link->ready);
}

/* What was sent is there at once. */
void redis_link_flush(struct redis_link *link)
{
	(void)link;
}

bool redis_link_is_slow(const struct redis_link *link, nsec_t patience)
{
	(void)patience;
	return link->slow;
}

struct redis_buffer *redis_link_begin_slow(struct redis_link *link, nsec_t patience)
{
	(void)patience;
	return fake_begin(link, link->slow && !link->closed_to_late);
}

struct redis_buffer *redis_link_begin_again(struct redis_link *link)
{
	return fake_begin(link, true);
}

struct redis_command *redis_link_command(struct redis_link *link, uint64_t ticket)
{
	must(ticket >= link->first && ticket < link->next);
	return &link->ring[ticket % FAKE_COMMANDS];
}

bool redis_link_send(struct redis_link *link, const struct redis_command *command)
{
	if (link->out.failed) {
		link->out.failed = false;
		link->out.len = link->begun_at;
		return false;
	}
	link->ring[link->next % FAKE_COMMANDS] = *command;
	if (command->call != NULL)
		command->call->ticket = link->next;
	link->next++;
	return true;
}

/* ---- what the test does ---- */

/* How many commands are owed an answer. */
static inline uint64_t fake_waiting(const struct redis_link *link)
{
	return link->next - link->first;
}

/* The oldest of these, or one behind it. */
static inline struct redis_command *fake_command(struct redis_link *link, uint64_t which)
{
	return redis_link_command(link, link->first + which);
}

static inline void fake_ready(struct redis_link *link)
{
	link->ready = true;
	link->slow = false;
	link->generation++;
	if (link->loaded != NULL)
		link->loaded->generation = link->generation;
	for (struct redis_user *user = link->users; user != NULL; user = user->next)
		if (user->events->ready != NULL)
			user->events->ready(user);
}

static inline void fake_unready(struct redis_link *link)
{
	link->ready = false;
	for (struct redis_user *user = link->users; user != NULL; user = user->next)
		if (user->events->unready != NULL)
			user->events->unready(user);
}

/* The connection, which was ready, is over. */
static inline void fake_lost(struct redis_link *link)
{
	for (struct redis_user *user = link->users; user != NULL; user = user->next)
		if (user->events->lost != NULL)
			user->events->lost(user);
}

/* An attempt to connect has failed. */
static inline void fake_failed(struct redis_link *link)
{
	for (struct redis_user *user = link->users; user != NULL; user = user->next)
		if (user->events->failed != NULL)
			user->events->failed(user);
}

/* The connection is as said, and no more than that. */
static inline void fake_turn(struct redis_link *link, bool slow, bool closed_to_late)
{
	link->slow = slow;
	link->closed_to_late = closed_to_late;
	for (struct redis_user *user = link->users; user != NULL; user = user->next)
		if (user->events->turned != NULL)
			user->events->turned(user);
}

/* The answer to that command is late. */
static inline void fake_late(struct redis_link *link, uint64_t which)
{
	struct redis_call *call = fake_command(link, which)->call;

	if (call != NULL && call->type->late != NULL)
		call->type->late(call);
}

/* The oldest command is over. */
static inline void fake_answer(struct redis_link *link, enum redis_outcome outcome,
			       const struct redisReply *reply)
{
	const struct redis_command command = *fake_command(link, 0);

	link->first++;
	redis_command_end(link, &command, outcome, reply);
}

#endif
