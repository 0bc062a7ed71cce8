/* attr.h - compiler attributes and the two macros that every folder needs. */
#ifndef CODEC_BASE_ATTR_H
#define CODEC_BASE_ATTR_H

#include <stddef.h>

#define MUST_USE __attribute__((warn_unused_result))
#define PRINTF_LIKE(text, first) __attribute__((format(printf, text, first)))
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* The object of type `type` whose member `member` lives at `ptr`; ptr must not be NULL. */
#define CONTAINER_OF(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

#endif
