/* mcp_session_log.c - one line of the log when a session begins, and one when it ends. Its id is in neither: a digest of
 * it ties the two together. */
#include "codec/base/hex.h"
#include "codec/base/must.h"
#include "gateway/front/mcp/mcp.h"

static const char *mode_name(uint8_t mode)
{
	static const char *const names[MCP_MODES] = {
		[MCP_MODE_BACKFILL] = "backfill",
		[MCP_MODE_FORCE] = "force",
		[MCP_MODE_RELAY] = "relay",
		[MCP_MODE_REFUSE] = "refuse",
	};

	must(mode < MCP_MODES);
	return names[mode];
}

static const char *end_name(enum mcp_end why)
{
	static const char *const names[] = {
		[MCP_END_DELETED] = "deleted",
		[MCP_END_UPSTREAM_404] = "upstream_404",
		[MCP_END_CLOSED] = "stream_closed",
		[MCP_END_REMOVED] = "server_removed",
		[MCP_END_IDLE] = "idle",
	};

	must((unsigned)why < COUNT_OF(names));
	return names[why];
}

static struct mcp_about about_of(const struct mcp_link *link)
{
	const struct slice revision = link->token.revision;

	return (struct mcp_about){
		.key = link->who.key,
		.begun_s = link->token.issued_s,
		.mode = (uint8_t)link->token.mode,
		.tenant = link->tenant,
		.server = link->token.server,
		.client = link->client,
		.revision = revision.len != 0 ? revision : slice_of(NULL, 0),
	};
}

static struct log_mcp_session line_of(const struct mcp_host *mcp, const struct mcp_about *about)
{
	struct log_mcp_session line = {
		.wall_ns = net_wall_ns(mcp->front->loop),
		.tenant = about->tenant,
		.server = about->server,
		.client = about->client,
		.revision = about->revision,
		.mode = mode_name(about->mode),
	};

	(void)hex_put_bytes(line.session, about->key.at, LOG_SESSION_HEX / 2);
	return line;
}

static void log_end(const struct mcp_host *mcp, const struct mcp_about *about, enum mcp_end why)
{
	struct log_mcp_session line = line_of(mcp, about);
	const uint64_t now_s = line.wall_ns / SEC;

	line.end = end_name(why);
	line.lasted_s = now_s > about->begun_s ? now_s - about->begun_s : 0;
	(void)log_mcp_session(mcp->log, &line); /* a full ring counts what it drops */
}

/* One of HTTP+SSE ends with its stream, however long that is silent. */
void mcp_session_log_begin(const struct mcp_request *request)
{
	const struct mcp_about about = about_of(&request->link);
	struct log_mcp_session line = line_of(request->mcp, &about);

	line.request_id = request->ids.request_id;
	(void)log_mcp_session(request->mcp->log, &line);
	if (!request->link.sse)
		mcp_session_describe(request->mcp->channels, &about);
}

/* One of HTTP+SSE that was never initialized has no revision, and no line. */
void mcp_session_log_end(const struct mcp_host *mcp, const struct mcp_link *link, enum mcp_end why)
{
	const struct mcp_about about = about_of(link);

	if (!link->sse || !slice_absent(about.revision))
		log_end(mcp, &about, why);
}

void mcp_session_log_idle(const struct mcp_host *mcp)
{
	struct mcp_about *list = mcp_sessions_idled(mcp->channels);

	for (const struct mcp_about *about = list; about != NULL; about = about->next)
		log_end(mcp, about,
			config_mcp_server(mcp->front->config, about->server) == NULL
				? MCP_END_REMOVED
				: MCP_END_IDLE);
	mcp_about_free(list);
}
