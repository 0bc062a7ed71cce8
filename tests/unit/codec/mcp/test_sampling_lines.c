/* Requests by lines, as json.dumps(indent=...) writes them: what is guessed there means what is read otherwise. */
#include "tests/unit/codec/mcp/sampling_rig.h"

#include <string.h>

#define TEXT(role, text) \
	"{\"role\":\"" role "\",\"content\":{\"type\":\"text\",\"text\":\"" text "\"}}"

/* `compact` with its white space as json.dumps(indent=...) has it, but for `odd`, the number of a line that is
 * indented by one byte more; returns the count of lines. */
static unsigned by_lines(const char *compact, unsigned indent, unsigned odd, char *out)
{
	unsigned depth = 0, lines = 0;
	bool quoted = false;

	for (const char *at = compact; *at != '\0'; at++) {
		bool line = false;
		quoted ^= *at == '"';
		if (!quoted && (*at == '}' || *at == ']') && at[-1] != '[' && at[-1] != '{') {
			depth--;
			out += sprintf(out, "\n%*s", (int)(indent * depth + (++lines == odd)), "");
		} else if (!quoted && (*at == '}' || *at == ']')) {
			depth--;
		}
		*out++ = *at;
		if (quoted)
			continue;
		if (*at == '{' || *at == '[') {
			depth++;
			line = at[1] != '}' && at[1] != ']';
		} else if (*at == ':') {
			*out++ = ' ';
		}
		if (line || *at == ',')
			out += sprintf(out, "\n%*s", (int)(indent * depth + (++lines == odd)), "");
	}
	*out = '\0';
	return lines;
}

static void lines_of_any_indentation_mean_the_same(void **state)
{
	struct rig *rig = *state;
	static const char compact[] =
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"sampling/createMessage\","
		"\"params\":{\"messages\":[" TEXT("user", "hi") "," TEXT(
			"assistant",
			"a") ","
			     "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"b\"}]}"
			     "," TEXT("assistant",
				      "c") ","
					   "{\"role\":\"user\",\"content\":{\"type\":\"text\","
					   "\"text\":\"d\",\"x\":[]}}],"
					   "\"modelPreferences\":{\"hints\":[]},\"maxTokens\":5}}";
	char text[4096];

	for (unsigned indent = 0; indent <= 9; indent++) {
		const unsigned lines = by_lines(compact, indent, 0, text);
		for (unsigned odd = 0; odd <= lines; odd++) {
			(void)by_lines(compact, indent, odd, text);
			struct slice all = rig_body(rig, text, "", "");
			assert_ok(rig_read(rig, all, REVISION_2025_11_25));
			const struct sampling_request *q = &rig->request;
			assert_int_equal(q->message_count, 5);
			for (uint32_t i = 0; i < 5; i++) {
				assert_int_equal(q->messages[i].assistant, i % 2);
				assert_int_equal(q->messages[i].count, 1);
			}
			assert_slice(q->blocks[0].text.text, "hi");
			assert_slice(q->blocks[1].text.text, "a");
			assert_slice(q->blocks[2].text.text, "b");
			assert_slice(q->blocks[3].text.text, "c");
			assert_slice(q->blocks[4].text.text, "d");
			assert_int_equal(q->max_tokens, 5);
		}
		for (size_t at = 0; at < strlen(text); at++) {
			const char kept = text[at];
			if (strchr("{}[],:", kept) == NULL)
				continue;
			text[at] = ';';
			assert_int_equal(
				rig_read(rig, rig_body(rig, text, "", ""), REVISION_2025_11_25),
				ERR_JSON);
			assert_int_equal(rig->fault.offset, at);
			text[at] = kept;
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(lines_of_any_indentation_mean_the_same),
	};
	return cmocka_run_group_tests_name("sampling_lines", tests, NULL, NULL);
}
