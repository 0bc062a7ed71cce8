/* tls_names.h - who a caller says it is by its certificate, which was verified. */
#ifndef GATEWAY_TLS_TLS_NAMES_H
#define GATEWAY_TLS_TLS_NAMES_H

#include "codec/base/slice.h"
#include "gateway/base/tls_name_kind.h"

#include <stdint.h>

struct ssl_st;

enum {
	TLS_NAMES_MAX = 32, /* a certificate with more, or with longer ones, names nobody */
	TLS_NAME_LEN_MAX = 512
};

struct tls_name {
	enum tls_name_kind kind;
	struct slice text; /* visible ASCII; DNS in lower case */
};

struct tls_names {
	uint64_t good_until_s; /* wall clock; at that second the certificate has expired */
	size_t count;          /* at least 1 */
	struct tls_name at[];
};

/* The subject alternative names of the peer's certificate after a handshake, a resumed one too; the
 * caller's. NULL when none was shown or it says nothing, when it has expired since it was verified,
 * and when memory is refused. A connection may outlive its certificate: whoever asks looks at good_until_s. The common name is not looked at (RFC 9525 2). */
struct tls_names *tls_names_of(struct ssl_st *ssl);
/* Accepts NULL. */
void tls_names_free(struct tls_names *names);

#endif
