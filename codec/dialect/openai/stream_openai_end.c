/* stream_openai_end.c - what only the whole of a Chat Completions stream tells, and what goes back of it. */
#include "codec/dialect/openai/dialect_openai.h"
#include "codec/dialect/openai/stream_openai.h"

/* ---- choices ---- */

static bool same_text(struct stream *s, uint32_t a, uint32_t b)
{
	return s->blocks[a].text.len == s->blocks[b].text.len &&
	       slice_eq(stream_text_whole(s, &s->blocks[a].text),
			stream_text_whole(s, &s->blocks[b].text));
}

/* Whether there is text of a choice before that one. */
static bool said_before(struct stream *s, uint32_t choice, uint32_t *first)
{
	for (uint32_t i = 0; i < choice; i++) {
		*first = stream_block_at(s, INDEX_TEXT - i);
		if (*first != STREAM_NO_BLOCK && s->blocks[*first].kind == STREAM_TEXT &&
		    s->blocks[*first].text.len != 0)
			return true;
	}
	return false;
}

/* One choice was asked for, but Copilot spreads one answer over several: its text is in the first, its calls are in
 * others. A further one that has text and no calls is another answer in place of the first one. */
static void join_choice(struct stream *s, uint32_t choice)
{
	const bool calls = (s->choices_calling >> choice & 1) != 0;
	const uint32_t text = stream_block_at(s, INDEX_TEXT - choice);
	const bool says = text != STREAM_NO_BLOCK && s->blocks[text].kind == STREAM_TEXT;
	uint32_t first;

	if (says && said_before(s, choice, &first) && (!calls || same_text(s, text, first)))
		s->blocks[text].kind = STREAM_IGNORED;
	const bool counts = calls || (says && s->blocks[text].kind == STREAM_TEXT);
	if (!counts || s->choice_stops[choice] == 0)
		return;
	const enum answer_stop stop = (enum answer_stop)(s->choice_stops[choice] - 1);
	if (answer_stop_says_more(s->answer.stop, stop))
		s->answer.stop = stop;
}

/* ---- the end ---- */

void stream_openai_finish(struct stream *s)
{
	uint32_t refusal = stream_block_at(s, INDEX_REFUSAL);

	for (uint32_t i = 1; i < STREAM_CHOICES; i++)
		join_choice(s, i);

	if (refusal != STREAM_NO_BLOCK && s->blocks[refusal].text.len != 0)
		s->answer.stop = ANSWER_REFUSED;
	for (uint32_t i = 0; i < s->block_count; i++)
		if (s->blocks[i].kind == STREAM_CALL && !slice_absent(s->blocks[i].args) &&
		    stream_has_arguments(&s->blocks[i]))
			answer_odd(&s->answer,
				   "A tool call of the provider's stream has two arguments");
}

/* The text at that place as a JSON string; absent when there is none. */
static struct slice whole_string(struct stream *s, uint64_t index)
{
	const uint32_t at = stream_block_at(s, index);
	struct gather g;

	if (at == STREAM_NO_BLOCK)
		return (struct slice){ NULL, 0 };
	gather_init(&g, s->answer.into);
	gather_lit(&g, "\"");
	stream_text_write(&g, &s->blocks[at].text);
	gather_lit(&g, "\"");
	if (gather_done(&g) == ERR_OK)
		return gather_flat(&g, s->answer.into);
	answer_no_memory(&s->answer);
	return (struct slice){ NULL, 0 };
}

void stream_openai_replay(struct stream *s, const struct sampling_result *result)
{
	struct answer *a = &s->answer;
	const struct openai_kept kept = {
		.reasoning_content = whole_string(s, INDEX_REASONING_CONTENT),
		.reasoning = whole_string(s, INDEX_REASONING),
		.reasoning_details = stream_details_whole(s),
	};
	uint32_t call = 0;

	(void)result; /* its calls are those of the answer */
	for (uint32_t i = 0; i < s->block_count; i++) {
		if (s->blocks[i].kind != STREAM_CALL)
			continue;
		while (a->blocks[call].kind != ANSWER_CALL)
			call++;
		if (s->blocks[i].extra != NULL)
			a->blocks[call].text = s->blocks[i].extra->json;
		call++;
	}
	if (a->err == ERR_OK)
		openai_keep(a, &kept);
}
