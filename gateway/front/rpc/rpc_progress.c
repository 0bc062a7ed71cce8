#include "gateway/front/rpc/rpc_progress.h"

#include "codec/base/must.h"
#include "codec/json/json_write.h"

enum { LINE = 64 }; /* of a cache: a text that begins one is spread over fewer */

static const struct slice before_token = SLICE_INIT(
	"event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\","
	"\"params\":{\"progressToken\":");
static const struct slice before_number = SLICE_INIT(",\"progress\":");
static const struct slice behind_number = SLICE_INIT("}}\n\n");

bool rpc_progress_want(struct rpc_progress *progress, struct slice token, struct arena *into)
{
	must(!rpc_progress_wanted(progress) && token.len <= PROGRESS_TOKEN_MAX);
	size_t front = before_token.len + token.len + before_number.len;
	char *room = arena_take(into, front + PEN_UINT_MAX + behind_number.len + LINE - 1);
	if (room == NULL)
		return false;
	*progress = (struct rpc_progress){ .phase = RPC_PROGRESS_WANTED, .front = (uint32_t)front };
	progress->text = room + (-(uintptr_t)room & (LINE - 1));
	char *pen = pen_slice(progress->text, before_token);
	pen = pen_slice(pen, token);
	(void)pen_slice(pen, before_number);
	return true;
}

void rpc_progress_admit(struct rpc_progress *progress, nsec_t now)
{
	if (progress->phase != RPC_PROGRESS_WANTED)
		return;
	progress->phase = RPC_PROGRESS_ADMITTED;
	progress->admitted_at = now;
}

bool rpc_progress_rose(const struct rpc_progress *progress)
{
	return rpc_progress_begun(progress) && progress->output > progress->notified;
}

nsec_t rpc_progress_due(const struct rpc_progress *progress)
{
	if (progress->phase < RPC_PROGRESS_ADMITTED)
		return NSEC_NEVER;
	if (progress->phase == RPC_PROGRESS_ADMITTED)
		return progress->streams ? progress->admitted_at
					 : progress->admitted_at + PROGRESS_BEGIN_AFTER;
	return progress->notified_at +
	       (rpc_progress_rose(progress) ? PROGRESS_EVERY : PROGRESS_SILENCE_MAX);
}

struct slice rpc_progress_notify(struct rpc_progress *progress, nsec_t now)
{
	uint64_t least = rpc_progress_begun(progress) ? progress->notified + 1 : 0;

	must(progress->phase >= RPC_PROGRESS_ADMITTED);
	progress->notified = progress->output > least ? progress->output : least;
	progress->notified_at = now;
	progress->phase = RPC_PROGRESS_BEGUN;
	char *pen = pen_uint(progress->text + progress->front, progress->notified);
	pen = pen_slice(pen, behind_number);
	return slice_of(progress->text, (size_t)(pen - progress->text));
}
