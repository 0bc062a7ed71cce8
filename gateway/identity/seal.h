/* seal.h - small texts that callers keep for the gateway: encrypted, and good only for the purpose that they were
 * sealed for.
 *
 * A sealed text is base64url(version | key id | nonce | ciphertext | tag). The cipher is XAES-256-GCM (c2sp.org): the
 * nonce has 192 bits, of which the first half derives a key of AES-256-GCM and the second half is its nonce. With the
 * 96 bits of plain AES-GCM, random nonces are good for 2^32 texts of a secret; a busy fleet seals so many in days, and
 * one nonce that occurs twice allows forgery. Here 2^80 texts are. It costs two more blocks of AES and a key schedule.
 *
 * A secret's cipher key and its key id are derived by HKDF-SHA256, once. The first secret seals, all of them open: a
 * new secret is added last at all gateways, then put first, and an old one is removed when its texts have expired.
 *
 * One per worker: one thread. No call allocates memory but from the arena. */
#ifndef GATEWAY_IDENTITY_SEAL_H
#define GATEWAY_IDENTITY_SEAL_H

#include "codec/base/arena.h"
#include "codec/base/err.h"
#include "gateway/base/seal_secret.h"

enum {
	SEAL_PLAIN_MAX = 256 << 10, /* bytes of a text before it is sealed */
	SEAL_OVERHEAD = 1 + 4 + 24 + 16,
};

/* Characters of the sealed form of so many bytes. */
#define SEAL_TEXT_LEN(plain) ((((plain) + SEAL_OVERHEAD) * 4 + 2) / 3)

struct seal;

/* `count` secrets, at least 1 and at most SEAL_SECRETS_MAX; copied. NULL: memory. */
struct seal *seal_new(const struct seal_secret *secrets, uint32_t count);
/* Overwrites the keys. NULL is fine. */
void seal_free(struct seal *seal);

/* Seals `plain` for `purpose`, which is authenticated and not part of the text. *text lies in `into`: visible ASCII,
 * SEAL_TEXT_LEN(plain.len) characters. ERR_BODY_TOO_LARGE: more than SEAL_PLAIN_MAX bytes; ERR_BUSY: no memory. */
MUST_USE enum err seal_close(struct seal *seal, struct slice purpose, struct slice plain,
			     struct arena *into, struct slice *text);

/* The bytes that were sealed for `purpose`, in `into`; at least one byte is readable behind an empty one. ERR_BUSY: no
 * memory. ERR_SESSION_UNKNOWN: the text is not one that any of the secrets sealed for that purpose. */
MUST_USE enum err seal_open(struct seal *seal, struct slice purpose, struct slice text,
			    struct arena *into, struct slice *plain);

#endif
