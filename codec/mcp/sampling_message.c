/* sampling_message.c - messages (contract/mcp.md 2.2): a role, and a block or several. */
#include "codec/mcp/sampling_block.h"

#include "codec/json/json_names.h"

static bool read_content(struct decode *d)
{
	uint32_t i = 0;

	switch (json_here(d->r)) {
	case JSON_OBJECT:
		return decode_block(d, false);
	case JSON_ARRAY:
		break;
	default:
		return decode_refuse_here(d, ERR_CONTENT, NULL);
	}
	(void)json_begin(d->r);
	for (; json_next(d->r); i++)
		if (!decode_block(d, false))
			return decode_in_item(d, i);
	return decode_good(d);
}

static bool read_role(struct decode *d, bool *assistant)
{
	static const struct slice roles[] = { SLICE_INIT("user"), SLICE_INIT("assistant") };
	struct slice raw;

	if (json_here(d->r) != JSON_STRING)
		return decode_refuse_here(d, ERR_ROLE, NULL);
	const char *at = d->r->at;
	if (!json_take_string(d->r, &raw))
		return false;
	size_t role = names_find(roles, COUNT_OF(roles), raw);
	if (role == COUNT_OF(roles))
		return decode_refuse(d, ERR_ROLE, at, NULL);
	*assistant = role == 1;
	return true;
}

enum message_member { MESSAGE_ROLE, MESSAGE_CONTENT, MESSAGE_MEMBERS };

/* Enters the message and reads its beginning, if that is the usual one; returns the members read. */
static uint32_t guess_message(struct decode *d, bool *assistant)
{
	const char *brace = d->r->at;

	if (json_guess_lit(d->r, "{\"role\":\"user\",\"content\":"))
		*assistant = false;
	else if (json_guess_lit(d->r, "{\"role\":\"assistant\",\"content\":"))
		*assistant = true;
	else
		return json_begin(d->r), 0;
	return json_resume_object(d->r, brace) ? 1u << MESSAGE_ROLE : 0;
}

static const struct json_name message_names[] = {
	[MESSAGE_ROLE] = JSON_NAME("role"),
	[MESSAGE_CONTENT] = JSON_NAME("content"),
};

/* json_next_field of a message. */
static inline uint32_t next_message_member(struct json_reader *r, struct json_fields *fields,
					   struct slice *other)
{
	const char *name = json_guess_name(r);

	if (name != NULL)
		switch (json_letters(name)) {
		case JSON_LETTERS('r', 'o', 'l', 'e'):
			if (json_guess_member(r, fields, MESSAGE_ROLE, name, "role"))
				return MESSAGE_ROLE;
			break;
		case JSON_LETTERS('c', 'o', 'n', 't'):
			if (json_guess_member(r, fields, MESSAGE_CONTENT, name, "content"))
				return MESSAGE_CONTENT;
			break;
		}
	return json_unguessed_field(r, fields, other);
}

static bool read_message_members(struct decode *d, bool *assistant)
{
	struct json_fields fields = JSON_FIELDS(message_names);
	const char *at = d->r->at;
	struct slice key;
	uint32_t name;

	fields.seen = guess_message(d, assistant);
	if (fields.seen != 0) {
		if (!read_content(d))
			return decode_in_member(d, "content");
		fields.seen |= 1u << MESSAGE_CONTENT;
		if (json_guess_end(d->r))
			return true;
	}
	while ((name = next_message_member(d->r, &fields, &key)) != FIELD_END) {
		if (name == MESSAGE_ROLE && !read_role(d, assistant))
			return decode_in_member(d, "role");
		if (name == MESSAGE_CONTENT && !read_content(d))
			return decode_in_member(d, "content");
		if (name == FIELD_OTHER && !json_skip(d->r, NULL))
			return false;
	}
	if (!decode_good(d) || fields.seen == (1u << MESSAGE_MEMBERS) - 1)
		return decode_good(d);
	bool role = (fields.seen >> MESSAGE_ROLE & 1) != 0;
	(void)decode_refuse(d, role ? ERR_CONTENT : ERR_ROLE, at,
			    role ? "content is missing" : "role is missing");
	return decode_in_member(d, role ? "content" : "role");
}

/* Adds the message whose blocks are those from `first` on. */
static inline bool add_message(struct decode *d, bool assistant, uint32_t first)
{
	struct message *message = decode_push(d, &d->messages, sizeof(*message));

	if (message == NULL)
		return false;
	message->assistant = assistant;
	message->first = first;
	message->count = d->blocks.count - first;
	return true;
}

/* The first eight of the bytes, as scan_load8 has them; known when compiling. */
static inline uint64_t word_of(const char *literal)
{
	return scan_load8(literal);
}

/* Where the text begins of a message that is nothing but a role and a text, if that is how the message at
 * `at` begins; else NULL. 56 bytes are readable. Whose turn it is alternates, so there is no branch
 * for it. */
static inline const char *text_of_message(const char *at, bool *assistant)
{
	static const char rest[] = "content\":{\"type\":\"text\",\"text\":\"";
	const bool other = scan_load8(at + 8) == word_of("\"assista");
	const char *tail = at + 8 + 5 * other; /* the last eight bytes of who, and what is behind */
	const uint64_t who = other ? word_of("stant\",\"") : word_of("\"user\",\"");

	*assistant = other;
	if (((scan_load8(at) ^ word_of("{\"role\":")) | (scan_load8(tail) ^ who)) != 0 ||
	    memcmp(tail + 8, rest, sizeof(rest) - 1) != 0)
		return NULL;
	return tail + 8 + sizeof(rest) - 1;
}

/* The same by lines: the members of the message are indented by `outer` bytes, the line feed counted, and those
 * of its content by `inner`. ROOM_LINES and what is given for each bytes are readable. All places follow from
 * the lengths of the lines and from whose turn it is, none from white space that is counted. */
enum { ROOM_LINES = 64 + ISA_LINE };

static inline const char *text_of_lines(const char *at, size_t outer, size_t inner, bool *assistant)
{
	static const char content[] = "\"content\": {", type[] = "\"type\": \"text\",",
			  text[] = "\"text\": \"";
	const char *role = at + 1 + outer;
	const bool other = scan_load8(role + 8) == word_of("\"assista");
	const char *tail = role + 7 + 5 * other; /* the last eight bytes of who */
	const uint64_t who = other ? word_of("istant\",") : word_of(" \"user\",");
	const char *second = tail + 8 + outer, *third = second + sizeof(content) - 1 + inner;
	const char *fourth = third + sizeof(type) - 1 + inner;

	*assistant = other;
	if (((scan_load8(role) ^ word_of("\"role\": ")) | (scan_load8(tail) ^ who)) != 0 ||
	    memcmp(second, content, sizeof(content) - 1) != 0 ||
	    memcmp(third, type, sizeof(type) - 1) != 0 ||
	    memcmp(fourth, text, sizeof(text) - 1) != 0)
		return NULL;
	if (*at != '{' || !isa_line(at + 1, outer) || !isa_line(tail + 8, outer) ||
	    !isa_line(third - inner, inner) || !isa_line(fourth - inner, inner))
		return NULL;
	return fourth + sizeof(text) - 1;
}

/* guess_text_message for texts by lines. */
static struct slice guess_lines_message(struct decode *d, bool *assistant)
{
	const struct slice none = { NULL, 0 };
	struct json_reader *r = d->r;
	const size_t indent = r->indent, outer = 1 + indent * (r->depth + 1);
	const size_t inner = outer + indent, after = outer - indent;

	if (!json_may_guess(r) || r->depth + 2 > r->limits.depth_max ||
	    (size_t)(r->end - r->at) < ROOM_LINES + 2 * (outer + inner))
		return none;
	const char *from = text_of_lines(r->at, outer, inner, assistant);
	if (from == NULL)
		return none;
	const char *quote = reader_string_end(r, from);
	if (quote == NULL || (size_t)(r->end - quote) < ROOM_LINES + outer)
		return none;
	const char *brace = quote + 1 + outer, *end = brace + 1 + after;
	if (!isa_line(quote + 1, outer) || *brace != '}' || !isa_line(brace + 1, after) ||
	    *end != '}')
		return none;
	r->at = end + 1;
	return slice_of(from, (size_t)(quote - from));
}

/* The inside of the string in a message that is nothing but a role and a text, as most are: then
 * r->at is behind it. Absent: it is another one, nothing happened, or the reader has failed. */
static inline struct slice guess_text_message(struct decode *d, bool *assistant)
{
	enum { ROOM = 56 };
	const struct slice none = { NULL, 0 };
	struct json_reader *r = d->r;

	if (r->end - r->at < ROOM || !json_may_guess(r) || r->depth + 2 > r->limits.depth_max)
		return none;
	const char *from = text_of_message(r->at, assistant);
	if (from == NULL)
		return none;
	const char *quote = reader_string_end(r, from);
	if (quote == NULL || r->end - quote < 3 || quote[1] != '}' || quote[2] != '}')
		return none;
	r->at = quote + 3;
	return slice_of(from, (size_t)(quote - from));
}

/* read_message where the message is not a compact one with nothing but a role and a text. */
static SCAN_RARE bool read_other_message(struct decode *d)
{
	const uint32_t first = d->blocks.count;
	bool assistant = false;

	if (d->r->indent != 0) {
		struct slice text = guess_lines_message(d, &assistant);
		if (!slice_absent(text))
			return block_add_text(d, false, text) && add_message(d, assistant, first);
	}
	if (json_here(d->r) != JSON_OBJECT)
		return decode_refuse_here(d, ERR_MESSAGES, "a message must be an object");
	return read_message_members(d, &assistant) && add_message(d, assistant, first);
}

static bool read_message(struct decode *d)
{
	const uint32_t first = d->blocks.count;
	bool assistant = false;

	if (d->messages.count >= d->limits->messages_max)
		return decode_refuse_here(d, ERR_MESSAGES, "messages has too many entries");
	struct slice text = guess_text_message(d, &assistant);
	if (slice_absent(text))
		return read_other_message(d);
	return block_add_text(d, false, text) && add_message(d, assistant, first);
}

bool decode_messages(struct decode *d)
{
	if (json_here(d->r) != JSON_ARRAY)
		return decode_refuse_here(d, ERR_MESSAGES, NULL);
	const char *at = d->r->at;
	(void)json_begin(d->r);
	while (json_next(d->r))
		if (!read_message(d))
			return decode_in_item(d, d->messages.count);
	if (!decode_good(d))
		return false;
	return d->messages.count != 0 || decode_refuse(d, ERR_MESSAGES_EMPTY, at, NULL);
}
