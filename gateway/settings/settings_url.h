/* settings_url.h - URLs of endpoints and addresses of listeners, taken apart.
 *
 * Private to settings*.c and their tests. Slices point into the text. */
#ifndef GATEWAY_SETTINGS_SETTINGS_URL_H
#define GATEWAY_SETTINGS_SETTINGS_URL_H

#include "codec/base/slice.h"

#include <stdbool.h>
#include <stdint.h>

struct url_parts {
	bool tls, ipv6;
	struct slice host; /* without brackets */
	uint16_t port;
	struct slice path;  /* without trailing slashes; may be empty */
	struct slice query; /* with its '?'; empty where there is none */
};

/* NULL when `url` is an http or https URL that names a host; else what is wrong and what would be
 * right (static, and nothing of the URL in it: it may hold a password). */
const char *url_parse(struct slice url, struct url_parts *out);

/* The same where the path is taken to the letter, trailing slashes and all, and may be followed by a query. */
const char *url_parse_exact(struct slice url, struct url_parts *out);

/* The same for "IP:PORT"; IPv6 in brackets. */
const char *address_parse(struct slice address, struct slice *host, uint16_t *port);

/* Of a Redis: redis://, rediss://, unix://. */
struct redis_url_parts {
	bool tls;
	struct slice user, password; /* as written, %XX and all; absent: none */
	struct slice host;           /* absent with unix:// */
	uint16_t port;
	struct slice path; /* of unix:// */
	uint32_t database;
};

/* NULL, or what is wrong, as url_parse says it. */
const char *redis_url_parse(struct slice url, struct redis_url_parts *out);

/* Undoes %XX into `out`, which has room for text.len bytes; the length, or SIZE_MAX when a % is not
 * followed by two hex digits. */
size_t url_unescape(struct slice text, char *out);

#endif
