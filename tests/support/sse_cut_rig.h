/* sse_cut_rig.h - drives the cutter of event streams and writes down what it says. */
#ifndef TESTS_SUPPORT_SSE_CUT_RIG_H
#define TESTS_SUPPORT_SSE_CUT_RIG_H

#include "codec/base/slice.h"

struct sse_cut_told {
	char *events; /* "name|data\n" of each event that has data and was not passed in parts; name "-" if absent */
	char *cursors; /* "id|retry\n" of each event that has one of them; "-" if absent */
	size_t events_len, cursors_len;
	size_t rest;  /* bytes that were not given out at the end */
	size_t parts; /* pieces of events that were passed */
};

/* Feeds `stream` in reads of `step` bytes; what is kept lies in a block of exactly its size. `pass`: an event that is
 * unfinished after a read passes in parts. must() holds that what is given out, and the rest, are the stream, and that
 * what is peeked of an event is the front of its data. */
void sse_cut_rig_run(struct slice stream, size_t step, bool pass, struct sse_cut_told *out);
void sse_cut_rig_free(struct sse_cut_told *told);

#endif
