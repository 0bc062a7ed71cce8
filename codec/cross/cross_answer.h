/* cross_answer.h - what whole answers and streams say alike; private to codec/cross. */
#ifndef CODEC_CROSS_CROSS_ANSWER_H
#define CODEC_CROSS_CROSS_ANSWER_H

#include "codec/cross/cross.h"

/* The API's word for why an answer has ended; static. */
const char *cross_stop(enum api api, const struct sampling_result *result, bool schema);

/* The object of the member `usage`. */
void cross_usage(struct gather *g, enum api api, const struct cross_names *names,
		 const struct usage *usage);

#endif
