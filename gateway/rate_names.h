/* rate_names.h - the headers by which providers tell what a key may still use (contract/providers.md 2, 3). */
#ifndef GATEWAY_RATE_NAMES_H
#define GATEWAY_RATE_NAMES_H

#include "codec/base/slice.h"

enum rate_field { RATE_LIMIT, RATE_REMAINING, RATE_RESET, RATE_FIELDS };

/* The kind (enum rate_kind, codec/dialect.h) and field that a header of that name fills; ASCII case is
 * ignored. False: it is none of them. */
bool rate_name_find(struct slice name, uint32_t *kind, enum rate_field *field);

#endif
