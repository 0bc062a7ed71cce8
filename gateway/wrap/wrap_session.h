/* wrap_session.h - what `sluice wrap` does with each message between a client and its stdio server; pure: lines in,
 * effects out.
 *
 * The client's initialize declares sampling where the client does not, and each sampling/createMessage of the server
 * is asked of a gateway instead of the client. In 2026-07-28, where a server asks in the result of a call
 * (input_required), the call is made again with the answers, and the client sees the last result only. Everything else
 * passes byte for byte.
 *
 * Each sampling is answered once, unless the server cancels it. One thread; no clock, no socket. */
#ifndef GATEWAY_WRAP_WRAP_SESSION_H
#define GATEWAY_WRAP_WRAP_SESSION_H

#include "codec/base/attr.h"
#include "codec/base/clock.h"
#include "codec/base/slice.h"

enum wrap_mode {
	WRAP_BACKFILL, /* answered here unless the client declares sampling */
	WRAP_FORCE,    /* answered here, whatever the client declares */
	WRAP_RELAY,    /* nothing is changed or taken */
	WRAP_REFUSE,   /* the client's declaration is cut out; a sampling is answered -1 */
};

enum {
	WRAP_SAMPLINGS_MAX = 16, /* under way at once; the next one is answered "busy" */
	WRAP_CALLS_MAX = 1024,   /* requests of the client that are followed */
	WRAP_ROUNDS_MAX = 10,    /* of a call, contract/mcp-proxy.md 7.2 */
	WRAP_STATES_MAX = 64,    /* rounds that wait for the client's part */
};
#define WRAP_ROUNDS_TIME (600 * SEC) /* of a call, from its first round on */
#define WRAP_STATE_TIME (600 * SEC)

struct wrap_ask {
	uint64_t key;         /* for wrap_session_answer; never used again */
	struct slice params;  /* JSON text, valid during the call; absent: the server sent none */
	const char *revision; /* static */
	bool progress;        /* the server wants to be told of progress */
};

/* None of them calls the session. Lines have their line feed. */
struct wrap_effects {
	void (*to_client)(void *arg, struct slice bytes);
	void (*to_server)(void *arg, struct slice bytes);
	void (*ask)(void *arg, const struct wrap_ask *ask);
	void (*cancel)(void *arg,
		       uint64_t key); /* of an ask without an answer: it is not wanted any more */
	void (*say)(void *arg,
		    const char *text); /* for the operator; nothing of a message is in it */
	void *arg;
};

struct wrap_session;

/* `nonce` is chance, of visible ASCII: it goes into the ids and states that are made here. Both are copied. */
struct wrap_session *wrap_session_new(enum wrap_mode mode, const char *nonce,
				      const struct wrap_effects *effects);
/* Accepts NULL. */
void wrap_session_free(struct wrap_session *session);

/* A line of the client's or the server's, with its line feed if it has one. */
void wrap_session_from_client(struct wrap_session *session, struct slice line, nsec_t now);
void wrap_session_from_server(struct wrap_session *session, struct slice line, nsec_t now);

/* What the gateway has answered: `json` is the result if `good`, else the error object. Unknown keys are ignored. */
void wrap_session_answer(struct wrap_session *session, uint64_t key, bool good, struct slice json,
			 nsec_t now);

/* A notifications/progress of the gateway's about an ask, as JSON text. */
void wrap_session_progress(struct wrap_session *session, uint64_t key, struct slice json);

/* The client or the server is gone: nobody waits for the samplings any more, and no others begin. */
void wrap_session_end(struct wrap_session *session);

#endif
