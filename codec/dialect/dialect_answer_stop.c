/* dialect_answer_stop.c - the reasons to stop of all hosts, whatever their format is.
 *
 * A gateway in front of another format hands on that one's reasons as they are, so every dialect knows those of
 * all. The usual ones of a dialect are its own business; what it does not know comes here. */
#include "codec/dialect/dialect_answer.h"

#include "codec/dialect/dialect_words.h"

static const struct stop_row {
	struct slice word; /* words_same */
	enum answer_stop stop;
} rows[] = {
	{ SLICE_INIT("stop"), ANSWER_END },
	{ SLICE_INIT("endturn"), ANSWER_END },
	{ SLICE_INIT("complete"), ANSWER_END }, /* Cohere */
	{ SLICE_INIT("completed"), ANSWER_END },
	{ SLICE_INIT("normal"), ANSWER_END }, /* Baidu */
	{ SLICE_INIT("tooluse"), ANSWER_END },
	{ SLICE_INIT("toolcall"), ANSWER_END },
	{ SLICE_INIT("toolcalls"), ANSWER_END },
	{ SLICE_INIT("functioncall"), ANSWER_END },
	{ SLICE_INIT("stopsequence"), ANSWER_SEQUENCE },

	{ SLICE_INIT("length"), ANSWER_LENGTH },
	{ SLICE_INIT("maxlength"), ANSWER_LENGTH },
	{ SLICE_INIT("modellength"), ANSWER_LENGTH }, /* Mistral */
	{ SLICE_INIT("maxtokens"), ANSWER_LENGTH },   /* Bedrock, Gemini, Cohere */
	{ SLICE_INIT("maxoutputtokens"), ANSWER_LENGTH },
	{ SLICE_INIT("maxcompletiontokens"), ANSWER_LENGTH },
	{ SLICE_INIT("tokenlimit"), ANSWER_LENGTH }, /* watsonx */
	{ SLICE_INIT("tokenlimitreached"), ANSWER_LENGTH },
	{ SLICE_INIT("errorlimit"), ANSWER_LENGTH }, /* Cohere */
	{ SLICE_INIT("contextlength"), ANSWER_LENGTH },
	{ SLICE_INIT("contextlengthexceeded"), ANSWER_LENGTH },
	{ SLICE_INIT("contextwindowexceeded"), ANSWER_LENGTH },
	{ SLICE_INIT("modelcontextwindowexceeded"), ANSWER_LENGTH }, /* z.ai, Bedrock */

	{ SLICE_INIT("refusal"), ANSWER_REFUSED },
	{ SLICE_INIT("contentfilter"), ANSWER_REFUSED },
	{ SLICE_INIT("contentfiltered"), ANSWER_REFUSED }, /* Bedrock */
	{ SLICE_INIT("contentpolicy"), ANSWER_REFUSED },
	{ SLICE_INIT("contentpolicyviolation"), ANSWER_REFUSED },
	{ SLICE_INIT("guardrailintervened"), ANSWER_REFUSED }, /* Bedrock */
	{ SLICE_INIT("guardrails"), ANSWER_REFUSED },
	{ SLICE_INIT("moderation"), ANSWER_REFUSED },
	{ SLICE_INIT("sensitive"), ANSWER_REFUSED }, /* z.ai, Hunyuan */
	{ SLICE_INIT("datainspectionfailed"), ANSWER_REFUSED },
	{ SLICE_INIT("safety"), ANSWER_REFUSED }, /* Gemini, from here on */
	{ SLICE_INIT("recitation"), ANSWER_REFUSED },
	{ SLICE_INIT("language"), ANSWER_REFUSED },
	{ SLICE_INIT("prohibitedcontent"), ANSWER_REFUSED },
	{ SLICE_INIT("blocklist"), ANSWER_REFUSED },
	{ SLICE_INIT("spii"), ANSWER_REFUSED },
	{ SLICE_INIT("modelarmor"), ANSWER_REFUSED },
	{ SLICE_INIT("imagesafety"), ANSWER_REFUSED },
	{ SLICE_INIT("imageprohibitedcontent"), ANSWER_REFUSED },
	{ SLICE_INIT("imagerecitation"), ANSWER_REFUSED },
	{ SLICE_INIT("errortoxic"), ANSWER_REFUSED }, /* Cohere */

	{ SLICE_INIT("error"), ANSWER_BROKEN },
	{ SLICE_INIT("networkerror"), ANSWER_BROKEN }, /* z.ai */
	{ SLICE_INIT("abort"), ANSWER_BROKEN },        /* vLLM, SGLang */
	{ SLICE_INIT("aborted"), ANSWER_BROKEN },
	{ SLICE_INIT("cancel"), ANSWER_BROKEN },
	{ SLICE_INIT("cancelled"), ANSWER_BROKEN },
	{ SLICE_INIT("canceled"), ANSWER_BROKEN },
	{ SLICE_INIT("usercancel"), ANSWER_BROKEN }, /* Cohere */
	{ SLICE_INIT("timeout"), ANSWER_BROKEN },
	{ SLICE_INIT("timelimit"), ANSWER_BROKEN }, /* watsonx */
	{ SLICE_INIT("failed"), ANSWER_BROKEN },
	{ SLICE_INIT("servererror"), ANSWER_BROKEN },
	{ SLICE_INIT("internalerror"), ANSWER_BROKEN },

	{ SLICE_INIT("functioncallfilter"), ANSWER_BAD_CALL }, /* Gemini behind a gateway */
	{ SLICE_INIT("malformedfunctioncall"), ANSWER_BAD_CALL },
	{ SLICE_INIT("unexpectedtoolcall"), ANSWER_BAD_CALL },
	{ SLICE_INIT("malformedresponse"), ANSWER_BAD_CALL },
	{ SLICE_INIT("malformedtooluse"), ANSWER_BAD_CALL }, /* Bedrock */
	{ SLICE_INIT("malformedmodeloutput"), ANSWER_BAD_CALL },
	{ SLICE_INIT("malformedtoolcall"), ANSWER_BAD_CALL },
	{ SLICE_INIT("invalidtoolcall"), ANSWER_BAD_CALL },
};

static enum answer_stop stop_of_word(struct slice word)
{
	for (size_t i = 0; i < COUNT_OF(rows); i++)
		if (words_same(word, rows[i].word))
			return rows[i].stop;
	return ANSWER_OTHER;
}

/* Before the last separator of *front, what is behind it is returned; without one all of it, and *front is absent. */
static struct slice last_part(struct slice *front)
{
	struct slice part = *front;
	size_t at = part.len;

	while (at > 0 && part.at[at - 1] != ':' && part.at[at - 1] != '.')
		at--;
	if (at == 0) {
		*front = (struct slice){ NULL, 0 };
		return part;
	}
	*front = slice_of(part.at, at - 1);
	return slice_of(part.at + at, part.len - at);
}

enum answer_stop answer_stop_of(struct slice reason)
{
	enum answer_stop stop = ANSWER_OTHER;

	/* "content_filter: RECITATION", "FinishReason.SAFETY": what is behind says more, but is not always known */
	while (stop == ANSWER_OTHER && !slice_absent(reason))
		stop = stop_of_word(last_part(&reason));
	return stop;
}
