/* redis_call.h - a command to Redis, as its user sees it: embedded in whatever waits for the answer.
 *
 * A call is pending from when it was sent until `done`, or until its user forgets it; while it is, it must neither
 * move nor go. Everything happens on the thread of the link's loop, and nothing from inside the functions that send.
 *
 * Scripts are run by their digest. The first time on a connection that is ready, and once more when Redis has
 * forgotten it (NOSCRIPT), the text goes along. */
#ifndef GATEWAY_REDIS_REDIS_CALL_H
#define GATEWAY_REDIS_REDIS_CALL_H

#include "codec/base/clock.h"
#include "gateway/redis/redis_wire.h"

struct redis_link;
struct redis_call;

enum redis_outcome {
	REDIS_ANSWERED,
	REDIS_REFUSED, /* an error: nothing was done */
	REDIS_LOST,    /* the connection ended: it may have been done or not */
};

/* A script, as one user of one link knows it. */
struct redis_script {
	struct slice text;
	const char *sha1; /* of the text, 40 hex digits */
	/* That it is refused says nothing of how Redis is: the user may have no right to what it does. */
	bool aside;
	uint64_t
		generation; /* private: of the link, when Redis was told the text; 0: it has to be */
};

/* The text of NAME.lua and its digest; CMake makes them (script.c.in). */
#define REDIS_SCRIPT_DECLARE(name)          \
	extern const char name##_lua[];     \
	extern const size_t name##_lua_len; \
	extern const char name##_lua_sha1[]
#define REDIS_SCRIPT_INIT(name)                                                 \
	{                                                                       \
		.text = { name##_lua, name##_lua_len }, .sha1 = name##_lua_sha1 \
	}

/* A script that is about to be sent: what redis_call_type.put writes to. */
struct redis_script_run {
	struct redis_buffer *to;
	const struct redis_script *script;
	bool by_text;
};

/* What is done with calls of a kind. */
struct redis_call_type {
	/* Of scripts: writes redis_put_script, then so many keys and arguments. Called when it is sent, and again if
	 * Redis had forgotten the script. */
	void (*put)(struct redis_call *call, const struct redis_script_run *run);
	/* It is over, and not pending any more. `reply` is NULL when LOST. */
	void (*done)(struct redis_call *call, enum redis_outcome outcome,
		     const struct redisReply *reply);
	/* No answer by the deadline; the call is pending still, unless it is forgotten now. NULL: it waits on. */
	void (*late)(struct redis_call *call);
};

struct redis_call {
	/* its user's, set before it is sent */
	const struct redis_call_type *type;
	void *owner; /* for its functions */
	/* private */
	uint64_t ticket; /* 0: not pending */
};

static inline bool redis_call_pending(const struct redis_call *call)
{
	return call->ticket != 0;
}

/* How the command of a script begins. */
void redis_put_script(const struct redis_script_run *run, uint32_t keys, uint32_t arguments);

/* Sends the script with what type->put writes. False: the link is not ready, or has no room; nothing was sent, but
 * `put` may have been called. */
MUST_USE bool redis_script_run(struct redis_link *link, struct redis_script *script,
			       struct redis_call *call);
/* Likewise, also to a server that is slow (redis_link_begin_slow). */
MUST_USE bool redis_script_run_slow(struct redis_link *link, struct redis_script *script,
				    struct redis_call *call, nsec_t patience);
/* Likewise, and nobody is told what becomes of it: `call` is only asked what to put, before this returns. */
MUST_USE bool redis_script_send(struct redis_link *link, struct redis_script *script,
				struct redis_call *call);

/* Its user does not wait any more, and is told nothing more of it; what was sent is done all the same. Nothing when it
 * is not pending. */
void redis_call_forget(struct redis_link *link, struct redis_call *call);

/* ---- the link's side ---- */

/* What a link keeps of a command until it is answered. */
struct redis_command {
	struct redis_call *call;     /* NULL: nobody is told (any more) */
	struct redis_script *script; /* NULL: it is none */
	bool by_text;
	bool aside; /* that it is refused says nothing of how Redis is */
};

/* Whether it was refused for want of the script's text, which was not sent. */
bool redis_command_lacks_text(const struct redis_command *command, const struct redisReply *reply);

/* The command is over: tells its call, or sends it again where redis_command_lacks_text. */
void redis_command_end(struct redis_link *link, const struct redis_command *command,
		       enum redis_outcome outcome, const struct redisReply *reply);

#endif
