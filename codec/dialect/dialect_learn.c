#include "codec/dialect/dialect_learn.h"

#include "codec/json/json_read.h"

/* ---- texts ---- */

enum {
	TEXT_MAX = 2048,      /* of a text; what stands behind it is not looked at */
	CODE_MAX = 256,       /* a longer one is none */
	QUOTED_NAME_MAX = 64, /* a longer quotation is no name */
};

/* A provider's text in small letters. Names in quotes are in capitals, so that they are never taken for the
 * provider's own words; any other quotation is left out. */
struct words {
	size_t len;
	char at[TEXT_MAX + 8];
};

static bool is_capital(char c)
{
	return c >= 'A' && c <= 'Z';
}

static char small(char c)
{
	return is_capital(c) ? (char)(c + ('a' - 'A')) : c;
}

static char capital(char c)
{
	return c >= 'a' && c <= 'z' ? (char)(c - ('a' - 'A')) : c;
}

static bool is_alnum(char c)
{
	return (small(c) >= 'a' && small(c) <= 'z') || (c >= '0' && c <= '9');
}

/* Whether a byte may be part of a parameter's name, or of a path to one. */
static bool is_path(char c)
{
	return is_alnum(c) || c == '_' || c == '.' || c == '[' || c == ']' || c == '$' || c == '-';
}

/* Of which kind the quotation mark is that `text` has at `i`, and how many bytes it takes; 0: there is none. */
static char quote_at(struct slice text, size_t i, size_t *bytes)
{
	const char c = text.at[i];

	*bytes = 1;
	if (c == '"' || c == '`')
		return c;
	if (c == '\'') /* "doesn't" */
		return i > 0 && is_alnum(text.at[i - 1]) && i + 1 < text.len &&
				       is_alnum(text.at[i + 1])
			       ? 0
			       : c;
	if (text.len - i < 3 || memcmp(text.at + i, "\xe2\x80", 2) != 0)
		return 0;
	*bytes = 3;
	switch ((unsigned char)text.at[i + 2]) {
	case 0x98:
	case 0x99:
		return '\'';
	case 0x9c:
	case 0x9d:
		return '"';
	default:
		return 0;
	}
}

/* Where the quotation that begins before `i` ends, behind its mark; *inside: what it says. The text's end where
 * it does not end: then it says nothing. */
static size_t quotation(struct slice text, size_t i, char mark, struct slice *inside)
{
	const size_t begin = i;
	size_t bytes;

	for (; i < text.len; i++) {
		if (quote_at(text, i, &bytes) != mark)
			continue;
		*inside = slice_of(text.at + begin, i - begin);
		return i + bytes;
	}
	*inside = slice_of(text.at, 0);
	return text.len;
}

static void put_name(struct words *words, struct slice name)
{
	for (size_t i = 0; i < name.len; i++)
		if (!is_path(name.at[i]))
			return;
	for (size_t i = 0; i < name.len && name.len <= QUOTED_NAME_MAX; i++)
		words->at[words->len++] = capital(name.at[i]);
}

static bool read_words(struct slice raw, struct arena *into, struct words *words)
{
	struct slice text, inside;
	size_t bytes;

	words->len = 0;
	if (slice_absent(raw))
		return false;
	text = json_str_plain(error_body_front(raw, TEXT_MAX), into);
	if (slice_absent(text))
		return false;
	for (size_t i = 0; i < text.len;) {
		const char mark = quote_at(text, i, &bytes);
		if (mark == 0) {
			words->at[words->len++] = small(text.at[i++]);
			continue;
		}
		i = quotation(text, i + bytes, mark, &inside);
		words->at[words->len++] = ' ';
		put_name(words, inside);
		if (inside.len != 0)
			words->at[words->len++] = ' ';
	}
	return true;
}

/* ---- names ---- */

/* How a parameter is called, in small letters. A "_" is a space, a hyphen or nothing as well: "stop sequences",
 * "stopSequences". Of its facts the first that is teachable counts. The order matters where a path has two. */
static const struct learn_row {
	struct slice name;
	bool common; /* a common word: counts as `param`, or in quotes where the words are clear */
	enum learn facts[2];
} learn_rows[] = {
#define ROW(name, common, ...)            \
	{                                 \
		SLICE_INIT(name), common, \
		{                         \
			__VA_ARGS__       \
		}                         \
	}
	ROW("temperature", false, LEARN_NO_TEMPERATURE),
	ROW("stop", false, LEARN_NO_STOP),
	ROW("stop_sequences", false, LEARN_NO_STOP),
	ROW("stop_sequence", false, LEARN_NO_STOP),
	ROW("max_tokens", false, LEARN_COMPLETION_TOKENS),
	ROW("max_completion_tokens", false, LEARN_MAX_TOKENS),
	ROW("reasoning_effort", false, LEARN_NO_EFFORT, LEARN_EFFORT_NONE),
	ROW("reasoning.effort", false, LEARN_NO_EFFORT, LEARN_EFFORT_NONE),
	ROW("reasoning", false, LEARN_NO_EFFORT),
	ROW("disable_parallel_tool_use", false, LEARN_NO_PARALLEL),
	ROW("tool_choice.disable_parallel_tool_use", false, LEARN_NO_PARALLEL),
	ROW("parallel_tool_calls", false, LEARN_NO_PARALLEL),
	ROW("parallel_tool_calling", false, LEARN_NO_PARALLEL),
	ROW("tool_choice", false, LEARN_NO_FORCED_TOOL, LEARN_NO_TOOL_CHOICE),
	ROW("response_format", false, LEARN_NO_STRUCTURED),
	ROW("text.format", false, LEARN_NO_STRUCTURED),
	ROW("text", true, LEARN_NO_STRUCTURED),
	ROW("output_config", false, LEARN_NO_STRUCTURED),
	ROW("output_format", false, LEARN_NO_STRUCTURED),
	ROW("json_schema", false, LEARN_NO_STRUCTURED),
	ROW("structured_output", false, LEARN_NO_STRUCTURED),
	ROW("structured_outputs", false, LEARN_NO_STRUCTURED),
	ROW("safety_identifier", false, LEARN_NO_USER_ID),
	ROW("metadata", false, LEARN_NO_USER_ID),
	ROW("user_id", false, LEARN_NO_USER_ID),
	ROW("user", true, LEARN_NO_USER_ID),
	ROW("stream_options", false, LEARN_NO_STREAM_OPTIONS),
#undef ROW
};

/* What a path to a parameter may begin with; a path through anything else is one within the caller's content. */
static const struct slice wrappers[] = {
	SLICE_INIT("body"),
	SLICE_INIT("request"),
	SLICE_INIT("params"),
	SLICE_INIT("parameters"),
	SLICE_INIT("$"),
	SLICE_INIT("data"),
	SLICE_INIT("json"),
	SLICE_INIT("options"),
	SLICE_INIT("metadata"),
	SLICE_INIT("config"),
	SLICE_INIT("extra_body"),
	SLICE_INIT("generation_config"),
	SLICE_INIT("generationconfig"),
	SLICE_INIT("inferenceconfig"),
	SLICE_INIT("toolconfig"),
	SLICE_INIT("additionalmodelrequestfields"),
	SLICE_INIT("chatcompletionrequest"),
};

static bool is_wrapper(struct slice part)
{
	for (size_t i = 0; i < COUNT_OF(wrappers); i++)
		if (slice_eq_nocase(part, wrappers[i]))
			return true;
	return false;
}

/* Whether a name may begin at `at`: there a word begins, and what leads to it within a path are wrappers. */
static bool may_begin(const struct words *words, size_t at)
{
	size_t begin = at;

	if (at == 0 || !is_path(words->at[at - 1]))
		return true;
	if (words->at[at - 1] != '.')
		return words->at[at - 1] == '['; /* of a list of names */
	while (begin > 0 && is_path(words->at[begin - 1]))
		begin--;
	struct slice path = slice_of(words->at + begin, at - 1 - begin);
	while (!slice_absent(path))
		if (!is_wrapper(slice_cut(&path, '.')))
			return false;
	return true;
}

/* The bytes of `name` as it stands at `at`; 0 when it does not, or goes on as another word. */
static size_t name_here(const struct words *words, size_t at, struct slice name)
{
	size_t i = at;

	for (size_t n = 0; n < name.len; n++) {
		const char c = i < words->len ? small(words->at[i]) : '\0';
		if (c == name.at[n])
			i++;
		else if (name.at[n] == '_' && (c == ' ' || c == '-'))
			i++;
		else if (name.at[n] != '_')
			return 0;
	}
	const char next = i < words->len ? words->at[i] : ' ';
	if (is_alnum(next) || next == '_')
		return 0;
	if (next == '-' && i + 1 < words->len && is_alnum(words->at[i + 1]))
		return 0;
	return i - at;
}

/* A parameter that a text names. */
struct found {
	const struct learn_row *row; /* NULL: none */
	enum learn fact; /* LEARN_NOTHING: it was not sent, or cannot be sent otherwise */
	size_t begin, end;
};

static enum learn fact_of(const struct learn_row *row, learn_set teachable)
{
	for (size_t i = 0; i < COUNT_OF(row->facts); i++)
		if (row->facts[i] != LEARN_NOTHING && (teachable & LEARN_BIT(row->facts[i])))
			return row->facts[i];
	return LEARN_NOTHING;
}

/* What stands at `at`: the longest name. `said`: in a text, where common words need quotes. */
static struct found found_at(const struct words *words, size_t at, bool said, learn_set teachable)
{
	struct found found = { .begin = at, .end = at };

	for (size_t i = 0; i < COUNT_OF(learn_rows); i++) {
		const struct learn_row *row = &learn_rows[i];
		const size_t bytes = name_here(words, at, row->name);
		if (bytes == 0 || at + bytes <= found.end ||
		    (row->common && said && !is_capital(words->at[at])))
			continue;
		found.row = row;
		found.fact = fact_of(row, teachable);
		found.end = at + bytes;
	}
	return found;
}

/* The first parameter that was sent; else the last one that was not. */
static struct found find_name(const struct words *words, bool said, learn_set teachable)
{
	struct found any = { .row = NULL };

	for (size_t at = 0; at < words->len; at++) {
		if (!is_alnum(words->at[at]) || !may_begin(words, at))
			continue;
		const struct found found = found_at(words, at, said, teachable);
		if (found.fact != LEARN_NOTHING)
			return found;
		if (found.row != NULL)
			any = found;
	}
	return any;
}

/* ---- what is said of it ---- */

/* Words that say that a parameter, whatever its value, is not for this model. */
static const struct slice unsupported[] = {
	SLICE_INIT("not support"),
	SLICE_INIT("n't support"),
	SLICE_INIT("unsupported"),
	SLICE_INIT("no support"),
	SLICE_INIT("not permitted"),
	SLICE_INIT("not allowed"),
	SLICE_INIT("not accept"),
	SLICE_INIT("n't accept"),
	SLICE_INIT("not available"),
	SLICE_INIT("not enabled"),
	SLICE_INIT("not implemented"),
	SLICE_INIT("not recognized"),
	SLICE_INIT("not compatible"),
	SLICE_INIT("incompatible"),
	SLICE_INIT("deprecated"),
	SLICE_INIT("no longer"),
	SLICE_INIT("unrecognized"),
	SLICE_INIT("unknown"),
	SLICE_INIT("unexpected"),
	SLICE_INIT("extra inputs"),
	SLICE_INIT("extra fields"),
	SLICE_INIT("extra_forbidden"),
	SLICE_INIT("may not be enabled"),
	SLICE_INIT("may not be used"),
	SLICE_INIT("may not be set"),
	SLICE_INIT("cannot be used"),
	SLICE_INIT("cannot be disabled"),
	SLICE_INIT("may only be set"),
	SLICE_INIT("is allowed"),
	/* "only 1 is allowed for this model" */ SLICE_INIT("only supports"),
	SLICE_INIT("only the default"),
	SLICE_INIT("supported values are"),
};

/* Words that speak of its value, or of what it is made of. */
static const struct slice of_value[] = {
	SLICE_INIT("must"),       SLICE_INIT("between"), SLICE_INIT("range"),
	SLICE_INIT("maximum"),    SLICE_INIT("minimum"), SLICE_INIT("at most"),
	SLICE_INIT("at least"),   SLICE_INIT("less"),    SLICE_INIT("greater"),
	SLICE_INIT("above"),      SLICE_INIT("below"),   SLICE_INIT("more than"),
	SLICE_INIT("fewer"),      SLICE_INIT("exceeds"), SLICE_INIT("too"),
	SLICE_INIT("empty"),      SLICE_INIT("length"),  SLICE_INIT("characters"),
	SLICE_INIT("whitespace"), SLICE_INIT("schema"),  SLICE_INIT("properties"),
	SLICE_INIT("context="),   SLICE_INIT("up to"),   SLICE_INIT("within"),
	SLICE_INIT("outside"),
};

/* Values of `code` and `type` for a parameter that this model does not support. */
static const struct slice unsupported_codes[] = {
	SLICE_INIT("unsupported"),   SLICE_INIT("not_supported"), SLICE_INIT("extra_forbidden"),
	SLICE_INIT("unknown_param"), SLICE_INIT("unrecognized_"), SLICE_INIT("unexpected_param"),
};

/* Whether one of these stands in a text, with no letter around it where it is to be a word. */
static bool has_one(struct slice text, const struct slice *of, size_t count, bool word)
{
	for (size_t i = 0; i < count; i++) {
		const char *at = text.at, *const end = text.at + text.len;
		while ((at = memmem(at, (size_t)(end - at), of[i].at, of[i].len)) != NULL) {
			const char *behind = at + of[i].len;
			const bool begins = at == text.at || (!is_alnum(at[-1]) && at[-1] != '_');
			if (!word || (begins && (behind == end || !is_alnum(*behind))))
				return true;
			at = behind;
		}
	}
	return false;
}

static bool ends_sentence(const struct words *words, size_t i)
{
	const char c = words->at[i];

	return c == '\n' || c == ';' ||
	       ((c == '.' || c == '!' || c == '?') &&
		(i + 1 == words->len || words->at[i + 1] == ' '));
}

static struct slice sentence_of(const struct words *words, const struct found *found)
{
	size_t begin = found->begin, end = found->end;

	while (begin > 0 && !ends_sentence(words, begin - 1))
		begin--;
	while (end < words->len && !ends_sentence(words, end))
		end++;
	return slice_of(words->at + begin, end - begin);
}

static bool code_says(struct slice code)
{
	if (code.len > CODE_MAX)
		return false;
	for (size_t i = 0; i < COUNT_OF(unsupported_codes); i++)
		if (slice_has_nocase(code, unsupported_codes[i]))
			return true;
	return false;
}

static bool is_lasting(const struct error_body *body, struct slice said)
{
	if (has_one(said, of_value, COUNT_OF(of_value), true))
		return false;
	return code_says(body->code) || code_says(body->type) ||
	       has_one(said, unsupported, COUNT_OF(unsupported), false);
}

/* ---- the whole ---- */

/* Private blocks that do not belong where they stand (contract/providers.md 2.1), and what other hosts, and
 * the same ones before, say of blocks that they cannot read: another account's, another model's. */
static bool refuses_blocks(const struct error_body *body)
{
	static const struct slice words[] = {
		SLICE_INIT("bound to a different conversation"),
		SLICE_INIT("invalid `signature` in `thinking` block"),
		SLICE_INIT("invalid signature in thinking block"),
		SLICE_INIT("corrupted thought signature"),
		SLICE_INIT("thought signature is not valid"),
	};

	if (json_str_eq(body->code, SLICE("invalid_encrypted_content")))
		return true;
	for (size_t i = 0; i < COUNT_OF(words); i++)
		if (slice_has_nocase(body->message, words[i]))
			return true;
	return false;
}

/* Whether `param` says that what the caller wrote is wrong, whatever the text says. */
static bool blames_content(const struct words *param)
{
	static const struct slice content[] = {
		SLICE_INIT("messages"), SLICE_INIT("input"),    SLICE_INIT("prompt"),
		SLICE_INIT("system"),   SLICE_INIT("contents"), SLICE_INIT("instructions"),
		SLICE_INIT("tools."),   SLICE_INIT("tools["),
	};

	return has_one(slice_of(param->at, param->len), content, COUNT_OF(content), false);
}

/* What is written otherwise then, or added, is no way out for a text that only mentions it; nor is what a common word
 * in the text may mean. */
static bool is_clear(enum learn fact, const struct learn_row *said, const struct words *message,
		     bool lasting)
{
	static const struct slice other = SLICE_INIT("max_completion_tokens");

	if (lasting)
		return true;
	if (fact == LEARN_COMPLETION_TOKENS) /* "use ... instead" */
		return slice_has_nocase(slice_of(message->at, message->len), other);
	return fact != LEARN_MAX_TOKENS && fact != LEARN_EFFORT_NONE &&
	       (said == NULL || !said->common);
}

struct lesson learn_from(const struct error_body *body, int status, learn_set teachable,
			 struct arena *into)
{
	const struct lesson nothing = { LEARN_NOTHING, false };
	struct found found = { .row = NULL };
	struct words param, message;

	if (status == 400 && refuses_blocks(body))
		return (struct lesson){ LEARN_UNBIND_THINKING, false };
	if (read_words(body->param, into, &param)) {
		if (blames_content(&param))
			return nothing;
		found = find_name(&param, false, teachable);
		if (found.row != NULL && found.fact == LEARN_NOTHING)
			return nothing;
	}
	(void)read_words(body->message, into, &message);
	const struct found said = find_name(&message, true, teachable);
	const enum learn fact = found.row != NULL ? found.fact : said.fact;
	if (fact == LEARN_NOTHING)
		return nothing;
	const bool lasting =
		is_lasting(body, said.fact == fact ? sentence_of(&message, &said)
						   : slice_of(message.at, message.len));
	if (!is_clear(fact, found.row == NULL ? said.row : NULL, &message, lasting))
		return nothing;
	return (struct lesson){ fact, lasting };
}
