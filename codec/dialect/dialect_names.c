#include "codec/dialect/dialect_names.h"

#include "codec/base/must.h"
#include "codec/base/sha256.h"
#include "codec/dialect/dialect_text.h"

enum {
	NAMES_FIRST = 8,
	NAME_MAX_LEN = 64,
	ALIAS_HEX = 8,
	ID_HEX = 24,
	OPENAI_ID_MAX = 40,
	MISTRAL_ID_LEN = 9,
	SUFFIX_MAX = 2 + 10, /* __ and a uint32_t */
};

static const struct slice nothing = { NULL, 0 };

/* ---- tools ---- */

static bool is_name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '-';
}

enum { NAME_BLOCK = 16 };

/* The same for a block; the compiler's own vectors. */
static inline bool block_is_name(const char *at)
{
	typedef unsigned char bytes __attribute__((vector_size(NAME_BLOCK)));
	typedef signed char numbers __attribute__((vector_size(NAME_BLOCK)));
	typedef uint64_t words __attribute__((vector_size(NAME_BLOCK)));
	bytes block;

	(void)memcpy(&block, at, sizeof(block));
	/* vectors are compared as signed: the first letter and the first digit become the least number */
	const numbers letter = (numbers)((block | 0x20) - ('a' + 128)),
		      digit = (numbers)(block - ('0' + 128));
	words good = (words)((letter < -128 + 26) | (digit < -128 + 10) | (numbers)(block == '_') |
			     (numbers)(block == '-'));
	return (good[0] & good[1]) == UINT64_MAX;
}

static bool all_name_chars(struct slice s)
{
	if (s.len >= NAME_BLOCK) { /* the last block may have bytes of the one before */
		const char *last = s.at + s.len - NAME_BLOCK;
		for (const char *at = s.at;; at += NAME_BLOCK) {
			if (at > last)
				at = last;
			if (!block_is_name(at))
				return false;
			if (at == last)
				return true;
		}
	}
	for (size_t i = 0; i < s.len; i++)
		if (!is_name_char(s.at[i]))
			return false;
	return s.len != 0;
}

struct slice name_alias(struct slice plain, char also, size_t kept, struct arena *into)
{
	char *alias = arena_take(into, kept + 1 + ALIAS_HEX);
	uint8_t digest[SHA256_BYTES];
	size_t len = 0;

	if (alias == NULL)
		return nothing;
	for (size_t i = 0; i < plain.len && len < kept; i++) {
		unsigned char c = (unsigned char)plain.at[i];
		if (c >= 0x80 && c < 0xc0)
			continue; /* inside a character that was counted */
		alias[len++] = is_name_char(plain.at[i]) || plain.at[i] == also ? plain.at[i] : '_';
		if (c >= 0xf0 && len < kept)
			alias[len++] = '_'; /* two units */
	}
	alias[len++] = '_';
	sha256(plain, digest);
	sha256_hex(digest, ALIAS_HEX, alias + len);
	return slice_of(alias, len + ALIAS_HEX);
}

static bool alias_add(struct tool_names *tools, struct slice alias, struct slice raw)
{
	if (tools->alias_count == tools->alias_cap) {
		uint32_t cap = tools->alias_cap == 0 ? NAMES_FIRST : 2 * tools->alias_cap;
		struct tool_alias *grown = arena_take(tools->known.into, cap * sizeof(*grown));
		if (grown == NULL)
			return false;
		if (tools->alias_count != 0)
			(void)memcpy(grown, tools->aliases, tools->alias_count * sizeof(*grown));
		tools->aliases = grown;
		tools->alias_cap = cap;
	}
	tools->aliases[tools->alias_count++] = (struct tool_alias){ .alias = alias, .name = raw };
	return true;
}

struct slice tool_name_sent(struct tool_names *tools, struct slice raw)
{
	if (raw.len <= NAME_MAX_LEN && all_name_chars(raw))
		return raw;
	struct slice plain = json_str_plain(raw, tools->known.into);
	if (slice_absent(plain))
		return nothing;
	if (plain.len <= NAME_MAX_LEN && all_name_chars(plain))
		return plain;
	uint32_t i = name_table_put(&tools->known, plain);
	if (i == NAME_NONE)
		return nothing;
	if (slice_absent(tools->known.entries[i].value)) {
		struct slice alias = name_alias(plain, '_', ALIAS_KEPT, tools->known.into);
		if (slice_absent(alias) || !alias_add(tools, alias, raw))
			return nothing;
		tools->known.entries[i].value = alias;
	}
	return tools->known.entries[i].value;
}

/* ---- calls ---- */

static struct slice with_suffix(struct slice id, uint32_t use, struct arena *into)
{
	char suffix[SUFFIX_MAX + 1] = "__", *at = suffix + sizeof(suffix);
	size_t digits = 0;

	for (; use != 0; use /= 10, digits++)
		*--at = (char)('0' + use % 10);
	(void)memmove(suffix + 2, at, digits);
	return text_join(into, id, slice_of(suffix, 2 + digits));
}

static struct slice hex_id(struct slice prefix, struct slice plain, struct arena *into)
{
	uint8_t digest[SHA256_BYTES];
	char hex[ID_HEX];

	sha256(plain, digest);
	sha256_hex(digest, ID_HEX, hex);
	return text_join(into, prefix, slice_of(hex, ID_HEX));
}

static bool is_mistral_id(struct slice s)
{
	for (size_t i = 0; i < s.len; i++)
		if (!is_name_char(s.at[i]) || s.at[i] == '_' || s.at[i] == '-')
			return false;
	return s.len == MISTRAL_ID_LEN;
}

static struct slice mistral_id(struct slice plain, struct arena *into)
{
	static const char digits[] = "0123456789"
				     "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "abcdefghijklmnopqrstuvwxyz";
	char *id = arena_take(into, MISTRAL_ID_LEN);
	uint8_t digest[SHA256_BYTES];

	if (id == NULL)
		return nothing;
	sha256(plain, digest);
	for (size_t i = 0; i < MISTRAL_ID_LEN; i++)
		id[i] = digits[digest[i] % (sizeof(digits) - 1)];
	return slice_of(id, MISTRAL_ID_LEN);
}

/* What the provider accepts for an id of that meaning; `raw` where it does. */
static struct slice id_sent(const struct call_ids *ids, struct slice raw, struct slice plain)
{
	struct arena *into = ids->known.into;

	switch (ids->rule) {
	case CALL_ID_ANTHROPIC:
		return all_name_chars(plain) ? plain : hex_id(SLICE("toolu_"), plain, into);
	case CALL_ID_OPENAI:
		return plain.len <= OPENAI_ID_MAX ? raw : hex_id(SLICE("call_"), plain, into);
	case CALL_ID_MISTRAL:
		return is_mistral_id(plain) ? plain : mistral_id(plain, into);
	case CALL_ID_ANY:
		break;
	}
	return raw;
}

struct slice call_id_use(struct call_ids *ids, struct slice raw)
{
	struct name_table *known = &ids->known;
	struct slice plain = json_str_plain(raw, known->into), sent_raw = raw, sent_plain = plain;
	uint32_t own = slice_absent(plain) ? NAME_NONE : name_table_put(known, plain), given = own;

	if (own == NAME_NONE)
		return nothing;
	/* id__2 may be an id of its own, so what was given before is passed over */
	for (;;) {
		uint32_t use = ++known->entries[own].uses;
		if (use > 1) {
			sent_raw = with_suffix(raw, use, known->into);
			sent_plain = with_suffix(plain, use, known->into);
			given = slice_absent(sent_raw) || slice_absent(sent_plain)
					? NAME_NONE
					: name_table_put(known, sent_plain);
		}
		if (given == NAME_NONE)
			return nothing;
		if (!known->entries[given].taken)
			break;
	}
	known->entries[given].taken = true;
	struct slice sent = id_sent(ids, sent_raw, sent_plain);
	known->entries[own].value = sent;
	return sent;
}

struct slice call_id_last(struct call_ids *ids, struct slice raw)
{
	struct slice plain = json_str_plain(raw, ids->known.into);

	if (slice_absent(plain))
		return nothing;
	uint32_t own = name_table_find(&ids->known, plain);
	must(own != NAME_NONE); /* sampling_read pairs every result with a call */
	return ids->known.entries[own].value;
}
