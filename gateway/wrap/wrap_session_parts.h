/* wrap_session_parts.h - what the files of a session share: private to wrap_session.c, wrap_initialize.c,
 * wrap_sampling.c, wrap_call*.c. */
#ifndef GATEWAY_WRAP_WRAP_SESSION_PARTS_H
#define GATEWAY_WRAP_WRAP_SESSION_PARTS_H

#include "gateway/wrap/wrap_message.h"
#include "gateway/wrap/wrap_session.h"

/* One entry of a round's inputRequests. */
struct wrap_entry {
	struct wrap_text name;   /* its key, as JSON text */
	struct wrap_text answer; /* the result, once it is there */
};

/* A request of the client's that has no response yet. */
struct wrap_call {
	struct wrap_call *next;
	struct wrap_text id; /* the client's, as JSON text */
	/* of one that may be asked for input (2026-07-28); else `line` is empty */
	struct wrap_text line;  /* as it went to the server first */
	struct wrap_text leg;   /* the id that the server knows; empty: the client's */
	struct wrap_text token; /* its progressToken; empty: none */
	double progress;        /* the last value that the client has seen */
	bool progressed;
	nsec_t began; /* the first round */
	uint32_t rounds;
	/* of the round under way; `asked` is empty outside of one */
	struct wrap_text asked; /* the server's response: all of its line */
	struct wrap_entry entries[WRAP_SAMPLINGS_MAX];
	uint32_t entry_count, pending;
};

struct wrap_sampling {
	uint64_t key;        /* 0: free */
	struct wrap_text id; /* of the server's request */
	struct wrap_call
		*call; /* NULL: it was a request; else it is entries[entry] of that call's round */
	uint32_t entry;
};

/* Of a round of which the client has to do a part: what belongs to the state that the client was given instead of the
 * server's. */
struct wrap_state {
	struct wrap_state *next;
	char name[64];
	nsec_t until;
	struct wrap_text subject;  /* the method, and the params' name or uri */
	struct wrap_text upstream; /* the server's state as JSON text; empty: it sent none */
	struct wrap_text answers;  /* members of inputResponses, joined by commas */
};

struct wrap_session {
	enum wrap_mode mode;
	char nonce[33];
	struct wrap_effects effects;
	uint64_t last_key, last_leg, last_state;
	bool client_samples; /* it has declared so itself */
	bool ended;          /* nobody can be answered any more */
	const char *revision;
	/* initialize, until it is answered */
	bool initializing;
	bool tools; /* what was declared last was {"tools":{}} */
	bool own;   /* it was sent with the client's own bytes */
	struct wrap_text hello, hello_id;
	struct wrap_sampling samplings[WRAP_SAMPLINGS_MAX];
	struct wrap_call *calls;
	uint32_t call_count;
	bool uncounted; /* there are or were more requests of the client's than are followed */
	struct wrap_state *states; /* the newest first */
};

/* ---- wrap_send.c ---- */
void wrap_to_client(struct wrap_session *session, struct slice bytes);
void wrap_to_server(struct wrap_session *session, struct slice bytes);
void wrap_answer_server(struct wrap_session *session, struct slice id, bool good,
			struct slice json);
void wrap_answer_client(struct wrap_session *session, struct slice id, bool good,
			struct slice json);

/* ---- wrap_initialize.c ---- */
/* An initialize of the client's: it goes to the server with what is to be declared. */
void wrap_initialize(struct wrap_session *session, struct slice line,
		     const struct mcp_message *message);
/* Whether a response of the server's is a refusal of initialize after which it is sent once more. */
bool wrap_initialize_again(struct wrap_session *session, const struct mcp_message *response);

/* What to do with a declaration: absent, it stays; `cut`: it goes away; else `put` is declared. */
struct wrap_declaration {
	bool change, cut;
	struct slice put;
};
struct wrap_declaration wrap_declare(const struct wrap_session *session, struct slice sampling,
				     bool tools);
/* Adds the line with that done to what it says of the client, whose capabilities are an object. */
void wrap_put_declaration(struct wrap_text *out, struct slice line,
			  const struct mcp_declaration *client,
			  const struct wrap_declaration *declaration);

/* ---- wrap_sampling.c ---- */
/* Whether a request of the server's is answered here. */
bool wrap_takes(const struct wrap_session *session, const struct mcp_message *message);
void wrap_take(struct wrap_session *session, const struct mcp_message *message);
/* How many more may be begun. */
uint32_t wrap_samplings_free(const struct wrap_session *session);
/* Asks for an entry of a round; there is a free one. */
void wrap_begin_entry(struct wrap_session *session, struct wrap_call *call, uint32_t entry,
		      struct slice params);
/* The one that the server's request of that id has begun; NULL: none. */
struct wrap_sampling *wrap_find_sampling(struct wrap_session *session, struct slice id);
/* It is not wanted any more. */
void wrap_drop_sampling(struct wrap_session *session, struct wrap_sampling *sampling);
/* Those of a call's round. */
void wrap_drop_entries(struct wrap_session *session, const struct wrap_call *call);
/* The client has given up its only request: those that it may have caused are answered "cancelled". */
void wrap_cancel_samplings(struct wrap_session *session);

/* ---- wrap_call.c ---- */
/* A request of the client's, perhaps one of a batch, that goes on as it is. Of too many the oldest is not followed any
 * more; NULL: all of them may have rounds. */
struct wrap_call *wrap_call_begin(struct wrap_session *session, struct slice id);
void wrap_call_end(struct wrap_session *session, struct wrap_call *call);
/* By the id that the server or the client knows; NULL: it is not followed. */
struct wrap_call *wrap_call_of_server(struct wrap_session *session, struct slice id);
struct wrap_call *wrap_call_of_client(struct wrap_session *session, struct slice id);
/* Whether `message` is a call of 2026-07-28 that may ask for input. If so it was sent. */
bool wrap_call_modern(struct wrap_session *session, struct slice line,
		      const struct mcp_message *message, nsec_t now);
/* The client gives a call up; true: the notification was dealt with, else it goes on as it is. */
bool wrap_call_cancel(struct wrap_session *session, struct slice line,
		      const struct mcp_message *message);
/* A response of the server's; true: it was dealt with. */
bool wrap_call_response(struct wrap_session *session, struct slice line,
			const struct mcp_message *message, nsec_t now);
/* Whether a progress notification of the server's would go backwards for the client. */
bool wrap_call_stale_progress(struct wrap_session *session, const struct mcp_message *message);

/* ---- wrap_round.c ---- */
/* A response that asks for input; true: it was dealt with, and the call may be gone. */
bool wrap_round_begin(struct wrap_session *session, struct wrap_call *call, struct slice line,
		      const struct mcp_message *message, nsec_t now);
void wrap_round_answer(struct wrap_session *session, struct wrap_call *call, uint32_t entry,
		       bool good, struct slice json, nsec_t now);

/* Adds a call's line with the answers of a round (members, joined by commas) and the server's state (absent: none)
 * instead of those that it has. `id` absent: its own. */
void wrap_round_retry(struct wrap_text *out, struct slice line, struct slice id,
		      struct slice answers, struct slice state);

/* ---- wrap_state.c ---- */
/* Remembers a round's answers and the server's state; the name to give to the client, valid until the next call. */
const char *wrap_state_keep(struct wrap_session *session, struct slice subject,
			    struct slice upstream, struct slice answers, nsec_t now);
/* Whether a requestState is one that a wrapper made. */
bool wrap_state_is_ours(struct slice value);
/* NULL: unknown, expired, or of another subject. */
const struct wrap_state *wrap_state_find(const struct wrap_session *session, struct slice value,
					 struct slice subject, nsec_t now);
void wrap_states_free(struct wrap_session *session);
/* Adds a request's method, and the params' name or uri. */
void wrap_state_subject(struct wrap_text *out, const struct mcp_message *message);

#endif
