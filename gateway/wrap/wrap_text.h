/* wrap_text.h - bytes that grow. Zero is an empty one.
 *
 * A wrapper without memory cannot keep its promise that each request has an answer: it says so on stderr and
 * ends, and its child with it. So nothing here fails. */
#ifndef GATEWAY_WRAP_WRAP_TEXT_H
#define GATEWAY_WRAP_WRAP_TEXT_H

#include "codec/base/attr.h"
#include "codec/base/slice.h"

struct wrap_text {
	char *at; /* NULL: nothing was added yet */
	size_t len, room;
};

/* Says that there is none, and ends the process. */
_Noreturn void wrap_no_memory(void);

/* malloc and realloc that end the process instead of returning NULL. `bytes` is not 0. */
void *wrap_alloc(size_t bytes);
void *wrap_realloc(void *old, size_t bytes);

/* At least `bytes` behind the end may be written to by the caller, who then adds to `len`. */
char *wrap_text_room(struct wrap_text *text, size_t bytes);
void wrap_text_add(struct wrap_text *text, struct slice bytes);
void wrap_text_put(struct wrap_text *text, const char *literal);
void wrap_text_print(struct wrap_text *text, const char *format, ...) PRINTF_LIKE(2, 3);

/* JSON, on one line: CR and LF become spaces. They can only stand between its tokens. */
void wrap_text_add_json(struct wrap_text *text, struct slice json);

/* A plain text as a JSON string, in quotes; control characters become spaces. */
void wrap_text_add_string(struct wrap_text *text, const char *plain);

/* What was there is forgotten, and `bytes` is there instead; they must not be the text's own. */
void wrap_text_set(struct wrap_text *text, struct slice bytes);

struct slice wrap_text_slice(const struct wrap_text *text);

/* Empty again, without memory. */
void wrap_text_free(struct wrap_text *text);

#endif
