#include "gateway/front/mcp/mcp_out.h"

#include "codec/base/must.h"

enum {
	ROOM_MAX = 96 << 20,
	ROOM_KEPT = 64 << 10, /* bytes of it that are kept while nothing waits */
};

static const struct slice keepalive = SLICE_INIT(": keepalive\n\n");

static void give_room(struct mcp_piece *piece)
{
	piece->bytes = (struct mcp_buffer){ .len = 0 };
	arena_give(&piece->room);
}

static void leave(struct mcp_out *out)
{
	net_timer_stop(out->loop, &out->silence);
	if (out->soon.prev != NULL)
		net_task_cancel(&out->soon);
}

static void swap(struct mcp_out *out)
{
	const struct mcp_piece filled = out->filling;

	out->filling = out->flying;
	out->filling.bytes.len = 0;
	out->flying = filled;
}

static void finish(struct mcp_out *out)
{
	const struct iovec rest = { out->flying.bytes.at, out->flying.bytes.len };

	out->over = true;
	leave(out);
	if (out->broken)
		http_cut(out->exchange);
	else
		http_end(out->exchange, &rest, rest.iov_len != 0, rest.iov_len);
}

/* All of it is there before any of it has left. */
static void send_whole(struct mcp_out *out)
{
	swap(out);
	out->whole = (struct iovec){ out->flying.bytes.at, out->flying.bytes.len };
	out->over = true;
	leave(out);
	http_answer(out->exchange, out->status, out->fields, out->field_count, &out->whole,
		    out->whole.iov_len != 0, out->whole.iov_len);
}

/* What is there leaves, if nothing is on its way. */
static void send_on(struct mcp_out *out)
{
	if (out->busy || out->over || out->exchange == NULL)
		return;
	if (out->begun && out->filling.bytes.len == 0 && !out->ended)
		return;
	if (!out->begun && out->ended && !out->broken) {
		send_whole(out);
		return;
	}
	swap(out);
	const struct slice piece = mcp_buffer_slice(&out->flying.bytes);
	if (out->begun && out->ended && (piece.len == 0 || !out->broken)) {
		finish(out);
		return;
	}
	out->busy = true;
	net_timer_set(out->loop, &out->silence, net_now(out->loop) + MCP_KEEPALIVE);
	if (out->begun) {
		http_more(out->exchange, piece);
		return;
	}
	out->begun = true;
	http_begin_pieces(out->exchange, out->status, out->fields, out->field_count, piece);
	if (out->rests)
		http_rest(out->exchange, true);
}

static void on_soon(struct net_task *task)
{
	send_on(CONTAINER_OF(task, struct mcp_out, soon));
}

/* A comment between two events, so that nobody on the way takes the stream for dead. */
static void on_silence(struct net_timer *timer)
{
	struct mcp_out *out = CONTAINER_OF(timer, struct mcp_out, silence);

	net_timer_set(out->loop, timer, net_now(out->loop) + MCP_KEEPALIVE);
	if (out->busy || !out->between)
		return;
	if (mcp_buffer_add(&out->filling.bytes, &out->filling.room, keepalive))
		send_on(out);
}

void mcp_out_init(struct mcp_out *out, struct net_loop *loop, struct arena_pool *arenas,
		  struct http_exchange *exchange, bool rests, void (*drained)(struct mcp_out *out))
{
	*out = (struct mcp_out){ .exchange = exchange,
				 .loop = loop,
				 .rests = rests,
				 .between = true,
				 .soon.run = on_soon,
				 .silence.fire = on_silence,
				 .drained = drained };
	arena_init(&out->filling.room, arenas, ROOM_MAX);
	arena_init(&out->flying.room, arenas, ROOM_MAX);
}

void mcp_out_head(struct mcp_out *out, int status, const struct http_field *fields,
		  size_t field_count)
{
	out->status = status;
	out->fields = fields;
	out->field_count = field_count;
}

void mcp_out_flush(struct mcp_out *out)
{
	if (out->exchange != NULL && !out->busy && !out->over && out->soon.prev == NULL)
		net_soon(out->loop, &out->soon);
}

bool mcp_out_add(struct mcp_out *out, struct slice bytes)
{
	if (out->exchange == NULL)
		return true;
	must(!out->ended);
	if (!mcp_buffer_add(&out->filling.bytes, &out->filling.room, bytes))
		return false;
	mcp_out_flush(out);
	return true;
}

size_t mcp_out_waits(const struct mcp_out *out)
{
	return out->filling.bytes.len + (out->busy ? out->flying.bytes.len : 0);
}

void mcp_out_end(struct mcp_out *out, bool broken)
{
	if (out->exchange == NULL)
		return;
	must(!out->ended);
	out->ended = true;
	out->broken = broken;
	mcp_out_flush(out);
}

void mcp_out_ready(struct mcp_out *out)
{
	must(out->busy);
	out->busy = false;
	/* A stream may be open for hours behind an event of many megabytes. */
	if (out->flying.bytes.room > ROOM_KEPT)
		give_room(&out->flying);
	send_on(out);
	if (!out->ended && out->drained != NULL && out->filling.bytes.len == 0)
		out->drained(out);
}

void mcp_out_drop(struct mcp_out *out)
{
	if (out->loop == NULL)
		return; /* it never was */
	leave(out);
	out->exchange = NULL;
	out->busy = false; /* nothing waits for the client any more */
	give_room(&out->filling);
	give_room(&out->flying);
}
