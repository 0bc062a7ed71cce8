/* door_rig.h - a front of the test's own (line_front.h) at the core's door, in a world of the test's own (state_rig.h): one
 * call at a time, and what its provider says. For one program: it holds the state. */
#ifndef TESTS_FAULT_DOOR_RIG_H
#define TESTS_FAULT_DOOR_RIG_H

#include "tests/fault/state_rig.h"
#include "tests/support/line_front.h"

#define SAYS_HELLO                                                                           \
	"{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m\","     \
	"\"content\":[{\"type\":\"text\",\"text\":\"Hello\"}],\"stop_reason\":\"end_turn\"," \
	"\"usage\":{\"input_tokens\":10,\"output_tokens\":4},\"unknown\":7}"

/* An answer that streams. */
#define START                                                                                   \
	"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":"          \
	"\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m\",\"content\":[]," \
	"\"usage\":{\"input_tokens\":10,\"output_tokens\":1}}}\n\n"
#define TEXT_BEGINS                                                                        \
	"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0," \
	"\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n"
#define WORDS(text)                                                                        \
	"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0," \
	"\"delta\":{\"type\":\"text_delta\",\"text\":\"" text "\"}}\n\n"
#define ENDS                                                                                  \
	"event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n"  \
	"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":" \
	"\"end_turn\"},\"usage\":{\"output_tokens\":4}}\n\n"                                  \
	"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"

#define RAW_REST ",\"max_tokens\":9,\"novel\":[1]}"

static struct arena_pool pool;

static inline bool begin(struct line_call *call, const struct line *line)
{
	struct sampling *core = &world.worker->core;
	const struct caller_sources sources = {
		.config = core->config,
		.json = core->json,
		.wall_s = world.wall_ns / SEC,
	};

	return line_begin(call, core, &sources, &pool, line, world.now, world.wall_ns);
}

/* Each test has a call, and a scene that nobody else is in; in the end nothing of it may be left. */
static inline int set_up(void **state)
{
	static struct line_call call;

	set_scene(0);
	*state = &call;
	return 0;
}

static inline int tear_down(void **state)
{
	(void)state;
	nobody_is_held("the door", 0);
	return 0;
}

/* The tenant's caller asks for that. */
static inline void asks(struct line_call *call, struct line line)
{
	line.key = WALK_KEY;
	assert_true(begin(call, &line));
}

static inline void is_told(const struct line_call *call, const char *text)
{
	assert_string_equal(call->out, text);
}

/* That is all that it is told. */
static inline void ends_with(struct line_call *call, const char *text)
{
	is_told(call, text);
	line_end(call);
}

static inline void provider_says(const char *body)
{
	const struct provider_answer answer = { .status = 200, .body = slice_str(body) };

	rig_provider_ends(ERR_OK, true, &answer);
}

static inline void stream_begins(void)
{
	struct upstream_call *upstream = world.call;

	upstream->answer = (struct provider_answer){
		.status = 200, .headers = { .content_type = SLICE("text/event-stream") }
	};
	upstream->sent_at = upstream->first_byte_at = world.now;
	upstream->bytes_sent = true;
	upstream->wish = UPSTREAM_WANTED;
	upstream->in_pieces = upstream->head != NULL && upstream->head(upstream);
	assert_true(upstream->in_pieces);
}

static inline void brings(const char *bytes)
{
	world.call->piece(world.call, slice_str(bytes));
}

/* Its connection breaks. */
static inline void stream_breaks(void)
{
	struct upstream_call *upstream = world.call;

	world.call = NULL;
	upstream->err = ERR_PROVIDER_DOWN;
	upstream->detail = "for a test";
	upstream->done_at = world.now;
	upstream->done(upstream);
}

/* What was sent to the provider, its head included. */
static inline const char *sent(void)
{
	static char text[8192];
	size_t len = 0;

	for (uint32_t i = 0; i < world.call->request_count; i++) {
		const struct iovec *v = &world.call->request[i];
		assert_true(len + v->iov_len < sizeof(text));
		memcpy(text + len, v->iov_base, v->iov_len);
		len += v->iov_len;
	}
	text[len] = '\0';
	return text;
}

#define DOOR(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

#endif
