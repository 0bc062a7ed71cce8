/* wrap_state.c - mixed rounds: what is kept here while the client does its part (contract/mcp-proxy.md 7.4).
 *
 * The client gets a name that cannot be guessed; what it stands for never leaves this process. A client that repeats
 * its part gets the same answers, without another sampling. */
#include "gateway/wrap/wrap_session_parts.h"

#include <stdio.h>
#include <stdlib.h>

static void state_free(struct wrap_state *state)
{
	wrap_text_free(&state->subject);
	wrap_text_free(&state->upstream);
	wrap_text_free(&state->answers);
	free(state);
}

/* Frees those that are too old or too many. */
static void clean(struct wrap_session *session, nsec_t now)
{
	struct wrap_state **link = &session->states;

	for (uint32_t i = 0; *link != NULL;) {
		struct wrap_state *state = *link;
		if (now < state->until && ++i < WRAP_STATES_MAX) {
			link = &state->next;
		} else {
			*link = state->next;
			state_free(state);
		}
	}
}

const char *wrap_state_keep(struct wrap_session *session, struct slice subject,
			    struct slice upstream, struct slice answers, nsec_t now)
{
	struct wrap_state *state = wrap_alloc(sizeof(*state));

	clean(session, now);
	(void)snprintf(state->name, sizeof(state->name), "sluice-wrap-%s-%llu", session->nonce,
		       (unsigned long long)++session->last_state);
	state->until = now + WRAP_STATE_TIME;
	wrap_text_set(&state->subject, subject);
	wrap_text_set(&state->upstream, upstream);
	wrap_text_set(&state->answers, answers);
	state->next = session->states;
	session->states = state;
	return state->name;
}

bool wrap_state_is_ours(struct slice value)
{
	return json_loose_kind(value) == JSON_LOOSE_STRING &&
	       slice_starts(value, SLICE("\"sluice-wrap-"));
}

const struct wrap_state *wrap_state_find(const struct wrap_session *session, struct slice value,
					 struct slice subject, nsec_t now)
{
	for (const struct wrap_state *state = session->states; state != NULL; state = state->next)
		if (json_loose_is(value, state->name))
			return now < state->until &&
					       slice_eq(wrap_text_slice(&state->subject), subject)
				       ? state
				       : NULL;
	return NULL;
}

void wrap_states_free(struct wrap_session *session)
{
	while (session->states != NULL) {
		struct wrap_state *state = session->states;
		session->states = state->next;
		state_free(state);
	}
}

void wrap_state_subject(struct wrap_text *out, const struct mcp_message *message)
{
	const struct mcp_params *params = &message->in_params;

	wrap_text_add(out, message->method);
	wrap_text_add(out, slice_absent(params->name) ? params->uri : params->name);
}
