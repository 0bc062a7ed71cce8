/* golden_replay.h - what a vector remembers of earlier answers (`replay_store`, `replay_saved`), as records of
 * codec/dialect/replay.h. */
#ifndef TESTS_SUPPORT_GOLDEN_REPLAY_H
#define TESTS_SUPPORT_GOLDEN_REPLAY_H

#include "codec/dialect/dialect.h"
#include "tests/support/golden_set.h"

/* Sets in->provider, and in->replay where the vector has a store: each record as it would have been written
 * when nothing was lost yet; turns that are not in the store have lost theirs. All lies in the arena. */
void golden_remember(const struct vector *vector, struct json_work *work, struct arena *arena,
		     struct encode_in *in);

/* An entry of either member as the dialect keeps it: Anthropic's and Responses' list, or the members of a
 * message. Of one that is lost (NULL) something that the turn may have had. */
struct slice golden_replay_content(const struct vector *vector, struct arena *arena,
				   const struct json_tree *entry);

#endif
