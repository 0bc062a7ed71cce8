/* answer_field.h - what a flow's answer says in its headers. */
#ifndef TESTS_SUPPORT_ANSWER_FIELD_H
#define TESTS_SUPPORT_ANSWER_FIELD_H

#include "gateway/flow/flow.h"

/* The value of the header `name`; absent when the answer has none. */
static inline struct slice answer_field(const struct flow_answer *answer, struct slice name)
{
	for (size_t i = 0; i < answer->field_count; i++)
		if (slice_eq(answer->fields[i].name, name))
			return answer->fields[i].value;
	return (struct slice){ NULL, 0 };
}

#endif
