/* tls_memory.h - a bound on what a stranger makes OpenSSL allocate.
 *
 * Up to 3.0.20, OpenSSL makes room for a message of the handshake as soon as it has seen the four bytes of its
 * header, as much as they claim: 131,396 bytes for a ClientHello of which nothing else need ever come. OpenSSL has
 * no setting for that, so the allocation is refused, and the handshake fails as for lack of memory. From 3.0.21 on
 * the room grows with what has come, 16 KiB ahead of it; the refusal is then met by a message that really is longer. */
#ifndef GATEWAY_TLS_TLS_MEMORY_H
#define GATEWAY_TLS_TLS_MEMORY_H

/* The largest message of a handshake that is read, in bytes: a ClientHello, or a list of certificates. */
enum { TLS_MESSAGE_MAX = 32 << 10 };

/* First of all in the process: says so on stderr and leaves things unbounded when OpenSSL has allocated
 * something already. */
void tls_memory_install(void);

/* From now on OpenSSL has no more in one piece, in this thread, than a message of TLS_MESSAGE_MAX takes. */
void tls_memory_bound(void);

#endif
