/* control_peer.h - a host that the control thread asks over HTTP by itself: where it is, and whom to
 * trust there. Copies, because it outlives the configuration that named it. */
#ifndef GATEWAY_CONTROL_CONTROL_PEER_H
#define GATEWAY_CONTROL_CONTROL_PEER_H

#include "gateway/base/config.h"
#include "gateway/fetch/fetch.h"

enum { CONTROL_PEER_ADDRESSES_MAX = 8 };

struct control_peer {
	struct slice url, authority, ca_pem; /* NUL-terminated; ca_pem absent: the system's */
	char *host;
	uint16_t port;
	bool tls;
	struct upstream_address addresses[CONTROL_PEER_ADDRESSES_MAX];
	uint32_t address_count;
	bool resolved;          /* DNS has said something: there is a list, or none */
	struct ssl_ctx_st *ctx; /* of TLS; made when it is needed */
};

/* Text that is malloc'd and NUL-terminated; absent for the absent slice, and without memory. */
struct slice control_peer_copy(struct slice s);

/* Where `endpoint` is; one whose host is an address is resolved already. False: memory, and there is
 * nothing to be freed. */
MUST_USE bool control_peer_init(struct control_peer *peer, const struct endpoint *endpoint);
void control_peer_fini(struct control_peer *peer);

/* What DNS has found of a name (count 0: it is not known; ports are ignored); nothing for another's. Not
 * while a fetch reads the list. True: there was no address, and now there is. */
bool control_peer_resolved(struct control_peer *peer, struct slice host,
			   const struct upstream_address *addresses, uint32_t count);

/* NULL once it can be asked, with the fields of *ask that say where; else what is in the way, in words;
 * `problem` is room for them. */
const char *control_peer_ask(struct control_peer *peer, struct fetch_ask *ask, char *problem,
			     size_t room);

#endif
