/* header_text.h - what the lines of an HTTP/1.1 head may consist of (RFC 9110 5.1, 5.5, 5.6.2). Pure. */
#ifndef GATEWAY_BASE_HEADER_TEXT_H
#define GATEWAY_BASE_HEADER_TEXT_H

#include "codec/base/slice.h"

/* field-content: visible, blank or not ASCII; so neither CR nor NUL. An empty one is. */
bool header_text_is_value(struct slice s);

/* The first byte of [at, end) that may not stand in a value; or the end. */
const char *header_text_end(const char *at, const char *end);

/* A token, as a header's name is; an empty one is none. */
bool header_text_is_name(struct slice s);

#endif
