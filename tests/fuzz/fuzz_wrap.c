/* fuzz_wrap.c - a wrapper's two streams: one outcome, however they are cut, and each sampling answered once.
 *
 * [0] chooses the mode and how much is read at once; then lines, those that begin with '<' are the client's. A line "="
 * lets the gateway answer what it was asked, "!" refuse it. */
#include "codec/base/must.h"
#include "gateway/wrap/wrap_lines.h"
#include "tests/support/wrap_rig.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LINE_MAX_HERE = 4096 };

static void answer_all(struct wrap_rig *rig, bool good)
{
	while (rig->key_count != 0)
		wrap_rig_answer(rig, rig->keys[0], good,
				good ? "{\"model\":\"m\"}" : "{\"code\":1}", 1 * SEC);
}

static void on_line(void *arg, struct slice bytes, bool whole)
{
	struct wrap_rig *rig = arg;

	if (!whole)
		wrap_text_add(&rig->client, bytes);
	else if (slice_eq(bytes, SLICE("=\n")) || slice_eq(bytes, SLICE("!\n")))
		answer_all(rig, bytes.at[0] == '=');
	else if (bytes.at[0] == '<')
		wrap_session_from_client(rig->session, slice_of(bytes.at + 1, bytes.len - 1),
					 1 * SEC);
	else
		wrap_session_from_server(rig->session, bytes, 1 * SEC);
	must(rig->key_count <= WRAP_SAMPLINGS_MAX);
}

static void run(struct wrap_rig *rig, struct slice text, size_t step)
{
	struct wrap_lines lines = { 0 };

	wrap_rig_init(rig);
	for (size_t at = 0; at < text.len; at += step)
		wrap_lines_feed(&lines,
				slice_of(text.at + at, text.len - at < step ? text.len - at : step),
				LINE_MAX_HERE, on_line, rig);
	wrap_lines_end(&lines, on_line, rig);
	answer_all(rig, true);
	wrap_session_end(rig->session);
	must(rig->key_count == 0);
	must(rig->cancels.len == 0 ||
	     memmem(rig->cancels.at, rig->cancels.len, "unknown", 7) == NULL);
}

static bool same(const struct wrap_text *a, const struct wrap_text *b)
{
	return slice_eq(wrap_text_slice(a), wrap_text_slice(b));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1)
		return 0;
	const enum wrap_mode mode = (enum wrap_mode)(data[0] & 3);
	const struct slice text = slice_of((const char *)data + 1, size - 1);
	struct wrap_rig whole = { .mode = mode }, cut = { .mode = mode };

	run(&whole, text, text.len == 0 ? 1 : text.len);
	run(&cut, text, (data[0] >> 2) + (size_t)1);
	must(same(&whole.client, &cut.client) && same(&whole.server, &cut.server) &&
	     same(&whole.asks, &cut.asks) && same(&whole.cancels, &cut.cancels));
	wrap_rig_fini(&whole);
	wrap_rig_fini(&cut);
	return 0;
}
