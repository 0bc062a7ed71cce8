/* base64url.h - base64url without padding, as tokens and their keys are written (RFC 4648 5, RFC 7515 2).
 *
 * Strict: one text for each run of bytes, so that a token cannot be written in several ways. */
#ifndef TENANTS_BASE64URL_H
#define TENANTS_BASE64URL_H

#include "codec/base/slice.h"

/* Decodes `text` into `out`; the number of bytes. SIZE_MAX when a character is outside of the alphabet
 * (padding is), when bits are left over that are not 0, and when it takes more than `room` bytes. */
size_t base64url_decode(struct slice text, void *out, size_t room);

#endif
