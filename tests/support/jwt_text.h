/* jwt_text.h - texts of tokens for tests, by an encoder of their own. */
#ifndef TESTS_SUPPORT_JWT_TEXT_H
#define TESTS_SUPPORT_JWT_TEXT_H

#include "codec/base/slice.h"

/* base64url without padding, NUL-terminated; to be freed. */
char *jwt_text_base64url(struct slice bytes);

/* "HEADER.CLAIMS", both encoded: what is signed. To be freed. */
char *jwt_text_input(const char *header, const char *claims);

/* input "." signature, encoded. To be freed. */
char *jwt_text_join(const char *input, struct slice signature);

#endif
