/* What sampling_read notes of a schema (codec/json/schema_odd.h): nothing is missed, wherever the text ends. */
#include "codec/json/schema_odd.h"
#include "tests/unit/codec/mcp/sampling_rig.h"

#define HEAD                                                                                  \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"sampling/"                                \
	"createMessage\",\"params\":{\"maxTokens\":9,"                                        \
	"\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"hi\"}}]," \
	"\"tools\":[{\"name\":\"t\",\"inputSchema\":{\"type\":\"object\",\"properties\":"
#define TAIL "}}]}}"

/* What is noted of the one tool of a body that ends with `spaces` spaces. The body is no byte longer than it is. */
static uint8_t noted(struct rig *rig, const char *properties, size_t spaces)
{
	size_t len = strlen(HEAD TAIL) + strlen(properties) + spaces;
	char *text = malloc(len + 1);

	assert_non_null(text);
	(void)snprintf(text, len + 1, HEAD "%s" TAIL "%*s", properties, (int)spaces, "");
	char *exact = malloc(len);
	assert_non_null(exact);
	(void)memcpy(exact, text, len);
	free(text);
	arena_give(&rig->arena);
	assert_int_equal(rig_read(rig, slice_of(exact, len), REVISION_2025_11_25), ERR_OK);
	assert_int_equal(rig->request.tool_count, 1);
	uint8_t odd = rig->request.tools[0].odd;
	free(exact);
	return odd;
}

static void what_is_odd_in_a_schema_is_noted_wherever_the_text_ends(void **state)
{
	static const struct {
		const char *properties;
		uint8_t odd;
	} rows[] = {
		{ "{}", 0 },
		{ "{\"a\":{}}", 0 },
		{ "{\"a\":true}", 0 },
		{ "{\"a\":{\"type\":\"string\"}}", 0 },
		{ "{\"a\":{\"b\":{\"c\":[[],{},0,-1.5e3,true,false,\"x\"]}}}", 0 },
		{ "{\"a\":{\"default\":null}}", 0 },
		{ "{\"a\":{\"const\":null}}", 0 },
		{ "{\"a\":{\"enum\":[null]}}", 0 },
		{ "{\"a\":{\"type\":\"array\",\"items\":{}}}", 0 },
		{ "{\"a_9\":{},\"Z\":{\"properties\":{\"b\":{}}}}", 0 },
		{ "{\"\":{}}", SCHEMA_ODD_KEYS },
		{ "{\"a b\":{}}", SCHEMA_ODD_KEYS },
		{ "{\"\\u0061\":1}", SCHEMA_ODD_KEYS },
		{ "{\"a\":{\"properties\":{\"$\":{}}}}", SCHEMA_ODD_KEYS },
		{ "{\"a\":{\"properties\":{\"a b\":1}}}", SCHEMA_ODD_KEYS },
		{ "{\"0123456789012345678901234567890123456789012345678901234567890123!\":1}",
		  SCHEMA_ODD_KEYS },
		{ "{\"a\":{\"type\":\"array\"}}", SCHEMA_ODD_ARRAYS },
		{ "{\"a\":{\"x\":{\"type\":\"array\"}}}", SCHEMA_ODD_ARRAYS },
		{ "{\"a\":{\"x\":null}}", SCHEMA_ODD_NULLS },
		{ "{\"a\":null}", SCHEMA_ODD_NULLS },
		{ "{\"a b\":{\"x\":null,\"type\":\"array\"}}", SCHEMA_ODD_ALL },
	};
	struct rig *rig = *state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (size_t spaces = 0; spaces <= 64; spaces++) {
			const uint8_t odd = noted(rig, rows[i].properties, spaces);
			if ((odd & rows[i].odd) != rows[i].odd || (rows[i].odd == 0 && odd != 0))
				fail_msg("%s, %zu spaces: %u for %u", rows[i].properties, spaces,
					 odd, rows[i].odd);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(what_is_odd_in_a_schema_is_noted_wherever_the_text_ends),
	};
	return cmocka_run_group_tests_name("schema_odd", tests, NULL, NULL);
}
