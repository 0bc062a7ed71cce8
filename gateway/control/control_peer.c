#include "gateway/control/control_peer.h"

#include "codec/base/must.h"
#include "gateway/control/control_dns.h"
#include "gateway/tls/tls.h"

#include <arpa/inet.h>
#include <stdlib.h>

struct slice place_copy(struct slice s)
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
static void take_literal(struct place *place)
{
	struct upstream_address *out = &place->addresses[0];
	struct sockaddr_in *v4 = (struct sockaddr_in *)&out->address;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&out->address;

	if (inet_pton(AF_INET, place->host, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		out->len = sizeof(*v4);
	} else if (inet_pton(AF_INET6, place->host, &v6->sin6_addr) == 1) {
		v6->sin6_family = AF_INET6;
		out->len = sizeof(*v6);
	} else {
		return;
	}
	control_dns_port(out, place->port);
	place->address_count = 1;
	place->resolved = true;
}

bool place_init(struct place *place, const struct endpoint *endpoint)
{
	*place = (struct place){
		.url = place_copy(endpoint->url),
		.authority = place_copy(endpoint->authority),
		.ca_pem = place_copy(endpoint->ca_pem),
		.host = strndup(endpoint->host.at, endpoint->host.len),
		.port = endpoint->port,
		.tls = endpoint->tls,
	};
	if (slice_absent(place->url) || slice_absent(place->authority) ||
	    slice_absent(place->ca_pem) != slice_absent(endpoint->ca_pem) || place->host == NULL) {
		place_fini(place);
		return false;
	}
	take_literal(place);
	return true;
}

void place_fini(struct place *place)
{
	const struct slice texts[] = { place->url, place->authority, place->ca_pem };

	tls_client_free(place->ctx);
	for (size_t i = 0; i < COUNT_OF(texts); i++)
		free((void *)(uintptr_t)texts[i].at);
	free(place->host);
	*place = (struct place){ .host = NULL };
}

bool place_resolved(struct place *place, struct slice host,
		    const struct upstream_address *addresses, uint32_t count)
{
	const bool none = place->address_count == 0;

	if (!slice_eq(slice_str(place->host), host))
		return false;
	place->address_count = count < PLACE_ADDRESSES_MAX ? count : PLACE_ADDRESSES_MAX;
	for (uint32_t i = 0; i < place->address_count; i++) {
		place->addresses[i] = addresses[i];
		control_dns_port(&place->addresses[i], place->port);
	}
	place->resolved = true;
	return none && place->address_count != 0;
}

const char *place_ask(struct place *place, struct fetch_ask *ask, char *problem, size_t room)
{
	must(place->host != NULL);
	if (place->address_count == 0)
		return "its host has no address";
	if (place->tls && place->ctx == NULL) {
		place->ctx = tls_client_new(place->host, place->ca_pem, problem, room);
		if (place->ctx == NULL)
			return problem;
	}
	ask->host = place->host;
	ask->authority = place->authority;
	ask->tls = place->ctx;
	ask->addresses = place->addresses;
	ask->address_count = place->address_count;
	return NULL;
}
