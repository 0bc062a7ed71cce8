/* answer_field.h - what an answer says in its headers. */
#ifndef TESTS_SUPPORT_ANSWER_FIELD_H
#define TESTS_SUPPORT_ANSWER_FIELD_H

#include "gateway/front/rpc/rpc.h"

/* The value of the header `name`; absent when the answer has none. */
static inline struct slice answer_field(const struct rpc_answer *answer, struct slice name)
{
	for (size_t i = 0; i < answer->field_count; i++)
		if (slice_eq(answer->fields[i].name, name))
			return answer->fields[i].value;
	return (struct slice){ NULL, 0 };
}

#endif
