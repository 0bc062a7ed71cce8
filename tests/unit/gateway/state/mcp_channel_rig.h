/* mcp_channel_rig.h - one session with its home on one worker and two clients on another. Included once, by a test's only
 * source. */
#ifndef TESTS_UNIT_GATEWAY_MCP_CHANNEL_RIG_H
#define TESTS_UNIT_GATEWAY_MCP_CHANNEL_RIG_H

#include "tests/unit/gateway/state/mcp_rig.h"

enum { ROOM = 1 << 20 };

struct some_home {
	struct mcp_home home;
	int told;
};

struct some_client {
	struct mcp_client client;
	int woken;
};

static struct some_worker workers[2];
static struct some_home home;
static struct some_client clients[2];
static char room[ROOM], long_text[ROOM];
static struct mcp_lost *lost;

static inline void note_told(struct mcp_home *told)
{
	CONTAINER_OF(told, struct some_home, home)->told++;
}

static inline void note_woken(struct mcp_client *woken)
{
	CONTAINER_OF(woken, struct some_client, client)->woken++;
}

static inline void turn(void)
{
	(void)loop_turn(&workers[0].loop, false);
	(void)loop_turn(&workers[1].loop, false);
}

static inline int set_up(void **state)
{
	(void)state;
	some_worker_init(&workers[0]);
	some_worker_init(&workers[1]);
	(void)memset(long_text, 'x', sizeof(long_text));
	home = (struct some_home){ .home = { .who = session("1"), .told = note_told } };
	for (size_t i = 0; i < COUNT_OF(clients); i++)
		clients[i] = (struct some_client){ .client = { .who = session("1"),
							       .woken = note_woken } };
	lost = NULL;
	channels = mcp_channels_new();
	return channels == NULL;
}

static inline void free_lost(void)
{
	mcp_lost_free(lost);
	lost = NULL;
}

static inline int tear_down(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(clients); i++)
		mcp_client_detach(&clients[i].client, NOW);
	free_lost();
	mcp_lost_free(mcp_home_close(&home.home));
	mcp_channels_free(channels);
	return 0;
}

static inline enum mcp_open open_home(struct some_home *of)
{
	return mcp_home_open(channels, &of->home, &workers[0].inbox, NOW);
}

/* The session's own GET is open. */
static inline void begin(void)
{
	assert_int_equal(open_home(&home), MCP_OPENED);
	mcp_home_answered(&home.home, true);
	assert_int_equal(home.home.state, MCP_CHANNEL_OPEN);
}

static inline enum mcp_attach attach_behind(int n, const char *last_id)
{
	turn(); /* it has heard that it was replaced */
	return mcp_client_attach(channels, &clients[n].client, &workers[1].inbox,
				 slice_str(last_id), NOW);
}

static inline void attach(int n)
{
	assert_int_equal(attach_behind(n, NULL), MCP_ATTACHED);
}

static inline bool push_at(const char *text, const char *id, bool request, nsec_t now)
{
	const struct mcp_event event = { slice_str(text), slice_str(id), request };

	free_lost();
	return mcp_home_push(&home.home, &event, now, &lost);
}

static inline void push(const char *text)
{
	assert_true(push_at(text, NULL, false, NOW));
}

static inline void push_request(const char *text)
{
	assert_true(push_at(text, NULL, true, NOW));
}

static inline bool push_long(size_t len, bool request)
{
	const struct mcp_event event = { slice_of(long_text, len), { NULL, 0 }, request };

	free_lost();
	return mcp_home_push(&home.home, &event, NOW, &lost);
}

/* What it gets with room for `size` bytes; NUL-terminated. */
static inline const char *take_some(int n, size_t size)
{
	must(size < ROOM);
	room[mcp_client_take(&clients[n].client, room, size, NOW)] = '\0';
	return room;
}

static inline const char *take(int n)
{
	return take_some(n, ROOM - 1);
}

/* The lost requests, one behind the other. */
static inline const char *lost_texts(void)
{
	size_t len = 0;

	for (const struct mcp_lost *at = lost; at != NULL; at = at->next) {
		must(len + at->bytes.len < ROOM);
		(void)memcpy(room + len, at->bytes.at, at->bytes.len);
		len += at->bytes.len;
	}
	room[len] = '\0';
	return room;
}

static inline nsec_t overdue(nsec_t now)
{
	free_lost();
	return mcp_home_overdue(&home.home, now, &lost);
}

#endif
