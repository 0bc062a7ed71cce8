#include "gateway/state/mcp_channel_parts.h"

#include "codec/base/must.h"

#include <stdlib.h>

struct queued {
	struct mcp_lost lost; /* its bytes; what it becomes when it is lost */
	struct list_link link;
	uint64_t number;
	nsec_t at;      /* when it was added or, later, taken */
	uint32_t owner; /* of the bytes that it takes */
	bool request, taken;
	char bytes[];
};

static struct queued *of_link(struct list_link *link)
{
	return link == NULL ? NULL : CONTAINER_OF(link, struct queued, link);
}

static struct queued *first_of(const struct mcp_queue *queue)
{
	return of_link(list_first(&queue->events));
}

static struct queued *next_of(const struct mcp_queue *queue, const struct queued *event)
{
	return of_link(list_next(&queue->events, &event->link));
}

/* The first that was not taken. */
static struct queued *first_waiting(const struct mcp_queue *queue)
{
	struct queued *event = first_of(queue);

	while (event != NULL && event->taken)
		event = next_of(queue, event);
	return event;
}

static size_t cost_of(size_t len)
{
	return sizeof(struct queued) + len;
}

/* ---- removing -------------------------------------------------------------------------------- */

/* Takes it out; it is the caller's to free. */
static void take_out(struct mcp_channels *channels, struct mcp_queue *queue, struct queued *event)
{
	list_remove(&event->link);
	queue->count--;
	queue->bytes -= event->lost.bytes.len;
	mcp_counts_give_bytes(&channels->counts, event->owner, cost_of(event->lost.bytes.len));
}

/* Frees it, or hands it over where it is a request that nobody got. */
static void drop(struct mcp_channels *channels, struct mcp_queue *queue, struct queued *event,
		 struct mcp_lost **lost)
{
	take_out(channels, queue, event);
	if (lost == NULL || event->taken || !event->request) {
		free(event);
		return;
	}
	while (*lost != NULL) /* behind those that were lost before */
		lost = &(*lost)->next;
	event->lost.next = NULL;
	*lost = &event->lost;
}

void mcp_lost_free(struct mcp_lost *lost)
{
	for (struct mcp_lost *next; lost != NULL; lost = next) {
		next = lost->next;
		free(CONTAINER_OF(lost, struct queued, lost));
	}
}

void mcp_queue_clear(struct mcp_channels *channels, struct mcp_queue *queue, struct mcp_lost **lost)
{
	for (struct queued *event; (event = first_of(queue)) != NULL;)
		drop(channels, queue, event, lost);
}

/* Taken ones go when there are as many as may wait without a client, and when they are old. */
static void drop_taken(struct mcp_channels *channels, struct mcp_queue *queue, nsec_t now)
{
	struct queued *event;

	while ((event = first_of(queue)) != NULL && event->taken &&
	       (queue->seen == NULL || queue->count > MCP_EVENTS_MAX ||
		queue->bytes > MCP_EVENTS_BYTES || now >= event->at + MCP_EVENT_KEPT))
		drop(channels, queue, event, NULL);
}

/* The client has got a part of it. */
static bool is_begun(const struct mcp_session *session, const struct queued *event)
{
	return session->client != NULL && session->client->offset != 0 &&
	       event == first_waiting(&session->queue);
}

/* The oldest that waits; `request`: or of these the oldest request. NULL: there is none that may go. */
static struct queued *oldest(const struct mcp_session *session, bool request)
{
	struct queued *event = first_waiting(&session->queue);

	while (event != NULL && (event->request != request || is_begun(session, event)))
		event = next_of(&session->queue, event);
	return event;
}

/* Something goes, for the sake of a request or of something else. False: nothing may. */
static bool make_room(struct mcp_channels *channels, struct mcp_session *session, bool for_request,
		      struct mcp_lost **lost)
{
	struct mcp_queue *queue = &session->queue;
	struct queued *event = first_of(queue);

	if (event == NULL)
		return false;
	if (!event->taken)
		event = oldest(session, false);
	if (event == NULL && !for_request)
		return false;
	if (event == NULL && session->client != NULL) {
		mcp_session_tell_client(session, MCP_CHANNEL_GAP); /* it does not read */
		return true;
	}
	if (event == NULL)
		event = oldest(session, true);
	drop(channels, queue, event, lost);
	return true;
}

void mcp_queue_close(struct mcp_channels *channels, struct mcp_session *session,
		     struct mcp_lost **lost)
{
	struct mcp_queue *queue = &session->queue;
	const struct queued *first = first_waiting(queue);

	/* The client has got the front of a request; what it got next would be read as the rest. */
	if (first != NULL && first->request && is_begun(session, first))
		mcp_session_tell_client(session, MCP_CHANNEL_CLOSED);
	for (struct queued *event = first_of(queue), *next; event != NULL; event = next) {
		next = next_of(queue, event);
		if (event->taken || event->request || session->client == NULL)
			drop(channels, queue, event, lost);
	}
}

/* ---- adding ---------------------------------------------------------------------------------- */

static size_t longest_of(const struct mcp_queue *queue)
{
	size_t longest = 0;

	for (struct queued *event = first_of(queue); event != NULL; event = next_of(queue, event))
		if (event->lost.bytes.len > longest)
			longest = event->lost.bytes.len;
	return longest;
}

/* A client that is there gets long events, too: neither the new one nor the longest is counted. */
static bool has_room(const struct mcp_session *session, size_t len)
{
	const struct mcp_queue *queue = &session->queue;

	if (session->client == NULL)
		return queue->count < MCP_EVENTS_MAX && queue->bytes + len <= MCP_EVENTS_BYTES;
	return queue->count < MCP_EVENTS_LIVE_MAX &&
	       (queue->bytes <= MCP_EVENTS_LIVE_BYTES ||
		queue->bytes - longest_of(queue) <= MCP_EVENTS_LIVE_BYTES);
}

/* So many bytes of the tenant's, after others have made room for them; 0: they cannot be had. */
static uint32_t take_room(struct mcp_channels *channels, struct mcp_session *session,
			  const struct mcp_event *event, struct mcp_lost **lost)
{
	const size_t len = event->bytes.len;

	for (;;) {
		uint32_t owner = 0;
		if (len > (session->client != NULL ? MCP_EVENT_MAX : MCP_EVENTS_BYTES))
			return 0;
		if (has_room(session, len))
			owner = mcp_counts_take_bytes(&channels->counts, &session->tenant,
						      cost_of(len));
		if (owner != 0 || !make_room(channels, session, event->request, lost))
			return owner;
	}
}

bool mcp_queue_push(struct mcp_channels *channels, struct mcp_session *session,
		    const struct mcp_event *event, nsec_t now, struct mcp_lost **lost)
{
	struct mcp_queue *queue = &session->queue;

	must(event->bytes.len != 0);
	drop_taken(channels, queue, now);
	queue->number++;
	if (!slice_absent(event->id))
		mcp_queue_saw(channels, queue, event->id);
	const uint32_t owner = take_room(channels, session, event, lost);
	if (owner == 0)
		return false;
	struct queued *queued = mcp_memory(channels, cost_of(event->bytes.len));
	if (queued == NULL) {
		mcp_counts_give_bytes(&channels->counts, owner, cost_of(event->bytes.len));
		return false;
	}
	(void)memcpy(queued->bytes, event->bytes.at, event->bytes.len);
	queued->lost.bytes = slice_of(queued->bytes, event->bytes.len);
	queued->number = queue->number;
	queued->at = now;
	queued->owner = owner;
	queued->request = event->request;
	list_add(&queue->events, &queued->link);
	queue->count++;
	queue->bytes += event->bytes.len;
	return true;
}

/* ---- ids ------------------------------------------------------------------------------------- */

void mcp_queue_saw(struct mcp_channels *channels, struct mcp_queue *queue, struct slice id)
{
	if (queue->seen == NULL)
		queue->seen = mcp_memory(channels, sizeof(*queue->seen));
	if (queue->seen == NULL)
		return; /* whoever resumes behind it is not known, and its GET goes upstream */
	const uint32_t target = queue->seen->count++ % MCP_IDS_SEEN;
	queue->seen->at[target].id = mcp_id_digest(id);
	queue->seen->at[target].number = queue->number;
}

/* False: it is not one of the newest. */
static bool find_seen(const struct mcp_seen *seen, struct slice id, uint64_t *number)
{
	const uint64_t digest = mcp_id_digest(id);

	for (uint32_t back = 1; seen != NULL && back <= seen->count && back <= MCP_IDS_SEEN;
	     back++) {
		const uint32_t target = (seen->count - back) % MCP_IDS_SEEN;
		if (seen->at[target].id != digest)
			continue;
		*number = seen->at[target].number;
		return true;
	}
	return false;
}

bool mcp_queue_resume(struct mcp_queue *queue, struct slice id, nsec_t now)
{
	uint64_t number;

	if (!find_seen(queue->seen, id, &number))
		return false;
	for (struct queued *event = first_of(queue); event != NULL; event = next_of(queue, event)) {
		if (!event->taken || event->number <= number)
			continue;
		event->taken = false;
		event->at = now;
	}
	return true;
}

/* ---- taking ---------------------------------------------------------------------------------- */

bool mcp_queue_waits(const struct mcp_queue *queue)
{
	return first_waiting(queue) != NULL;
}

size_t mcp_queue_take(struct mcp_channels *channels, struct mcp_session *session, char *room,
		      size_t size, nsec_t now)
{
	struct mcp_queue *queue = &session->queue;
	struct mcp_client *client = session->client;
	size_t taken = 0;

	for (struct queued *event; taken < size && (event = first_waiting(queue)) != NULL;) {
		const size_t left = event->lost.bytes.len - client->offset;
		const size_t len = left < size - taken ? left : size - taken;
		(void)memcpy(room + taken, event->bytes + client->offset, len);
		taken += len;
		client->offset += len;
		if (len < left)
			break;
		client->offset = 0;
		event->taken = true;
		event->at = now;
		drop_taken(channels, queue, now);
	}
	return taken;
}

nsec_t mcp_queue_overdue(struct mcp_channels *channels, struct mcp_session *session, nsec_t now,
			 struct mcp_lost **lost)
{
	struct mcp_queue *queue = &session->queue;
	nsec_t due = NSEC_NEVER;

	drop_taken(channels, queue, now);
	/* What a client that is gone has left. */
	while (session->client == NULL &&
	       (queue->count > MCP_EVENTS_MAX || queue->bytes > MCP_EVENTS_BYTES) &&
	       make_room(channels, session, true, lost))
		;
	for (struct queued *event = first_of(queue), *next; event != NULL; event = next) {
		const bool waits = event->request && !event->taken && !is_begun(session, event);
		const nsec_t at = event->at + (waits ? MCP_EVENT_WAITS : MCP_EVENT_KEPT);
		next = next_of(queue, event);
		if (waits && at <= now)
			drop(channels, queue, event, lost);
		else if (at > now && at < due)
			due = at;
		else if (at <= now && now + MCP_EVENT_KEPT < due)
			due = now +
			      MCP_EVENT_KEPT; /* it waits for a client; then it is looked at again */
	}
	return due;
}

void mcp_queue_init(struct mcp_queue *queue)
{
	list_init(&queue->events);
}
