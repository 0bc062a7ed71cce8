#include "gateway/control/control_peer.h"

#include "codec/base/must.h"
#include "gateway/control/control_dns.h"
#include "gateway/tls/tls.h"

#include <arpa/inet.h>
#include <stdlib.h>

struct slice control_peer_copy(struct slice s)
{
	if (slice_absent(s))
		return s;
	char *text = malloc(s.len + 1);
	if (text == NULL)
		return slice_of(NULL, 0);
	(void)memcpy(text, s.at, s.len);
	text[s.len] = '\0';
	return slice_of(text, s.len);
}

/* An address instead of a name is known already. */
static void take_literal(struct control_peer *peer)
{
	struct upstream_address *out = &peer->addresses[0];
	struct sockaddr_in *v4 = (struct sockaddr_in *)&out->address;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&out->address;

	if (inet_pton(AF_INET, peer->host, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		out->len = sizeof(*v4);
	} else if (inet_pton(AF_INET6, peer->host, &v6->sin6_addr) == 1) {
		v6->sin6_family = AF_INET6;
		out->len = sizeof(*v6);
	} else {
		return;
	}
	control_dns_port(out, peer->port);
	peer->address_count = 1;
	peer->resolved = true;
}

bool control_peer_init(struct control_peer *peer, const struct endpoint *endpoint)
{
	*peer = (struct control_peer){
		.url = control_peer_copy(endpoint->url),
		.authority = control_peer_copy(endpoint->authority),
		.ca_pem = control_peer_copy(endpoint->ca_pem),
		.host = strndup(endpoint->host.at, endpoint->host.len),
		.port = endpoint->port,
		.tls = endpoint->tls,
	};
	if (slice_absent(peer->url) || slice_absent(peer->authority) ||
	    slice_absent(peer->ca_pem) != slice_absent(endpoint->ca_pem) || peer->host == NULL) {
		control_peer_fini(peer);
		return false;
	}
	take_literal(peer);
	return true;
}

void control_peer_fini(struct control_peer *peer)
{
	const struct slice texts[] = { peer->url, peer->authority, peer->ca_pem };

	tls_client_free(peer->ctx);
	for (size_t i = 0; i < COUNT_OF(texts); i++)
		free((void *)(uintptr_t)texts[i].at);
	free(peer->host);
	*peer = (struct control_peer){ .host = NULL };
}

bool control_peer_resolved(struct control_peer *peer, struct slice host,
			   const struct upstream_address *addresses, uint32_t count)
{
	const bool none = peer->address_count == 0;

	if (!slice_eq(slice_str(peer->host), host))
		return false;
	peer->address_count =
		count < CONTROL_PEER_ADDRESSES_MAX ? count : CONTROL_PEER_ADDRESSES_MAX;
	for (uint32_t i = 0; i < peer->address_count; i++) {
		peer->addresses[i] = addresses[i];
		control_dns_port(&peer->addresses[i], peer->port);
	}
	peer->resolved = true;
	return none && peer->address_count != 0;
}

const char *control_peer_ask(struct control_peer *peer, struct fetch_ask *ask, char *problem,
			     size_t room)
{
	must(peer->host != NULL);
	if (peer->address_count == 0)
		return "its host has no address";
	if (peer->tls && peer->ctx == NULL) {
		peer->ctx = tls_client_new(peer->host, peer->ca_pem, problem, room);
		if (peer->ctx == NULL)
			return problem;
	}
	ask->host = peer->host;
	ask->authority = peer->authority;
	ask->tls = peer->ctx;
	ask->addresses = peer->addresses;
	ask->address_count = peer->address_count;
	return NULL;
}
