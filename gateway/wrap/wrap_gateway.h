/* wrap_gateway.h - asks a gateway's /v1/sampling, several times at once, on a loop of libevent's.
 *
 * Each ask is one POST on a connection of its own. It has an answer within WRAP_ASK_TIME; with progress, so long after the
 * gateway has told of any, and within WRAP_PROGRESS_TIME: an MCP server gives up after a minute without. */
#ifndef GATEWAY_WRAP_WRAP_GATEWAY_H
#define GATEWAY_WRAP_WRAP_GATEWAY_H

#include "gateway/wrap/wrap_session.h"

#define WRAP_ASK_TIME (55 * SEC)
#define WRAP_PROGRESS_TIME (3600 * SEC)

struct event_base;
struct wrap_gateway;

/* `session` gets the answers. `url` is http://, https:// or unix:PATH. NULL: `problem`, of `room` bytes, says what is
 * wrong. */
struct wrap_gateway *wrap_gateway_new(struct event_base *base, const char *url, const char *key,
				      char *problem, size_t room);
void wrap_gateway_serve(struct wrap_gateway *gateway, struct wrap_session *session);

/* Asks under way are dropped. Accepts NULL. */
void wrap_gateway_free(struct wrap_gateway *gateway);

/* Effects of a session. */
void wrap_gateway_ask(struct wrap_gateway *gateway, const struct wrap_ask *ask);
void wrap_gateway_cancel(struct wrap_gateway *gateway, uint64_t key);

#endif
