/* http_h2o_fields.c - the headers of a request for http.h: from libh2o's list, or from a head that only the guard has
 * read. */
#include "gateway/http/http_h2o_exchange.h"
#include "gateway/http/http_h2o_parts.h"

/* Host, Content-Length, Transfer-Encoding, Expect and Upgrade: over HTTP/1.1 libh2o leaves them out of its list. */
static bool is_of_framing(const h2o_token_t *token)
{
	return token->is_init_header_special;
}

static bool next_in_list(const h2o_headers_t *list, size_t *at, struct http_field *field)
{
	while (*at < list->size) {
		const h2o_header_t *header = &list->entries[(*at)++];
		if (h2o_iovec_is_token(header->name) &&
		    is_of_framing(CONTAINER_OF(header->name, h2o_token_t, buf)))
			continue;
		*field = (struct http_field){ to_slice(*header->name),
					      slice_trim(to_slice(header->value)) };
		return true;
	}
	return false;
}

struct slice exchange_next_line(struct slice *rest)
{
	const struct slice line = slice_cut(rest, '\n');

	return slice_of(line.at, line.len == 0 ? 0 : line.len - 1);
}

static bool next_in_head(struct slice head, size_t *at, struct http_field *field)
{
	struct slice rest = slice_of(head.at + *at, head.len - *at);

	for (struct slice line; (line = exchange_next_line(&rest)).len != 0;) {
		const struct slice name = slice_cut(&line, ':');
		const h2o_token_t *token = h2o_lookup_token(name.at, name.len);
		if (token != NULL && is_of_framing(token))
			continue;
		*at = head.len - rest.len;
		*field = (struct http_field){ name, slice_trim(line) };
		return true;
	}
	return false;
}

bool http_next_header(const struct http_incoming *in, size_t *at, struct http_field *field)
{
	if (in->early)
		return next_in_head(*(const struct slice *)in->fields, at, field);
	return next_in_list(in->fields, at, field);
}

/* Asked several times for one request. */
static struct slice find_in_list(const h2o_headers_t *list, struct slice name)
{
	for (size_t i = 0; i < list->size; i++)
		if (slice_eq(to_slice(*list->entries[i].name), name))
			return slice_trim(to_slice(list->entries[i].value));
	return slice_of(NULL, 0);
}

struct slice http_find_header(const struct http_incoming *in, struct slice name)
{
	struct http_field field;
	size_t at = 0;

	if (!in->early)
		return find_in_list(in->fields, name);
	while (http_next_header(in, &at, &field))
		if (slice_eq(field.name, name))
			return field.value;
	return slice_of(NULL, 0);
}
