#include "codec/dialect/dialect.h"

#include "codec/base/attr.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void a_model_thinks_as_its_body_says_or_as_such_models_do(void **state)
{
	static const struct {
		const char *body;
		bool reasoning, effort_none, tools, thinks;
	} rows[] = {
		{ "", false, false, false, false },
		{ "", true, false, false, true },
		{ "", true, true, false, true },
		{ "", true, true, true, false },
		{ "\"top_k\": 3", true, false, false, true },
		{ "\"top_k\": 3", false, false, false, false },
		{ "\"reasoning_effort\": \"high\"", false, false, false, true },
		{ "\"reasoning_effort\": \"high\", \"logprobs\": false", false, false, false,
		  true },
		{ "\"reasoning_effort\": \"none\"", true, false, false, false },
		{ "\"reasoning\": {\"effort\": \"medium\"}", false, true, true, true },
		{ "\"reasoning\": {\"enabled\": false}", true, false, false, false },
		{ "\"thinking\": {\"type\": \"adaptive\"}", false, false, false, true },
		{ "\"thinking\":{\"type\":\"disabled\"}", true, false, false, false },
		{ "\"enable_thinking\": true", false, false, false, true },
		{ "\"enable_thinking\": false", true, false, false, false },
		{ "\"thinking_budget\": 0", true, false, false, false },
		{ "\"chat_template_kwargs\": {\"enable_thinking\": true}", false, false, false,
		  true },
		{ "\"think\": null", true, false, false, false },
		{ "\"user\": \"reason\"", false, false, false, false },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const struct profile profile = { .body = slice_str(rows[i].body),
						 .reasoning = rows[i].reasoning,
						 .tools_need_effort_none = rows[i].effort_none };
		if (profile_thinks(&profile, rows[i].tools) != rows[i].thinks)
			fail_msg("row %zu: %s", i, rows[i].body);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_model_thinks_as_its_body_says_or_as_such_models_do),
	};
	return cmocka_run_group_tests_name("dialect_thinking", tests, NULL, NULL);
}
