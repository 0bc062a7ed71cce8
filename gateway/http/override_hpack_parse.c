/* override_hpack_parse.c - the fields of a request over HTTP/2, in HPACK (RFC 7541).
 *
 * libh2o calls h2o_hpack_parse_headers by way of the dynamic linker, for which what a program defines comes
 * before what a library does, so that the one here is called instead of its own. (CMakeLists.txt asks the
 * linker for it by name: nothing of ours does.) libh2o's unpacks Huffman's code by half bytes, into memory
 * of malloc's also where it is not to be kept.
 *
 * The table of what a peer sent is libh2o's, who also frees it: names are its tokens or, like values,
 * counted objects that a struct h2o_iovec_t begins. What cannot be unpacked is an error of the connection; what
 * is malformed resets its stream; for a character that no field may have there is *err_desc,
 * which libh2o makes a 400 of. */
#include "gateway/http/http_h2o_parts.h"

#include <stdlib.h>
#include <string.h>

#include "gateway/base/header_text.h"
#include "gateway/http/hpack.h"

/* ---- the static table (appendix A) ---- */
/* H2O_TOKEN_... are constants, but by their addresses alone. */
struct known_field {
	const h2o_token_t *token;
	struct slice value;
};

#define FIELD(name, text)                          \
	{                                          \
		H2O_TOKEN_##name, SLICE_INIT(text) \
	}
static const struct known_field known_fields[] = {
	FIELD(AUTHORITY, ""),
	FIELD(METHOD, "GET"),
	FIELD(METHOD, "POST"),
	FIELD(PATH, "/"),
	FIELD(PATH, "/index.html"),
	FIELD(SCHEME, "http"),
	FIELD(SCHEME, "https"),
	FIELD(STATUS, "200"),
	FIELD(STATUS, "204"),
	FIELD(STATUS, "206"),
	FIELD(STATUS, "304"),
	FIELD(STATUS, "400"),
	FIELD(STATUS, "404"),
	FIELD(STATUS, "500"),
	FIELD(ACCEPT_CHARSET, ""),
	FIELD(ACCEPT_ENCODING, "gzip, deflate"),
	FIELD(ACCEPT_LANGUAGE, ""),
	FIELD(ACCEPT_RANGES, ""),
	FIELD(ACCEPT, ""),
	FIELD(ACCESS_CONTROL_ALLOW_ORIGIN, ""),
	FIELD(AGE, ""),
	FIELD(ALLOW, ""),
	FIELD(AUTHORIZATION, ""),
	FIELD(CACHE_CONTROL, ""),
	FIELD(CONTENT_DISPOSITION, ""),
	FIELD(CONTENT_ENCODING, ""),
	FIELD(CONTENT_LANGUAGE, ""),
	FIELD(CONTENT_LENGTH, ""),
	FIELD(CONTENT_LOCATION, ""),
	FIELD(CONTENT_RANGE, ""),
	FIELD(CONTENT_TYPE, ""),
	FIELD(COOKIE, ""),
	FIELD(DATE, ""),
	FIELD(ETAG, ""),
	FIELD(EXPECT, ""),
	FIELD(EXPIRES, ""),
	FIELD(FROM, ""),
	FIELD(HOST, ""),
	FIELD(IF_MATCH, ""),
	FIELD(IF_MODIFIED_SINCE, ""),
	FIELD(IF_NONE_MATCH, ""),
	FIELD(IF_RANGE, ""),
	FIELD(IF_UNMODIFIED_SINCE, ""),
	FIELD(LAST_MODIFIED, ""),
	FIELD(LINK, ""),
	FIELD(LOCATION, ""),
	FIELD(MAX_FORWARDS, ""),
	FIELD(PROXY_AUTHENTICATE, ""),
	FIELD(PROXY_AUTHORIZATION, ""),
	FIELD(RANGE, ""),
	FIELD(REFERER, ""),
	FIELD(REFRESH, ""),
	FIELD(RETRY_AFTER, ""),
	FIELD(SERVER, ""),
	FIELD(SET_COOKIE, ""),
	FIELD(STRICT_TRANSPORT_SECURITY, ""),
	FIELD(TRANSFER_ENCODING, ""),
	FIELD(USER_AGENT, ""),
	FIELD(VARY, ""),
	FIELD(VIA, ""),
	FIELD(WWW_AUTHENTICATE, ""),
};
#undef FIELD

enum { KNOWN_FIELDS = COUNT_OF(known_fields) };
_Static_assert(KNOWN_FIELDS == 61, "appendix A");

/* ---- the dynamic table (2.3.2) ---- */
enum { ENTRY_OVERHEAD = 32 }; /* 4.1 */
enum { ENTRIES_FIRST = 16 };

static void evict(h2o_hpack_header_table_t *table)
{
	h2o_hpack_header_table_entry_t *entry =
		h2o_hpack_header_table_get(table, --table->num_entries);

	table->hpack_size -= entry->name->len + entry->value->len + ENTRY_OVERHEAD;
	if (!h2o_iovec_is_token(entry->name))
		(void)h2o_mem_release_shared(entry->name);
	(void)h2o_mem_release_shared(entry->value);
	*entry = (h2o_hpack_header_table_entry_t){ .name = NULL };
}

static void fit(h2o_hpack_header_table_t *table, size_t size)
{
	while (table->num_entries != 0 && table->hpack_size > size)
		evict(table);
}

/* A ring that is full gets twice the room, its youngest entry first. */
static void grow(h2o_hpack_header_table_t *table)
{
	const size_t room = table->entry_capacity == 0 ? ENTRIES_FIRST : 2 * table->entry_capacity;
	h2o_hpack_header_table_entry_t *entries = h2o_mem_alloc(room * sizeof(*entries));

	(void)memset(entries, 0, room * sizeof(*entries));
	for (size_t i = 0; i < table->num_entries; i++)
		entries[i] = *h2o_hpack_header_table_get(table, i);
	free(table->entries);
	table->entries = entries;
	table->entry_capacity = room;
	table->entry_start_index = 0;
}

/* What is larger than the whole table empties it, and is no entry (4.4). `name` and `value` are counted
 * once more. */
static void enter(h2o_hpack_header_table_t *table, h2o_iovec_t *name, h2o_iovec_t *value,
		  const char *fault)
{
	const size_t size = name->len + value->len + ENTRY_OVERHEAD, room = table->hpack_capacity;

	fit(table, size < room ? room - size : 0);
	if (size > room)
		return;
	if (table->num_entries == table->entry_capacity)
		grow(table);
	table->num_entries++;
	table->hpack_size += size;
	table->entry_start_index =
		(table->entry_start_index + table->entry_capacity - 1) % table->entry_capacity;
	if (!h2o_iovec_is_token(name))
		h2o_mem_addref_shared(name);
	h2o_mem_addref_shared(value);
	table->entries[table->entry_start_index] =
		(h2o_hpack_header_table_entry_t){ name, value, fault };
}

/* ---- fields as they are read ---- */
/* What is read, lives as long as the request's pool, or is static. */
struct field {
	h2o_iovec_t *name; /* a token of libh2o's, or counted */
	h2o_iovec_t value;
	const char *fault; /* a character that no field may have; NULL: none */
};

struct reading {
	struct hpack_reader reader;
	h2o_hpack_header_table_t *table;
	h2o_mem_pool_t *pool;
	bool on; /* what is malformed is read to its end: the table is the connection's */
};

static const char upper_case[] = "found an upper-case letter in header name";
static const char bad_name[] = "found an invalid character in header name";
static const char bad_value[] = "found an invalid character in header value";

static h2o_iovec_t *token_name(const h2o_token_t *token)
{
	return (h2o_iovec_t *)(uintptr_t)&token->buf;
}

/* The entry of an index; NULL: there is none. The index is beyond the static table's. */
static const h2o_hpack_header_table_entry_t *entry_of(const struct reading *r, size_t index)
{
	const size_t nth = index - KNOWN_FIELDS - 1;

	return nth < r->table->num_entries ? h2o_hpack_header_table_get(r->table, nth) : NULL;
}

/* Unpacks or copies into `to`, which has room for it, and ends it with NUL. False: malformed. */
static bool write_text(const struct hpack_text *text, h2o_iovec_t *to)
{
	to->len = text->bytes.len;
	if (text->packed)
		to->len = hpack_unpack(text->bytes, to->base);
	else if (to->len != 0)
		(void)memcpy(to->base, text->bytes.at, to->len);
	if (to->len == SIZE_MAX)
		return false;
	to->base[to->len] = '\0';
	return true;
}

static size_t room_of(const struct hpack_text *text)
{
	return 1 + (text->packed ? hpack_unpacked_max(text->bytes.len) : text->bytes.len);
}

/* A string of the block as an object that the table can keep; NULL: malformed. */
static h2o_iovec_t *read_counted(struct reading *r)
{
	struct hpack_text text;

	if (!hpack_read_text(&r->reader, &text))
		return NULL;
	h2o_iovec_t *counted =
		h2o_mem_alloc_shared(r->pool, sizeof(*counted) + room_of(&text), NULL);
	counted->base = (char *)(counted + 1);
	return write_text(&text, counted) ? counted : NULL;
}

/* Names are lower case (RFC 9113 8.2); ":name" is judged by who knows which there are. */
static const char *fault_of_name(struct slice name)
{
	const bool pseudo = name.len != 0 && name.at[0] == ':';

	for (size_t i = 0; i < name.len && !pseudo; i++)
		if (name.at[i] >= 'A' && name.at[i] <= 'Z')
			return upper_case;
	return pseudo || header_text_is_name(name) ? NULL : bad_name;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static const char *fault_of_value(struct slice value)
{
	if (value.len == 0)
		return NULL;
	const bool padded =
		is_blank(value.at[0]) || is_blank(value.at[value.len - 1]); /* RFC 9113 8.2.1 */
	return !padded && header_text_is_value(value) ? NULL : bad_value;
}

static int read_new_name(struct reading *r, struct field *field)
{
	field->name = read_counted(r);
	if (field->name == NULL)
		return H2O_HTTP2_ERROR_COMPRESSION;
	field->fault = fault_of_name(to_slice(*field->name));
	if (field->fault == upper_case && !r->on)
		return H2O_HTTP2_ERROR_PROTOCOL;
	const h2o_token_t *token = h2o_lookup_token(field->name->base, field->name->len);
	if (token != NULL)
		field->name = token_name(token);
	return 0;
}

/* `index` has the name, or, if it is 0, the block. */
static int read_name(struct reading *r, size_t index, struct field *field)
{
	if (index == 0)
		return read_new_name(r, field);
	if (index <= KNOWN_FIELDS) {
		field->name = token_name(known_fields[index - 1].token);
		return 0;
	}
	const h2o_hpack_header_table_entry_t *entry = entry_of(r, index);
	if (entry == NULL)
		return H2O_HTTP2_ERROR_COMPRESSION;
	field->name = entry->name;
	field->fault = entry->err_desc == bad_name ? bad_name : NULL;
	if (!h2o_iovec_is_token(field->name))
		h2o_mem_link_shared(r->pool,
				    field->name); /* its entry may make room for this one */
	return 0;
}

/* 6.1 */
static int read_indexed(struct reading *r, struct field *field)
{
	const size_t index = hpack_read_int(&r->reader, 7);

	if (index == 0)
		return H2O_HTTP2_ERROR_COMPRESSION;
	if (index <= KNOWN_FIELDS) {
		const struct known_field *known = &known_fields[index - 1];
		field->name = token_name(known->token);
		field->value = h2o_iovec_init(known->value.at, known->value.len);
		return 0;
	}
	const h2o_hpack_header_table_entry_t *entry = entry_of(r, index);
	if (entry == NULL)
		return H2O_HTTP2_ERROR_COMPRESSION;
	*field = (struct field){ entry->name, *entry->value, entry->err_desc };
	if (!h2o_iovec_is_token(entry->name))
		h2o_mem_link_shared(r->pool, entry->name);
	h2o_mem_link_shared(r->pool, entry->value);
	return 0;
}

/* 6.2.2, 6.2.3 */
static int read_literal(struct reading *r, struct field *field)
{
	const size_t index = hpack_read_int(&r->reader, 4);
	struct hpack_text text;
	int err = read_name(r, index, field);

	if (err != 0)
		return err;
	if (!hpack_read_text(&r->reader, &text))
		return H2O_HTTP2_ERROR_COMPRESSION;
	field->value.base = h2o_mem_alloc_pool(r->pool, room_of(&text));
	if (!write_text(&text, &field->value))
		return H2O_HTTP2_ERROR_COMPRESSION;
	if (field->fault == NULL)
		field->fault = fault_of_value(to_slice(field->value));
	return 0;
}

/* 6.2.1 */
static int read_entered(struct reading *r, struct field *field)
{
	const size_t index = hpack_read_int(&r->reader, 6);
	int err = read_name(r, index, field);

	if (err != 0)
		return err;
	h2o_iovec_t *value = read_counted(r);
	if (value == NULL)
		return H2O_HTTP2_ERROR_COMPRESSION;
	field->value = *value;
	if (field->fault == NULL)
		field->fault = fault_of_value(to_slice(field->value));
	enter(r->table, field->name, value, field->fault);
	return 0;
}

static int read_field(struct reading *r, struct field *field)
{
	const uint8_t first = *r->reader.at;

	*field = (struct field){ .name = NULL };
	if ((first & 0x80) != 0)
		return read_indexed(r, field);
	if ((first & 0x40) != 0)
		return read_entered(r, field);
	if ((first & 0x20) != 0)
		return H2O_HTTP2_ERROR_COMPRESSION; /* a size, which is not at the beginning (4.2) */
	return read_literal(r, field);
}

/* 4.2, 6.3: sizes of the table, before the first field. */
static int read_sizes(struct reading *r)
{
	while (r->reader.at < r->reader.end && (*r->reader.at & 0xe0) == 0x20) {
		const size_t size = hpack_read_int(&r->reader, 5);
		if (size > r->table->hpack_max_capacity)
			return H2O_HTTP2_ERROR_COMPRESSION;
		r->table->hpack_capacity = size;
		fit(r->table, size);
	}
	return 0;
}

/* ---- what becomes of a field ---- */
static int take_once(h2o_iovec_t *slot, h2o_iovec_t value)
{
	if (slot->base != NULL)
		return H2O_HTTP2_ERROR_PROTOCOL;
	*slot = value;
	return 0;
}

/* RFC 9113 8.3.1; *seen is what libh2o wants to know of which there were. */
static int take_pseudo(h2o_req_t *req, const struct field *field, int *seen)
{
	if (field->name == token_name(H2O_TOKEN_AUTHORITY)) {
		*seen |= H2O_HPACK_PARSE_HEADERS_AUTHORITY_EXISTS;
		return take_once(&req->input.authority, field->value);
	}
	if (field->name == token_name(H2O_TOKEN_METHOD)) {
		*seen |= H2O_HPACK_PARSE_HEADERS_METHOD_EXISTS;
		return take_once(&req->input.method, field->value);
	}
	if (field->name == token_name(H2O_TOKEN_PATH)) {
		*seen |= H2O_HPACK_PARSE_HEADERS_PATH_EXISTS;
		return take_once(&req->input.path, field->value);
	}
	if (field->name != token_name(H2O_TOKEN_SCHEME) || req->input.scheme != NULL)
		return H2O_HTTP2_ERROR_PROTOCOL;
	*seen |= H2O_HPACK_PARSE_HEADERS_SCHEME_EXISTS;
	req->input.scheme = slice_eq(to_slice(field->value), SLICE("https")) ? &H2O_URL_SCHEME_HTTPS
									     : &H2O_URL_SCHEME_HTTP;
	return 0;
}

/* Two lengths that differ say that somebody on the way may count another one (RFC 9110 8.6). */
static int take_length(h2o_iovec_t value, size_t *content_length)
{
	const size_t length = h2o_strtosize(value.base, value.len);

	if (length == SIZE_MAX || (*content_length != SIZE_MAX && *content_length != length))
		return H2O_HTTP2_ERROR_PROTOCOL;
	*content_length = length;
	return 0;
}

/* Of one connection (RFC 9113 8.2.2), some of which libh2o does not mind. Host is not forbidden. */
static bool is_forbidden(const h2o_token_t *token, h2o_iovec_t value)
{
	if (token == H2O_TOKEN_KEEP_ALIVE)
		return true;
	if (!token->http2_should_reject || token == H2O_TOKEN_HOST)
		return false;
	return token != H2O_TOKEN_TE || !slice_eq_nocase(to_slice(value), SLICE("trailers"));
}

/* `req` is NULL in a trailer, whose fields nobody wants (RFC 9110 6.5.1). */
static int take_field(h2o_req_t *req, const struct field *field, size_t *content_length)
{
	const h2o_iovec_t *name = field->name, value = field->value;

	if (!h2o_iovec_is_token(name)) {
		if (slice_eq(to_slice(*name), SLICE("proxy-connection")))
			return H2O_HTTP2_ERROR_PROTOCOL;
		if (req != NULL)
			h2o_add_header_by_str(&req->pool, &req->headers, name->base, name->len, 0,
					      NULL, value.base, value.len);
		return 0;
	}
	const h2o_token_t *token = CONTAINER_OF(name, h2o_token_t, buf);
	if (token == H2O_TOKEN_CONTENT_LENGTH)
		return take_length(value, content_length);
	if (is_forbidden(token, value))
		return H2O_HTTP2_ERROR_PROTOCOL;
	if (req == NULL)
		return 0;
	if (token != H2O_TOKEN_HOST)
		h2o_add_header(&req->pool, &req->headers, token, NULL, value.base, value.len);
	else if (req->input.authority.base == NULL) /* RFC 9113 8.3.1 */
		req->input.authority = value;
	return 0;
}

static bool is_pseudo(const struct field *field)
{
	return field->name->base[0] == ':'; /* an empty one ends with NUL */
}

struct block {
	h2o_req_t *req;
	int *pseudo; /* NULL once there may be none */
	size_t *content_length;
	bool trailer, malformed;
};

static int take(struct block *block, const struct field *field)
{
	h2o_req_t *into = block->trailer ? NULL : block->req;

	if (!is_pseudo(field)) {
		block->pseudo = NULL; /* they come first */
		return take_field(into, field, block->content_length);
	}
	return block->pseudo == NULL ? H2O_HTTP2_ERROR_PROTOCOL
				     : take_pseudo(block->req, field, block->pseudo);
}

/* Reads all fields. A request that is malformed is a stream's error (RFC 9113 8.1.1), for which libh2o would end the
 * connection: its fields have to be read all the same. */
static int read_fields(struct reading *r, struct block *block, const char **err_desc)
{
	struct field field;
	int err = read_sizes(r);

	while (err == 0 && r->reader.at < r->reader.end) {
		err = read_field(r, &field);
		if (__builtin_expect(field.fault != NULL, 0)) {
			if (*err_desc == NULL)
				*err_desc = field.fault;
			block->malformed |= r->on && field.fault == upper_case;
		}
		if (__builtin_expect(err != 0 || block->malformed, 0))
			continue;
		err = take(block, &field);
		if (__builtin_expect(err != 0, 0) && r->on) {
			block->malformed = true;
			err = 0;
		}
	}
	return err;
}

int http2_skip_fields(h2o_hpack_header_table_t *table, const uint8_t *src, size_t len)
{
	h2o_mem_pool_t pool;
	struct reading reading = { { src, src + len }, table, &pool, .on = true };
	struct block block = { .malformed = true };
	const char *fault = NULL;

	h2o_mem_init_pool(&pool);
	int err = read_fields(&reading, &block, &fault);
	h2o_mem_clear_pool(&pool);
	return err;
}

/* Libh2o resets a request without the fields that all have, and one whose body is not of its length, and goes on;
 * what it is told of as an error ends the connection. `pseudo` is NULL for a trailer. */
static int reset_malformed(h2o_req_t *req, int *pseudo)
{
	h2o_http2_stream_t *stream = CONTAINER_OF(req, h2o_http2_stream_t, req);

	if (pseudo != NULL)
		*pseudo = 0;
	else
		stream->_expected_content_length = stream->_req_body->size + 1;
	return 0;
}

static bool has_body(h2o_req_t *req)
{
	return CONTAINER_OF(req, h2o_http2_stream_t, req)->_req_body != NULL;
}

/* Declared by libh2o. `pseudo` is NULL for a trailer; `digests`, of what a client has, are not asked for. There is
 * no connection in tests of this file alone: then the first error is returned. */
int h2o_hpack_parse_headers(h2o_req_t *req, h2o_hpack_header_table_t *table, const uint8_t *src,
			    size_t len, int *pseudo, size_t *content_length,
			    h2o_cache_digests_t **digests, const char **err_desc)
{
	struct reading reading = { { src, src + len }, table, &req->pool, req->conn != NULL };
	struct block block = { req, pseudo, content_length, .trailer = pseudo == NULL };

	(void)digests;
	*content_length = SIZE_MAX;
	int err = read_fields(&reading, &block, err_desc);
	const bool fault = *err_desc != NULL && !block.trailer;
	if (reading.on && !block.trailer && (req->input.path.len == 0 || (fault && has_body(req))))
		block.malformed = true; /* nor does libh2o's 400 wait for a body */
	if (err == 0 && block.malformed)
		return reset_malformed(req, pseudo);
	/* A fault in a trailer, for which libh2o would end the connection, harms nobody. */
	if (err == 0 && fault)
		err = H2O_HTTP2_ERROR_INVALID_HEADER_CHAR;
	return err;
}
