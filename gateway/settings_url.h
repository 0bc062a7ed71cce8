/* settings_url.h - URLs of endpoints and addresses of listeners, taken apart.
 *
 * Private to settings*.c and their tests. Slices point into the text. */
#ifndef GATEWAY_SETTINGS_URL_H
#define GATEWAY_SETTINGS_URL_H

#include "codec/base/slice.h"

#include <stdbool.h>
#include <stdint.h>

struct url_parts {
	bool tls, ipv6;
	struct slice host; /* without brackets */
	uint16_t port;
	struct slice path; /* without trailing slashes; may be empty */
};

/* NULL when `url` is an http or https URL that names a host; else what is wrong and what would be
 * right (static, and nothing of the URL in it: it may hold a password). */
const char *url_parse(struct slice url, struct url_parts *out);

/* The same for "IP:PORT"; IPv6 in brackets. */
const char *address_parse(struct slice address, struct slice *host, uint16_t *port);

#endif
