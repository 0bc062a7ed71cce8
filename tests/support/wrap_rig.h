/* wrap_rig.h - a wrapper's session whose effects are texts. */
#ifndef TESTS_SUPPORT_WRAP_RIG_H
#define TESTS_SUPPORT_WRAP_RIG_H

#include "gateway/wrap/wrap_session.h"
#include "gateway/wrap/wrap_text.h"

/* Zero, but for the mode, before wrap_rig_init. */
struct wrap_rig {
	enum wrap_mode mode;
	struct wrap_session *session;
	struct wrap_text client, server; /* what each was sent */
	struct wrap_text asks;           /* "KEY REVISION PROGRESS PARAMS\n" */
	struct wrap_text cancels;        /* "KEY\n" */
	struct wrap_text said;
	uint64_t keys[64]; /* of asks without an answer or a cancel, in order */
	size_t key_count;
};

static void wrap_rig_to_client(void *arg, struct slice bytes)
{
	struct wrap_rig *rig = arg;

	wrap_text_add(&rig->client, bytes);
}

static void wrap_rig_to_server(void *arg, struct slice bytes)
{
	struct wrap_rig *rig = arg;

	wrap_text_add(&rig->server, bytes);
}

static void wrap_rig_ask(void *arg, const struct wrap_ask *ask)
{
	struct wrap_rig *rig = arg;

	wrap_text_print(&rig->asks, "%llu %s %d ", (unsigned long long)ask->key, ask->revision,
			ask->progress);
	wrap_text_add(&rig->asks, ask->params);
	wrap_text_put(&rig->asks, "\n");
	if (rig->key_count < COUNT_OF(rig->keys))
		rig->keys[rig->key_count++] = ask->key;
}

/* True: it was under way. */
static bool wrap_rig_forget(struct wrap_rig *rig, uint64_t key)
{
	for (size_t i = 0; i < rig->key_count; i++)
		if (rig->keys[i] == key) {
			for (rig->key_count--; i < rig->key_count; i++)
				rig->keys[i] = rig->keys[i + 1];
			return true;
		}
	return false;
}

static void wrap_rig_cancel(void *arg, uint64_t key)
{
	struct wrap_rig *rig = arg;

	wrap_text_print(&rig->cancels, "%llu%s\n", (unsigned long long)key,
			wrap_rig_forget(rig, key) ? "" : " unknown");
}

static void wrap_rig_say(void *arg, const char *text)
{
	struct wrap_rig *rig = arg;

	wrap_text_print(&rig->said, "%s\n", text);
}

static inline void wrap_rig_init(struct wrap_rig *rig)
{
	const struct wrap_effects effects = { .to_client = wrap_rig_to_client,
					      .to_server = wrap_rig_to_server,
					      .ask = wrap_rig_ask,
					      .cancel = wrap_rig_cancel,
					      .say = wrap_rig_say,
					      .arg = rig };

	rig->session = wrap_session_new(rig->mode, "n", &effects);
}

/* The gateway answers the ask `key`. */
static inline void wrap_rig_answer(struct wrap_rig *rig, uint64_t key, bool good, const char *json,
				   nsec_t now)
{
	(void)wrap_rig_forget(rig, key);
	wrap_session_answer(rig->session, key, good, slice_str(json), now);
}

static inline void wrap_rig_fini(struct wrap_rig *rig)
{
	wrap_session_free(rig->session);
	wrap_text_free(&rig->client);
	wrap_text_free(&rig->server);
	wrap_text_free(&rig->asks);
	wrap_text_free(&rig->cancels);
	wrap_text_free(&rig->said);
}

#endif
