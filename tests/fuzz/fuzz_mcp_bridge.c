/* fuzz_mcp_bridge.c - a message of any bytes on its way to a server of 2026-07-28, and back: sound JSON stays sound and says
 * what that revision wants, and nothing that a message says ends a header line.
 *
 * [0] is the level of logging. The rest is the message: of a client, as its initialize, as the answer to server/discover, and as
 * that to tools/list with the arguments beside. */
#include "codec/base/must.h"
#include "codec/json/json_read.h"
#include "codec/set.h"
#include "gateway/front/mcp/mcp_bridge_param.h"
#include "gateway/front/mcp/mcp_bridge_text.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define DECLARED "{\"clientInfo\":{\"name\":\"c\"},\"clientCapabilities\":{}}"

/* "name: value", CR LF, of visible ASCII, as often as there is. */
static void check_lines(struct slice head)
{
	while (head.len != 0) {
		size_t at = 0;
		while (at < head.len && head.at[at] != ':') {
			must((uint8_t)head.at[at] > ' ' && (uint8_t)head.at[at] < 0x7f);
			at++;
		}
		must(at != 0 && at + 1 < head.len && head.at[at + 1] == ' ');
		while (at < head.len && head.at[at] != '\r') {
			must((uint8_t)head.at[at] >= ' ' && (uint8_t)head.at[at] < 0x7f);
			at++;
		}
		must(at + 1 < head.len && head.at[at + 1] == '\n');
		head = slice_of(head.at + at + 2, head.len - at - 2);
	}
}

static void check_message(struct slice text, const struct mcp_message *message, uint32_t level,
			  bool valid, struct json_work *work, struct arena *arena)
{
	struct mcp_message sent;
	struct slice out, value;

	if (mcp_bridge_head(message, arena, &out) == ERR_OK)
		check_lines(out);
	if (mcp_bridge_body(text, message, SLICE(DECLARED), level, arena, &out) != ERR_OK || !valid)
		return;
	must(json_valid(out, NULL, work, NULL) && json_loose_whole(out, &value));
	mcp_message_read(value, &sent);
	must(mcp_message_modern(&sent));
	must(slice_eq(sent.method, message->method) && slice_eq(sent.id, message->id));
	must(slice_absent(sent.in_params.meta.log_level) == (level == 0));
}

static void check_hello(const struct mcp_message *message, bool valid, struct json_work *work,
			struct arena *arena)
{
	const struct slice declared = mcp_bridge_declared(message, arena);
	struct mcp_message hello;
	struct slice value;

	must(declared.len <= MCP_DECLARED_MAX);
	must(!valid || json_valid(declared, NULL, work, NULL));
	(void)mcp_bridge_speaks(message);
	(void)mcp_bridge_is_modern_error(message);
	if (slice_absent(message->id))
		return;
	const struct slice text = mcp_bridge_hello(message, message, SLICE("s"), arena);
	must(mcp_bridge_revision(message) < REVISION_2026_07_28);
	if (!valid)
		return;
	must(json_valid(text, NULL, work, NULL) && json_loose_whole(text, &value));
	mcp_message_read(value, &hello);
	must(hello.kind == MCP_RESPONSE && json_loose_kind(hello.result) == JSON_LOOSE_OBJECT);
}

static void check_params(const struct mcp_message *message, struct arena *arena)
{
	struct gather head;
	struct slice cursor;
	const struct slice schema = mcp_param_schema(message, SLICE("\"t\""), &cursor);

	gather_init(&head, arena);
	mcp_param_lines(schema, json_loose_member(message->params, "arguments"), arena, &head);
	must(gather_done(&head) == ERR_OK);
	if (head.total != 0)
		check_lines(gather_flat(&head, arena));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* the gateway's own wrapping adds levels and members; a text at the bounds is left out */
	const struct json_limits limits = { .depth_max = 50, .keys_max = 4000 };
	struct arena_pool pool = { .keep_max = 0 };
	static struct json_work *work;
	struct mcp_message message;
	struct arena arena;
	struct slice value;

	if (size == 0)
		return 0;
	if (work == NULL)
		work = json_work_new(codec_set_best());
	must(work != NULL);
	const struct slice text = slice_of((const char *)data + 1, size - 1);
	if (!json_loose_whole(text, &value) || json_loose_kind(value) != JSON_LOOSE_OBJECT)
		return 0;
	const bool valid = json_valid(text, &limits, work, NULL);
	mcp_message_read(value, &message);
	arena_init(&arena, &pool, SIZE_MAX);
	check_message(value, &message, data[0] % (MCP_LOG_LEVELS + 1), valid, work, &arena);
	check_hello(&message, valid, work, &arena);
	check_params(&message, &arena);
	arena_give(&arena);
	arena_pool_fini(&pool);
	return 0;
}
