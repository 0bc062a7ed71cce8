#include "codec/mcp/mcp_sniff.h"

#include "codec/json/json_loose.h"
#include "codec/json/json_scan.h"

enum state {
	BEGIN,
	NAME_OR_END, /* of an object that was entered just now */
	NAME,
	IN_NAME,
	COLON,
	VALUE,
	IN_WORD,   /* a string whose meaning decides */
	IN_STRING, /* the value, or within it, where `depth` is not 0 */
	IN_CONTAINER,
	IN_TOKEN,
	BEHIND, /* the value */
};

enum member { OTHER, RESULT, ERROR, RESULT_TYPE };

void mcp_sniff_init(struct mcp_sniff *sniff, bool rounds)
{
	*sniff = (struct mcp_sniff){ .rounds = rounds };
}

static const char *decide(struct mcp_sniff *sniff, enum mcp_sniffed got, const char *at)
{
	sniff->got = got;
	return at;
}

/* ---- words: names, and the string that decides ----------------------------------------------- */

static void begin_word(struct mcp_sniff *sniff, enum state state)
{
	sniff->state = (uint8_t)state;
	sniff->escaped = false;
	sniff->word[0] = '"';
	sniff->word_len = 1;
}

static bool word_is(const struct mcp_sniff *sniff, const char *plain)
{
	return sniff->word_len < MCP_SNIFF_WORD &&
	       json_loose_is(slice_of(sniff->word, sniff->word_len), plain);
}

static enum member member_of(const struct mcp_sniff *sniff)
{
	if (sniff->level != 1)
		return word_is(sniff, "resultType") ? RESULT_TYPE : OTHER;
	return word_is(sniff, "result") ? RESULT : word_is(sniff, "error") ? ERROR : OTHER;
}

/* True: the word is over. */
static bool add_to_word(struct mcp_sniff *sniff, char c)
{
	if (sniff->word_len < MCP_SNIFF_WORD)
		sniff->word[sniff->word_len++] = c;
	const bool over = c == '"' && !sniff->escaped;
	sniff->escaped = c == '\\' && !sniff->escaped;
	return over;
}

static void end_word(struct mcp_sniff *sniff)
{
	if (sniff->state == IN_WORD) {
		sniff->word_says =
			word_is(sniff, "input_required") ? MCP_SNIFF_HOLD : MCP_SNIFF_PASS;
		sniff->state = BEHIND;
	} else {
		sniff->member = (uint8_t)member_of(sniff);
		sniff->state = COLON;
	}
}

static const char *read_word(struct mcp_sniff *sniff, const char *at, const char *end)
{
	while (at < end)
		if (add_to_word(sniff, *at++)) {
			end_word(sniff);
			break;
		}
	return at;
}

/* ---- values that are passed over ------------------------------------------------------------- */

static const char *skip_string(struct mcp_sniff *sniff, const char *at, const char *end)
{
	while (at < end) {
		if (sniff->escaped) {
			sniff->escaped = false;
			at++;
			continue;
		}
		at = scan_string_end(at, end);
		if (at == end)
			break;
		if (*at++ == '"') {
			sniff->state = sniff->depth == 0 ? BEHIND : IN_CONTAINER;
			break;
		}
		sniff->escaped = true;
	}
	return at;
}

static const char *skip_container(struct mcp_sniff *sniff, const char *at, const char *end)
{
	while (at < end) {
		const char c = *at++;
		if (c == '"') {
			sniff->state = IN_STRING;
			break;
		}
		if (c == '{' || c == '[') {
			sniff->depth++;
		} else if ((c == '}' || c == ']') && --sniff->depth == 0) {
			sniff->state = BEHIND;
			break;
		}
	}
	return at;
}

static const char *skip_token(struct mcp_sniff *sniff, const char *at, const char *end)
{
	while (at < end && !scan_ends_token(*at))
		at++;
	if (at < end)
		sniff->state = BEHIND;
	return at;
}

/* ---- the outermost object and its result ----------------------------------------------------- */

static const char *begin_value(struct mcp_sniff *sniff, const char *at)
{
	const bool open = *at == '{' || *at == '[';
	const bool answers = sniff->member == ERROR || (sniff->member == RESULT && !sniff->rounds);

	if (answers && *at != 'n') /* not null */
		return decide(sniff, MCP_SNIFF_PASS, at);
	if (sniff->member == RESULT && *at == '{') {
		sniff->level = 2;
		sniff->state = NAME_OR_END;
		return at + 1;
	}
	if (*at == '"') {
		begin_word(sniff, sniff->member == RESULT_TYPE ? IN_WORD : IN_STRING);
		return at + 1;
	}
	if (!open && scan_ends_token(*at))
		return decide(sniff, MCP_SNIFF_HOLD, at);
	sniff->state = open ? IN_CONTAINER : IN_TOKEN;
	sniff->depth = open;
	return at + 1;
}

static const char *end_object(struct mcp_sniff *sniff, const char *at)
{
	if (sniff->level == 1)
		return decide(sniff, MCP_SNIFF_HOLD, at);
	sniff->level = 1;
	sniff->state = BEHIND;
	return at;
}

static const char *begin_message(struct mcp_sniff *sniff, const char *at)
{
	sniff->level = 1;
	sniff->state = NAME_OR_END;
	if (*at == '{')
		return at + 1;
	return decide(sniff, *at == '[' ? MCP_SNIFF_HOLD : MCP_SNIFF_PASS, at);
}

/* One byte that is no white space, outside of names and values. */
static const char *step(struct mcp_sniff *sniff, const char *at)
{
	switch ((enum state)sniff->state) {
	case BEGIN:
		return begin_message(sniff, at);
	case NAME_OR_END:
	case NAME:
		if (*at == '}' && sniff->state == NAME_OR_END)
			return end_object(sniff, at + 1);
		if (*at != '"')
			break;
		begin_word(sniff, IN_NAME);
		return at + 1;
	case COLON:
		if (*at != ':')
			break;
		sniff->state = VALUE;
		return at + 1;
	case VALUE:
		return begin_value(sniff, at);
	case BEHIND:
		if (sniff->word_says != MCP_SNIFF_UNDECIDED && (*at == '}' || *at == ','))
			return decide(sniff, sniff->word_says, at);
		if (*at == '}')
			return end_object(sniff, at + 1);
		if (*at != ',')
			break;
		sniff->state = NAME;
		return at + 1;
	case IN_NAME:
	case IN_WORD:
	case IN_STRING:
	case IN_CONTAINER:
	case IN_TOKEN:
		break;
	}
	return decide(sniff, MCP_SNIFF_HOLD, at); /* it is not JSON */
}

static const char *advance(struct mcp_sniff *sniff, const char *at, const char *end)
{
	switch ((enum state)sniff->state) {
	case IN_NAME:
	case IN_WORD:
		return read_word(sniff, at, end);
	case IN_STRING:
		return skip_string(sniff, at, end);
	case IN_CONTAINER:
		return skip_container(sniff, at, end);
	case IN_TOKEN:
		return skip_token(sniff, at, end);
	case BEGIN:
	case NAME_OR_END:
	case NAME:
	case COLON:
	case VALUE:
	case BEHIND:
		break;
	}
	at = scan_space(at, end);
	return at == end ? at : step(sniff, at);
}

enum mcp_sniffed mcp_sniff_feed(struct mcp_sniff *sniff, struct slice bytes)
{
	const char *at = bytes.at, *end = bytes.len == 0 ? at : at + bytes.len;

	while (at < end && sniff->got == MCP_SNIFF_UNDECIDED)
		at = advance(sniff, at, end);
	return sniff->got;
}
