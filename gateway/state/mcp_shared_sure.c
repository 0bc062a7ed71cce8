/* mcp_shared_sure.c - what Redis has to be told even if it is away, or goes away before it has heard it. */
#include "gateway/state/mcp_shared_parts.h"

/* Of a call that has begun and is over, neither is told. */
static bool cancels_out(struct mcp_sure *sure, const struct mcp_surely *what)
{
	for (uint32_t i = sure->count; what->kind == MCP_TELL_CALL && i-- > 0;) {
		const struct mcp_surely *at = &sure->at[i];
		if (at->kind != MCP_TELL_CALL || at->begun == what->begun ||
		    !state_key_eq(&at->who.key, &what->who.key))
			continue;
		sure->at[i] = sure->at[--sure->count];
		return true;
	}
	return false;
}

static void keep(struct mcp_sure *sure, const struct mcp_surely *what)
{
	if (!cancels_out(sure, what) && sure->count < MCP_UNTOLD_MAX)
		sure->at[sure->count++] = *what;
}

static bool say(struct mcp_shared *shared, const struct mcp_surely *what)
{
	struct mcp_sure *sure = &shared->sure;
	const struct mcp_tell tell = { .kind = what->kind,
				       .who = what->who,
				       .id = what->id,
				       .value = what->begun ? SLICE("1") : SLICE("-1") };

	if (!mcp_shared_say(shared, &tell))
		return false;
	mcp_shared_spread(shared, what);
	/* All else may be told twice. A call that was lost counts until its gateway has gone, or its session. */
	if (what->kind == MCP_TELL_CALL)
		return true;
	const uint32_t place = sure->told++ % MCP_TOLD_MAX;
	sure->latest[place].at = mcp_shared_now(shared);
	sure->latest[place].what = *what;
	return true;
}

void mcp_shared_say_surely(struct mcp_shared *shared, const struct mcp_surely *what)
{
	if (!say(shared, what))
		keep(&shared->sure, what);
}

void mcp_shared_sure_lost(struct mcp_shared *shared)
{
	struct mcp_sure *sure = &shared->sure;
	const nsec_t now = mcp_shared_now(shared);
	const uint32_t kept = sure->told < MCP_TOLD_MAX ? sure->told : MCP_TOLD_MAX;

	for (uint32_t i = 0; i < kept; i++)
		if (now - sure->latest[i].at < MCP_TOLD_SURELY)
			keep(sure, &sure->latest[i].what);
	sure->told = 0;
}

void mcp_shared_sure_ready(struct mcp_shared *shared)
{
	struct mcp_sure *sure = &shared->sure;

	while (sure->count != 0) {
		const struct mcp_surely what = sure->at[sure->count - 1];
		/* It may have become the home again meanwhile. */
		const bool old = what.kind == MCP_TELL_FREED &&
				 mcp_session_home_inbox(shared->channels, &what.who.key) != NULL;
		if (!old && !say(shared, &what))
			return;
		sure->count--;
	}
}
