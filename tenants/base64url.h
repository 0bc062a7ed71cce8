/* base64url.h - base64url without padding, as tokens and their keys are written (RFC 4648 5, RFC 7515 2).
 *
 * Strict: one text for each run of bytes, so that a token cannot be written in several ways. */
#ifndef TENANTS_BASE64URL_H
#define TENANTS_BASE64URL_H

#include "codec/base/slice.h"

/* Decodes `text` into `out`; the number of bytes. SIZE_MAX when a character is outside of the alphabet
 * (padding is), when bits are left over that are not 0, and when it takes more than `room` bytes. */
size_t base64url_decode(struct slice text, void *out, size_t room);

/* Characters that `len` bytes become. */
static inline size_t base64url_len(size_t len)
{
	return len / 3 * 4 + (len % 3 * 4 + 2) / 3;
}

/* Writes base64url_len(len) characters to `out`, no NUL. */
void base64url_encode(const void *bytes, size_t len, char *out);

#endif
