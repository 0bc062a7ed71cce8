/* stream_cut.h - a stream fed in reads of any size. */
#ifndef TESTS_SUPPORT_STREAM_CUT_H
#define TESTS_SUPPORT_STREAM_CUT_H

#include "codec/dialect/stream.h"
#include "tests/support/json_tree.h"

/* Where the reads end. Zero-initialised: all in one read. */
struct stream_cut {
	const struct json_tree *sizes; /* numbers: of one read after the other; NULL: as below */
	size_t step;                   /* so many bytes a read; 0: as many as there are */
	size_t once;                   /* and here; 0: nowhere else */
};

/* Feeds all of it, whatever the states are. Every read has memory of its own and of exactly its size,
 * which is gone afterwards, so that ASan sees what looks past it or keeps it. The last state. */
enum stream_state stream_feed_cut(struct stream *s, struct slice body, struct stream_cut cut);

#endif
