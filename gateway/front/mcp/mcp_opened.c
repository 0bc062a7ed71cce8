#include "gateway/front/mcp/mcp_opened.h"

#include <stdlib.h>

enum {
	PLACES = 1024,
	PLACE_BYTES = 1024,
	TAIL = 8, /* characters that choose the place; they are of the tag, so that any are as likely */
};

struct place {
	uint64_t age; /* that of struct mcp_opened; else it is free */
	enum mcp_token_kind kind;
	uint8_t limit_key[CALLER_LIMIT_KEY], subject[JWT_SUBJECT_BYTES];
	struct slice server, text, tenant, name; /* as shown, in `room` */
	struct mcp_token token;                  /* without `server` */
	struct mcp_who who;
	struct state_key calls;
};

struct mcp_opened {
	uint64_t age; /* at least 1 */
	union {
		struct place place;
		char bytes[PLACE_BYTES]; /* texts follow the place */
	} places[PLACES];
};

struct mcp_opened *mcp_opened_new(void)
{
	struct mcp_opened *opened = calloc(1, sizeof(*opened));

	if (opened != NULL)
		opened->age = 1;
	return opened;
}

void mcp_opened_free(struct mcp_opened *opened)
{
	free(opened);
}

void mcp_opened_forget(struct mcp_opened *opened)
{
	opened->age++;
}

/* NULL: no token is so short. */
static struct place *place_of(struct mcp_opened *opened, struct slice text)
{
	uint64_t tail;

	if (text.len < TAIL)
		return NULL;
	(void)memcpy(&tail, text.at + text.len - TAIL, TAIL);
	return &opened->places[(tail * UINT64_C(0x9e3779b97f4a7c15)) >> 54].place;
}

/* An absent text is another than an empty one. */
static bool is_same(struct slice a, struct slice b)
{
	return slice_absent(a) == slice_absent(b) && slice_eq(a, b);
}

static bool is_shown(const struct place *place, const struct mcp_shown_token *shown)
{
	const struct caller *caller = shown->caller;

	return place->kind == shown->kind && slice_eq(place->text, shown->text) &&
	       slice_eq(place->server, shown->server) && slice_eq(place->tenant, caller->tenant) &&
	       is_same(place->name, caller->server) &&
	       memcmp(place->limit_key, caller->limit_key, sizeof(place->limit_key)) == 0 &&
	       memcmp(place->subject, caller->subject, sizeof(place->subject)) == 0;
}

bool mcp_opened_find(struct mcp_opened *opened, const struct mcp_shown_token *shown,
		     struct arena *into, struct mcp_link *link)
{
	const struct place *place = place_of(opened, shown->text);

	if (place == NULL || place->age != opened->age || !is_shown(place, shown))
		return false;
	struct mcp_token token = place->token;
	token.server = shown->server;
	token.upstream_id = arena_copy(into, token.upstream_id);
	token.revision = arena_copy(into, token.revision);
	if (token.bridged)
		token.declared = arena_copy(into, token.declared);
	if (slice_absent(token.upstream_id) || slice_absent(token.revision) ||
	    token.bridged != !slice_absent(token.declared))
		return false;
	link->token = token;
	link->who = place->who;
	link->calls = place->calls;
	return true;
}

/* Copies the text to *at, which moves on. False: it does not fit. */
static bool keep(struct slice *text, char **at, const char *end)
{
	if (slice_absent(*text))
		return true;
	if (text->len > (size_t)(end - *at))
		return false;
	(void)memcpy(*at, text->at, text->len);
	*text = slice_of(*at, text->len);
	*at += text->len;
	return true;
}

void mcp_opened_add(struct mcp_opened *opened, const struct mcp_shown_token *shown,
		    const struct mcp_link *link)
{
	struct place *place = place_of(opened, shown->text);
	const struct caller *caller = shown->caller;

	if (place == NULL)
		return;
	*place = (struct place){ .kind = shown->kind,
				 .server = shown->server,
				 .text = shown->text,
				 .tenant = caller->tenant,
				 .name = caller->server,
				 .token = link->token,
				 .who = link->who,
				 .calls = link->calls };
	(void)memcpy(place->limit_key, caller->limit_key, sizeof(place->limit_key));
	(void)memcpy(place->subject, caller->subject, sizeof(place->subject));
	char *at = (char *)(place + 1), *end = (char *)place + PLACE_BYTES;

	if (keep(&place->server, &at, end) && keep(&place->text, &at, end) &&
	    keep(&place->tenant, &at, end) && keep(&place->name, &at, end) &&
	    keep(&place->token.upstream_id, &at, end) && keep(&place->token.revision, &at, end) &&
	    keep(&place->token.declared, &at, end))
		place->age = opened->age;
}
