/* wrap_send.c - what the files of a session send. */
#include "gateway/wrap/wrap_session_parts.h"

void wrap_to_client(struct wrap_session *session, struct slice bytes)
{
	session->effects.to_client(session->effects.arg, bytes);
}

void wrap_to_server(struct wrap_session *session, struct slice bytes)
{
	session->effects.to_server(session->effects.arg, bytes);
}

void wrap_answer_server(struct wrap_session *session, struct slice id, bool good, struct slice json)
{
	struct wrap_text line = { 0 };

	wrap_message_answer(&line, id, good, json);
	wrap_to_server(session, wrap_text_slice(&line));
	wrap_text_free(&line);
}

void wrap_answer_client(struct wrap_session *session, struct slice id, bool good, struct slice json)
{
	struct wrap_text line = { 0 };

	wrap_message_answer(&line, id, good, json);
	wrap_to_client(session, wrap_text_slice(&line));
	wrap_text_free(&line);
}
