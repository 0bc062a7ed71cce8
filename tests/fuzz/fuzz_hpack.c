/* Heads of one HTTP/2 connection, read by ours and by libh2o's own, which ours hides (override_hpack_parse.c): the
 * same verdict, fields and dynamic table. Input: for each block a byte, 1 in a trailer, a length of two
 * bytes, the block.
 *
 * Where both are meant to differ, a scan of the block tells before: field by field, each of which libh2o
 * reads alone, with a third table. A field that ours alone refuses ends what libh2o gets; a fault that only
 * one of them sees is expected of ours, by rules written down here once more. The scan leans on hpack.h, which
 * is no risk: what it reads wrongly, is not what libh2o reads. */
#include "codec/base/must.h"
#include "gateway/http/hpack.h"
#include "gateway/http/http_h2o_parts.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TABLE_MAX = 4096, BLOCK_MAX = 16384 };
enum { KNOWN_FIELDS = 61, NAME_CONTENT_LENGTH = 28 }; /* RFC 7541 appendix A */
enum { HARMLESS = 0x90 };                             /* a whole field: accept-encoding, indexed */

static const char bad_name[] = "found an invalid character in header name";
static const char bad_value[] = "found an invalid character in header value";

typedef int parse_fn(h2o_req_t *, h2o_hpack_header_table_t *, const uint8_t *, size_t, int *,
		     size_t *, h2o_cache_digests_t **, const char **);

/* One that compared ours with itself would find nothing. */
static parse_fn *libh2o_parse(void)
{
	static parse_fn *parse;

	if (parse == NULL)
		parse = (parse_fn *)dlsym(RTLD_NEXT, "h2o_hpack_parse_headers");
	must(parse != NULL && parse != h2o_hpack_parse_headers);
	return parse;
}

struct outcome {
	h2o_req_t req;
	int result, pseudo;
	size_t content_length;
	const char *fault;
};

static void outcome_init(struct outcome *out)
{
	(void)memset(out, 0, sizeof(*out));
	h2o_mem_init_pool(&out->req.pool);
}

static void outcome_fini(struct outcome *out)
{
	h2o_mem_clear_pool(&out->req.pool);
}

static void run_libh2o(struct outcome *out, h2o_hpack_header_table_t *table, const uint8_t *bytes,
		       size_t len, bool trailer)
{
	outcome_init(out);
	out->result = libh2o_parse()(&out->req, table, bytes, len, trailer ? NULL : &out->pseudo,
				     &out->content_length, NULL, &out->fault);
}

/* An error of the connection. */
static bool is_hard(int result)
{
	return result != 0 && result != H2O_HTTP2_ERROR_INVALID_HEADER_CHAR;
}

/* ---- what a field is to be judged by ---- */
static bool is_pseudo(struct slice name)
{
	return name.len != 0 && name.at[0] == ':';
}

/* RFC 9110 5.6.2, RFC 9113 8.2.1: a token without upper case. */
static bool is_good_name(struct slice name)
{
	static const char others[] = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz";

	for (size_t i = 0; i < name.len; i++)
		if (memchr(others, name.at[i], sizeof(others) - 1) == NULL)
			return false;
	return name.len != 0;
}

static bool has_upper(struct slice name)
{
	for (size_t i = 0; i < name.len; i++)
		if (name.at[i] >= 'A' && name.at[i] <= 'Z')
			return true;
	return false;
}

static bool is_padded(struct slice value)
{
	static const char blanks[] = { ' ', '\t' };

	return value.len != 0 && (memchr(blanks, value.at[0], sizeof(blanks)) != NULL ||
				  memchr(blanks, value.at[value.len - 1], sizeof(blanks)) != NULL);
}

static bool has_control(struct slice value)
{
	for (size_t i = 0; i < value.len; i++) {
		const unsigned char c = (unsigned char)value.at[i];
		if ((c < ' ' && c != '\t') || c == 0x7f)
			return true;
	}
	return false;
}

static const char *fault_of(struct slice name, struct slice value)
{
	if (!is_pseudo(name) && !is_good_name(name))
		return bad_name;
	return is_padded(value) || has_control(value) ? bad_value : NULL;
}

static bool same_text(const char *a, const char *b)
{
	return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

/* ---- the scan ---- */
/* `copy` is what libh2o gets of the block; there is room for a byte more, as libh2o looks at what follows an
 * empty name. */
struct scan {
	struct hpack_reader reader;
	const uint8_t *begin;
	uint8_t *copy;
	size_t copied, sizes;            /* sizes: where those of the table end */
	h2o_hpack_header_table_t *table; /* libh2o's */
	size_t content_length;
	const char *fault; /* the first one that makes a 400 */
	int refused;       /* by ours alone, behind `copied`; 0: nothing */
	bool stopped;      /* at an error of the connection */
	bool only_sizes;
	bool faults_differ; /* of some field */
	bool texts_differ;  /* of an error of the connection, it may be */
};

struct field {
	struct slice name, value;     /* in memory of their own */
	size_t name_at;               /* in the block; 0: not there */
	bool packed, upper, inherits; /* inherits: libh2o faults what it is taken from */
};

static struct slice new_slice(struct slice from)
{
	char *at = malloc(from.len);

	must(at != NULL || from.len == 0);
	if (from.len != 0)
		(void)memcpy(at, from.at, from.len);
	return slice_of(at, from.len);
}

static struct slice new_iovec(const h2o_iovec_t *from)
{
	return new_slice(slice_of(from->base, from->len));
}

/* Unpacks into a block of the size that is said to be enough, so that ASan sees what is written too far. */
static bool read_text(struct hpack_reader *reader, struct slice *out)
{
	struct hpack_text text;

	if (!hpack_read_text(reader, &text))
		return false;
	if (!text.packed) {
		*out = new_slice(text.bytes);
		return true;
	}
	const size_t most = hpack_unpacked_max(text.bytes.len);
	char *into = malloc(most);
	must(into != NULL || most == 0);
	const size_t len = hpack_unpack(text.bytes, into);
	*out = slice_of(into, len == SIZE_MAX ? 0 : len);
	must(out->len <= most);
	return len != SIZE_MAX;
}

/* Of what the static table has, nothing is at fault, and one name matters. */
static bool read_name(struct scan *scan, size_t index, struct field *field,
		      const h2o_hpack_header_table_entry_t **entry)
{
	struct hpack_reader *r = &scan->reader;

	if (index == 0) {
		field->name_at = (size_t)(r->at - scan->begin);
		field->packed = r->at < r->end && (*r->at & 0x80) != 0;
		return read_text(r, &field->name);
	}
	if (index <= KNOWN_FIELDS) {
		field->name = new_slice(index == NAME_CONTENT_LENGTH ? SLICE("content-length")
								     : SLICE(":"));
		return true;
	}
	if (index - KNOWN_FIELDS > scan->table->num_entries)
		return false;
	*entry = h2o_hpack_header_table_get(scan->table, index - KNOWN_FIELDS - 1);
	field->name = new_iovec((*entry)->name);
	field->inherits = (*entry)->err_desc != NULL;
	return true;
}

/* False: malformed. */
static bool read_field(struct scan *scan, struct field *field)
{
	const uint8_t first = *scan->reader.at;
	const bool indexed = (first & 0x80) != 0;
	const h2o_hpack_header_table_entry_t *entry = NULL;
	const size_t index = hpack_read_int(&scan->reader, indexed               ? 7
							   : (first & 0x40) != 0 ? 6
										 : 4);

	if ((index == 0 && indexed) || !read_name(scan, index, field, &entry))
		return false;
	field->upper = !is_pseudo(field->name) && has_upper(field->name);
	scan->texts_differ |= field->inherits || field->name.len == 0;
	if (field->upper)
		return true;
	if (!indexed)
		return read_text(&scan->reader, &field->value);
	if (entry != NULL)
		field->value = new_iovec(entry->value);
	return true;
}

/* Some fields alone, to libh2o. `fault` is what it has against them. */
static int feed(struct scan *scan, size_t from, size_t len, const char **fault)
{
	struct outcome out;

	run_libh2o(&out, scan->table, scan->copy + from, len, false);
	scan->stopped |= is_hard(out.result);
	outcome_fini(&out);
	*fault = out.fault;
	return out.result;
}

/* What ours, and not libh2o, takes as an error of the connection. */
static int refusal_of(struct scan *scan, const struct field *field)
{
	/* RFC 9113 8.2.1. libh2o says the same of what is not packed, and has, by mistake, only a fault for
	 * what is. */
	if (field->upper)
		return field->packed ? H2O_HTTP2_ERROR_PROTOCOL : 0;
	/* RFC 9110 8.6: not another length than before. libh2o takes the last one. */
	if (!slice_eq(field->name, SLICE("content-length")))
		return 0;
	const size_t before = scan->content_length;
	scan->content_length = h2o_strtosize(field->value.at, field->value.len);
	if (before == SIZE_MAX || scan->content_length == SIZE_MAX)
		return 0;
	return before == scan->content_length ? 0 : H2O_HTTP2_ERROR_PROTOCOL;
}

/* libh2o gets what is before `at`: sizes alone are an error to it (see scan_sizes). */
static void cut(struct scan *scan, size_t at)
{
	scan->copied = at;
	if (at == 0 || at != scan->sizes)
		return;
	scan->copy[at] = HARMLESS;
	scan->copied++;
	scan->only_sizes = true;
}

/* `theirs` is libh2o's fault of the field. */
static void judge(struct scan *scan, const struct field *field, const char *theirs)
{
	const bool bad = !is_pseudo(field->name) && !is_good_name(field->name);
	const char *fault = fault_of(field->name, field->value);

	if (scan->fault == NULL)
		scan->fault = fault;
	if (same_text(fault, theirs))
		return;
	scan->faults_differ = true;
	if (field->inherits)
		return; /* libh2o faults a name for the value that it once had */
	if (bad && has_control(field->value))
		must(same_text(theirs, bad_value)); /* the last of two faults, not the first */
	else if (field->name.len == 0)
		must(theirs == NULL); /* RFC 9110 5.1: a name is a token, thus not empty */
	else
		must(!bad && is_padded(field->value) && theirs == NULL); /* RFC 9113 8.2.1 */
}

static void scan_read(struct scan *scan, struct field *field)
{
	const size_t start = (size_t)(scan->reader.at - scan->begin);

	if (!read_field(scan, field)) {
		scan->stopped = true;
		return;
	}
	scan->refused = refusal_of(scan, field);
	if (scan->refused != 0) {
		cut(scan, start);
		return;
	}
	/* An empty name that is packed is malformed to libh2o; one that is not, no fault. */
	if (field->name_at != 0 && field->packed && field->name.len == 0)
		scan->copy[field->name_at] = 0;
	/* Behind an upper case name the value is not read: let libh2o stop there, too. */
	const size_t end = field->upper ? scan->copied : (size_t)(scan->reader.at - scan->begin);
	const char *theirs;
	const int result = feed(scan, start, end - start, &theirs);
	if (field->upper)
		must(result == H2O_HTTP2_ERROR_PROTOCOL);
	else if (result != H2O_HTTP2_ERROR_COMPRESSION)
		judge(scan, field, theirs);
}

/* RFC 7541 4.2: sizes of the table come first, and then there need not be a field. libh2o takes them before
 * any field, and wants one. */
static void scan_sizes(struct scan *scan)
{
	struct hpack_reader *r = &scan->reader;

	while (r->at < r->end && (*r->at & 0xe0) == 0x20)
		if (hpack_read_int(r, 5) == SIZE_MAX) {
			scan->stopped = true;
			return;
		}
	const size_t len = (size_t)(r->at - scan->begin);
	if (len == 0)
		return;
	const uint8_t next = scan->copy[len];
	const char *fault;
	scan->sizes = len;
	scan->copy[len] = HARMLESS;
	(void)feed(scan, 0, len + 1, &fault);
	scan->copy[len] = next;
	if (r->at == r->end)
		cut(scan, len);
}

static void scan_block(struct scan *scan)
{
	scan_sizes(scan);
	while (!scan->stopped && scan->refused == 0 && scan->reader.at < scan->reader.end) {
		struct field field = { .name_at = 0 };
		if ((*scan->reader.at & 0xe0) == 0x20) {
			cut(scan, (size_t)(scan->reader.at - scan->begin));
			scan->refused = H2O_HTTP2_ERROR_COMPRESSION;
			return;
		}
		scan_read(scan, &field);
		free((void *)(uintptr_t)field.name.at);
		free((void *)(uintptr_t)field.value.at);
	}
}

/* ---- the comparison ---- */
static void same_iovec(const h2o_iovec_t *a, const h2o_iovec_t *b)
{
	must((a->base == NULL) == (b->base == NULL) && a->len == b->len);
	must(a->len == 0 || memcmp(a->base, b->base, a->len) == 0);
	must(a->base == NULL || a->base[a->len] == '\0'); /* both, ours by its own word */
}

/* A token is the very same one. */
static void same_name(const h2o_iovec_t *a, const h2o_iovec_t *b)
{
	same_iovec(a, b);
	must(h2o_iovec_is_token(a) == h2o_iovec_is_token(b));
	must(!h2o_iovec_is_token(a) || a == b);
}

static void same_table(h2o_hpack_header_table_t *a, h2o_hpack_header_table_t *b)
{
	must(a->hpack_size == b->hpack_size && a->hpack_capacity == b->hpack_capacity);
	must(a->hpack_max_capacity == b->hpack_max_capacity && a->hpack_size <= a->hpack_capacity);
	must(a->num_entries == b->num_entries && a->entry_capacity == b->entry_capacity);
	for (size_t i = 0; i < a->num_entries; i++) {
		same_name(h2o_hpack_header_table_get(a, i)->name,
			  h2o_hpack_header_table_get(b, i)->name);
		same_iovec(h2o_hpack_header_table_get(a, i)->value,
			   h2o_hpack_header_table_get(b, i)->value);
	}
}

static void check_faults(h2o_hpack_header_table_t *ours)
{
	for (size_t i = 0; i < ours->num_entries; i++) {
		const h2o_hpack_header_table_entry_t *entry = h2o_hpack_header_table_get(ours, i);
		must(same_text(entry->err_desc,
			       fault_of(slice_of(entry->name->base, entry->name->len),
					slice_of(entry->value->base, entry->value->len))));
	}
}

/* Ours takes Host for an authority that was not sent (RFC 9113 8.3.1); libh2o drops it. */
static void same_request(const h2o_req_t *ours, const h2o_req_t *libh2o)
{
	same_iovec(&ours->input.method, &libh2o->input.method);
	same_iovec(&ours->input.path, &libh2o->input.path);
	if (libh2o->input.authority.base != NULL)
		same_iovec(&ours->input.authority, &libh2o->input.authority);
	must(ours->input.scheme == libh2o->input.scheme);
}

static void same_headers(const h2o_headers_t *a, const h2o_headers_t *b)
{
	must(a->size == b->size);
	for (size_t i = 0; i < a->size; i++) {
		same_name(a->entries[i].name, b->entries[i].name);
		same_iovec(&a->entries[i].value, &b->entries[i].value);
	}
}

/* A fault in a trailer, whose fields are not kept, is none to ours: of libh2o's word for it a connection ends. */
static void same_result(const struct outcome *ours, const struct outcome *libh2o,
			const struct scan *scan, bool trailer)
{
	const bool at_fault = scan->fault != NULL && !trailer;

	if (is_hard(libh2o->result)) {
		must(ours->result == libh2o->result);
		/* libh2o forgets the first fault then; it is for who debugs the peer. */
		if (scan->fault == NULL && !scan->texts_differ)
			must(same_text(ours->fault, libh2o->fault));
		return;
	}
	must(!scan->stopped);
	if (scan->refused != 0) {
		must(ours->result == scan->refused);
		return;
	}
	must(ours->result == (at_fault ? H2O_HTTP2_ERROR_INVALID_HEADER_CHAR : 0));
	must(same_text(ours->fault, scan->fault));
	must(ours->content_length == libh2o->content_length);
	if (!scan->faults_differ)
		must(same_text(ours->fault, libh2o->fault) &&
		     (trailer || ours->result == libh2o->result));
}

/* Fields of a trailer are judged, and not kept (RFC 9110 6.5.1); nor is what libh2o gets behind sizes. */
static void same(const struct outcome *ours, const struct outcome *libh2o, const struct scan *scan,
		 bool trailer)
{
	same_result(ours, libh2o, scan, trailer);
	must(ours->pseudo == libh2o->pseudo);
	same_request(&ours->req, &libh2o->req);
	if (trailer || scan->only_sizes)
		must(ours->req.headers.size == 0);
	else
		same_headers(&ours->req.headers, &libh2o->req.headers);
}

/* ---- the connection ---- */
struct tables {
	h2o_hpack_header_table_t ours, libh2o, scan;
};

static void tables_init(struct tables *tables)
{
	static const h2o_hpack_header_table_t none = { .hpack_capacity = TABLE_MAX,
						       .hpack_max_capacity = TABLE_MAX };

	*tables = (struct tables){ none, none, none };
}

static void tables_fini(struct tables *tables)
{
	h2o_hpack_dispose_header_table(&tables->ours);
	h2o_hpack_dispose_header_table(&tables->libh2o);
	h2o_hpack_dispose_header_table(&tables->scan);
}

static void run_ours(struct outcome *out, h2o_hpack_header_table_t *table, const uint8_t *bytes,
		     size_t len, bool trailer)
{
	h2o_cache_digests_t *digests = NULL;

	outcome_init(out);
	out->result =
		h2o_hpack_parse_headers(&out->req, table, bytes, len, trailer ? NULL : &out->pseudo,
					&out->content_length, &digests, &out->fault);
	must(digests == NULL); /* nobody asks for them; libh2o is not asked for any, either */
}

/* False: an error of the connection. `bytes` and `copy` are alike, and end where their memory does, the
 * latter's a byte further. */
static bool run_block(struct tables *tables, const uint8_t *bytes, uint8_t *copy, size_t len,
		      bool trailer)
{
	struct scan scan = { .reader = { bytes, bytes + len },
			     .begin = bytes,
			     .copy = copy,
			     .copied = len,
			     .table = &tables->scan,
			     .content_length = SIZE_MAX };
	struct outcome ours, libh2o;

	scan_block(&scan);
	run_ours(&ours, &tables->ours, bytes, len, trailer);
	run_libh2o(&libh2o, &tables->libh2o, copy, scan.copied, trailer);
	same(&ours, &libh2o, &scan, trailer);
	check_faults(&tables->ours);
	if (scan.refused == 0)
		same_table(&tables->ours, &tables->libh2o);
	if (!is_hard(libh2o.result))
		same_table(&tables->libh2o,
			   &tables->scan); /* else the scan was of something else */
	outcome_fini(&ours);
	outcome_fini(&libh2o);
	return !is_hard(ours.result);
}

/* A length beyond the input means what is left of it: so more inputs are something. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tables tables;
	bool going = true;

	tables_init(&tables);
	while (going && size >= 3) {
		const size_t wanted = (size_t)data[1] << 8 | data[2];
		size_t len = size - 3 < wanted ? size - 3 : wanted;
		len = len < BLOCK_MAX ? len : BLOCK_MAX;
		uint8_t *bytes = malloc(len), *copy = malloc(len + 1);
		must((bytes != NULL || len == 0) && copy != NULL);
		if (len != 0) {
			(void)memcpy(bytes, data + 3, len);
			(void)memcpy(copy, data + 3, len);
		}
		copy[len] = 0;
		going = run_block(&tables, bytes, copy, len, (data[0] & 1) != 0);
		free(bytes);
		free(copy);
		data += 3 + len;
		size -= 3 + len;
	}
	tables_fini(&tables);
	return 0;
}
