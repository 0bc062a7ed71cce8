/* tls_tickets.h - the keys of session tickets: one set for all workers, renewed every hour.
 *
 * They lie in memory that the supervisor makes before it forks, so that tickets are good across
 * workers, reloads and a crash of the server; they are on no disk and in no core file. New tickets are
 * sealed with the newest key, those of the one before are accepted still; what is older is a full
 * handshake, and its key is overwritten by the next. */
#ifndef GATEWAY_TLS_TLS_TICKETS_H
#define GATEWAY_TLS_TLS_TICKETS_H

#include "codec/base/attr.h"
#include "codec/base/clock.h"

#include <stdbool.h>
#include <stdint.h>

struct tls_tickets;

#define TLS_TICKET_HOUR (3600 * SEC)

struct tls_ticket_key {
	uint8_t name[16]; /* travels with the ticket */
	uint8_t cipher[32], mac[32];
};

/* With a first key, in memory that child processes share. NULL with errno. */
struct tls_tickets *tls_tickets_new(nsec_t now);
void tls_tickets_free(struct tls_tickets *tickets);

/* Makes a new key when the newest is an hour old (CLOCK_MONOTONIC); true if so. One thread of one
 * process calls this, while any number of others read. */
bool tls_tickets_turn(struct tls_tickets *tickets, nsec_t now);

/* The newest key. The copy is the caller's to wipe. */
void tls_tickets_newest(const struct tls_tickets *tickets, struct tls_ticket_key *out);

/* The key of that name if it is still good; *old: a newer one is there. */
MUST_USE bool tls_tickets_find(const struct tls_tickets *tickets, const uint8_t name[16],
			       struct tls_ticket_key *out, bool *old);

#endif
