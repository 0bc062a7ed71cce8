/* What clients keep for the gateway: it comes back as it was, in one form only, and not from another server. */
#include "gateway/front/mcp/mcp_token.h"

#include "codec/base/must.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static const struct seal_secret secret = { "whatever is secret" };
static struct arena_pool pool = { .keep_max = 64 };
static struct arena arena;
static struct seal *seal;
static char long_text[SEAL_PLAIN_MAX];

static int set_up(void **state)
{
	(void)state;
	arena_init(&arena, &pool, 8 << 20);
	(void)memset(long_text, 'x', sizeof(long_text));
	seal = seal_new(&secret, 1);
	return seal == NULL;
}

static int tear_down(void **state)
{
	(void)state;
	seal_free(seal);
	arena_give(&arena);
	arena_pool_fini(&pool);
	return 0;
}

/* ---- sessions ---- */

static struct mcp_token token_of(const char *upstream_id)
{
	return (struct mcp_token){ .server = SLICE("files"),
				   .upstream_id = slice_str(upstream_id),
				   .tenant = { "the tenant's key" },
				   .principal = { "whose session it" },
				   .revision = SLICE("2025-11-25"),
				   .mode = MCP_MODE_BACKFILL,
				   .issued_s = UINT64_C(1790000000) };
}

static void assert_same_token(const struct mcp_token *a, const struct mcp_token *b)
{
	assert_true(slice_eq(a->upstream_id, b->upstream_id) && slice_eq(a->revision, b->revision));
	assert_true(mcp_digest_eq(&a->tenant, &b->tenant) &&
		    mcp_digest_eq(&a->principal, &b->principal));
	assert_true(mcp_digest_eq(&a->endpoint, &b->endpoint) &&
		    mcp_digest_eq(&a->authorization, &b->authorization));
	assert_true(a->mode == b->mode && a->tools == b->tools && a->own_get == b->own_get);
	assert_true(a->bridged == b->bridged && slice_eq(a->declared, b->declared));
	assert_true(a->pin.family == b->pin.family && a->pin.port == b->pin.port);
	assert_memory_equal(a->pin.at, b->pin.at, sizeof(a->pin.at));
	assert_int_equal(a->issued_s, b->issued_s);
}

/* One of each kind; false: that was all. */
static bool some_token(size_t n, struct mcp_token *out)
{
	*out = token_of("0f1e2d3c");
	switch (n) {
	case 0:
		return true;
	case 1:
		*out = token_of("");
		out->revision = SLICE("");
		return true;
	case 2:
		out->mode = MCP_MODE_REFUSE;
		out->tools = out->own_get = true;
		return true;
	case 3:
		out->endpoint = mcp_digest_of(SLICE("http://a/mcp"));
		out->authorization = mcp_digest_of(SLICE("Bearer x"));
		return true;
	case 4:
		out->pin = (struct mcp_pin){ 4, 8080, { 127, 0, 0, 1 } };
		return true;
	case 5:
		out->pin = (struct mcp_pin){ 6, 65535, "0123456789abcdef" };
		out->endpoint = mcp_digest_of(SLICE("http://b/mcp"));
		out->authorization = mcp_digest_of(SLICE("Bearer y"));
		out->upstream_id = slice_of(long_text, MCP_UPSTREAM_ID_MAX);
		out->revision = slice_of(long_text, MCP_REVISION_MAX);
		out->mode = MCP_MODE_RELAY;
		out->issued_s = UINT64_MAX;
		return true;
	case 6:
		out->bridged = true;
		out->declared = SLICE("");
		return true;
	case 7:
		out->bridged = true;
		out->declared = slice_of(long_text, MCP_DECLARED_MAX);
		out->pin = (struct mcp_pin){ 6, 65535, "0123456789abcdef" };
		out->endpoint = mcp_digest_of(SLICE("http://b/mcp"));
		out->authorization = mcp_digest_of(SLICE("Bearer y"));
		out->upstream_id = slice_of(long_text, 64);
		return true;
	default:
		return false;
	}
}

static void a_token_comes_back_as_it_was(void **state)
{
	struct mcp_token token, found;
	struct slice text;

	(void)state;
	for (size_t n = 0; some_token(n, &token); n++) {
		assert_int_equal(mcp_token_seal(seal, MCP_TOKEN_SESSION, &token, &arena, &text),
				 ERR_OK);
		assert_true(text.len <= 1024);
		assert_int_equal(mcp_token_open(seal, MCP_TOKEN_SESSION, SLICE("files"), text,
						&arena, &found),
				 ERR_OK);
		assert_same_token(&token, &found);
		assert_true(slice_eq(found.server, SLICE("files")));
	}
}

static void a_token_is_good_for_its_kind_and_server_only(void **state)
{
	struct mcp_token token = token_of("1"), found = { .server = SLICE("not written") };
	struct slice text, sse;

	(void)state;
	assert_int_equal(mcp_token_seal(seal, MCP_TOKEN_SESSION, &token, &arena, &text), ERR_OK);
	assert_int_equal(mcp_token_seal(seal, MCP_TOKEN_SSE, &token, &arena, &sse), ERR_OK);
	const struct {
		enum mcp_token_kind kind;
		const char *server;
		struct slice text;
		enum err err;
	} rows[] = {
		{ MCP_TOKEN_SSE, "files", text, ERR_SESSION_UNKNOWN },
		{ MCP_TOKEN_SESSION, "files", sse, ERR_SESSION_UNKNOWN },
		{ MCP_TOKEN_SESSION, "file", text, ERR_SESSION_UNKNOWN },
		{ MCP_TOKEN_SESSION, "", text, ERR_SESSION_UNKNOWN },
		{ MCP_TOKEN_SESSION, "files", SLICE("files"), ERR_SESSION_UNKNOWN },
		{ MCP_TOKEN_SESSION, "files", SLICE(""), ERR_SESSION_UNKNOWN },
		{ MCP_TOKEN_SESSION, "files", text, ERR_OK },
		{ MCP_TOKEN_SSE, "files", sse, ERR_OK },
	};
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		assert_int_equal(mcp_token_open(seal, rows[i].kind, slice_str(rows[i].server),
						rows[i].text, &arena, &found),
				 rows[i].err);
		assert_true(rows[i].err == ERR_OK || slice_eq(found.server, SLICE("not written")));
	}
}

/* What another kind sealed for the same purpose does not pass for a token. */
static void what_is_sealed_but_no_token_is_refused(void **state)
{
	struct mcp_token found;
	struct mcp_state found_state;
	struct slice text;

	(void)state;
	assert_int_equal(seal_close(seal, SLICE("mcp-session/files"), SLICE("x"), &arena, &text),
			 ERR_OK);
	assert_int_equal(
		mcp_token_open(seal, MCP_TOKEN_SESSION, SLICE("files"), text, &arena, &found),
		ERR_SESSION_UNKNOWN);
	assert_int_equal(seal_close(seal, SLICE("mcp-state/files"), SLICE("x"), &arena, &text),
			 ERR_OK);
	assert_int_equal(mcp_state_open(seal, SLICE("files"), text, &arena, &found_state),
			 ERR_SESSION_UNKNOWN);
}

static void a_part_that_is_too_long_is_refused(void **state)
{
	struct mcp_token token = token_of("1");
	char packed[MCP_TOKEN_MAX];
	struct slice text;

	(void)state;
	token.upstream_id = slice_of(long_text, MCP_UPSTREAM_ID_MAX + 1);
	assert_int_equal(mcp_token_pack(&token, packed), 0);
	assert_int_equal(mcp_token_seal(seal, MCP_TOKEN_SESSION, &token, &arena, &text),
			 ERR_BODY_TOO_LARGE);
	token = token_of("1");
	token.revision = slice_of(long_text, MCP_REVISION_MAX + 1);
	assert_int_equal(mcp_token_pack(&token, packed), 0);
}

/* Each cut, each byte more, and each other value of the bytes that say what follows. */
static void a_packed_token_has_one_form(void **state)
{
	struct mcp_token token, found;
	char packed[MCP_TOKEN_MAX + 1];

	(void)state;
	for (size_t n = 0; some_token(n, &token); n++) {
		const size_t len = mcp_token_pack(&token, packed);
		assert_true(len != 0);
		for (size_t cut = 0; cut < len; cut++)
			assert_false(mcp_token_unpack(slice_of(packed, cut), &found));
		packed[len] = '\0';
		assert_false(mcp_token_unpack(slice_of(packed, len + 1), &found));
		assert_true(mcp_token_unpack(slice_of(packed, len), &found));
		packed[0] ^= 2; /* another version */
		assert_false(mcp_token_unpack(slice_of(packed, len), &found));
		packed[0] ^= 2;
		packed[1] = (char)(packed[1] | 128); /* a flag that nobody sets */
		assert_false(mcp_token_unpack(slice_of(packed, len), &found));
	}
}

static void a_digest_of_zeros_is_left_out(void **state)
{
	struct mcp_token token = token_of("1"), found;
	char packed[MCP_TOKEN_MAX];

	(void)state;
	token.endpoint = mcp_digest_of(SLICE("u"));
	const size_t len = mcp_token_pack(&token, packed);
	assert_memory_equal(packed + 34, token.endpoint.at, MCP_DIGEST_BYTES);
	(void)memset(packed + 34, 0, MCP_DIGEST_BYTES);
	assert_false(mcp_token_unpack(slice_of(packed, len), &found));
}

static void a_revision_may_be_unknown(void **state)
{
	static const struct {
		const char *name;
		bool known;
		enum revision revision;
	} rows[] = {
		{ "2025-03-26", true, REVISION_2025_03_26 },
		{ "2025-11-25", true, REVISION_2025_11_25 },
		{ "2027-01-01", false, REVISION_COUNT },
		{ "", false, REVISION_COUNT },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct mcp_token token = token_of("1");
		enum revision found = REVISION_COUNT;
		token.revision = slice_str(rows[i].name);
		assert_int_equal(mcp_token_revision(&token, &found), rows[i].known);
		assert_int_equal(found, rows[i].revision);
	}
}

/* ---- keys ---- */

static void every_part_makes_another_principal(void **state)
{
	static const struct caller callers[] = {
		{ .tenant = SLICE_INIT("a") },
		{ .tenant = SLICE_INIT("b") },
		{ .tenant = SLICE_INIT("ak") },
		{ .tenant = SLICE_INIT("a"), .server = SLICE_INIT("") },
		{ .tenant = SLICE_INIT("a"), .server = SLICE_INIT("k") },
		{ .tenant = SLICE_INIT("a"), .subject = { 1 } },
		{ .tenant = SLICE_INIT("a"), .subject = { 2 } },
		{ .tenant = SLICE_INIT("a"), .server = SLICE_INIT("k"), .subject = { 1 } },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(callers); i++)
		for (size_t k = 0; k < COUNT_OF(callers); k++) {
			const struct mcp_digest a = mcp_principal_of(&callers[i]);
			const struct mcp_digest b = mcp_principal_of(&callers[k]);
			assert_int_equal(mcp_digest_eq(&a, &b), i == k);
		}
}

static void sessions_and_their_requests_have_keys_of_their_own(void **state)
{
	struct mcp_token a = token_of("1"), b = token_of("1"), c = token_of("2"), d = token_of("1");

	(void)state;
	b.server = SLICE("other");
	d.tenant = (struct mcp_digest){ "another tenant.." };
	const struct state_key first = mcp_token_key(&a), third = mcp_token_key(&c);
	const struct state_key keys[] = {
		first,
		mcp_token_key(&b),
		third,
		mcp_token_key(&d),
		mcp_asked_key(&first, SLICE("1")),
		mcp_asked_key(&first, SLICE("\"1\"")),
		mcp_asked_key(&third, SLICE("1")),
		mcp_call_key(&first, SLICE("1")),
	};
	for (size_t i = 0; i < COUNT_OF(keys); i++)
		for (size_t k = 0; k < COUNT_OF(keys); k++)
			assert_int_equal(state_key_eq(&keys[i], &keys[k]), i == k);
	a.principal = (struct mcp_digest){ { 1 } };
	a.own_get = !a.own_get;
	const struct state_key again = mcp_token_key(&a);
	assert_true(
		state_key_eq(&first, &again)); /* of nothing but tenant, server and upstream id */
}

/* ---- addresses ---- */

static void an_address_survives_its_pin(void **state)
{
	struct upstream_address address = { .len = sizeof(struct sockaddr_in) }, found;
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons(8080) };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons(443) };

	(void)state;
	assert_int_equal(inet_pton(AF_INET, "192.0.2.7", &four.sin_addr), 1);
	(void)memcpy(&address.address, &four, sizeof(four));
	struct mcp_pin pin = mcp_pin_of(&address);
	assert_true(pin.family == 4 && pin.port == 8080);
	assert_true(mcp_pin_address(&pin, &found));
	assert_int_equal(found.len, sizeof(four));
	assert_memory_equal(&found.address, &four, sizeof(four));

	assert_int_equal(inet_pton(AF_INET6, "2001:db8::7", &six.sin6_addr), 1);
	address = (struct upstream_address){ .len = sizeof(six) };
	(void)memcpy(&address.address, &six, sizeof(six));
	pin = mcp_pin_of(&address);
	assert_true(pin.family == 6 && pin.port == 443);
	assert_true(mcp_pin_address(&pin, &found));
	assert_int_equal(found.len, sizeof(six));
	assert_memory_equal(&found.address, &six, sizeof(six));
}

static void what_means_nothing_elsewhere_is_no_pin(void **state)
{
	struct sockaddr_in6 scoped = { .sin6_family = AF_INET6, .sin6_scope_id = 2 };
	struct upstream_address address = { .len = sizeof(scoped) }, found = { .len = 7 };

	(void)state;
	(void)memcpy(&address.address, &scoped, sizeof(scoped));
	struct mcp_pin pin = mcp_pin_of(&address);
	assert_int_equal(pin.family, 0);
	assert_false(mcp_pin_address(&pin, &found));
	address = (struct upstream_address){ .address = { .ss_family = AF_UNIX } };
	pin = mcp_pin_of(&address);
	assert_int_equal(pin.family, 0);
	assert_int_equal(found.len, 7);
}

/* ---- states ---- */

static struct mcp_state state_of(struct slice upstream, struct slice answers)
{
	return (struct mcp_state){ .server = SLICE("files"),
				   .tenant = { "the tenant's key" },
				   .principal = { "whose round it i" },
				   .method = SLICE("tools/call"),
				   .params = { "a digest of them" },
				   .expires_s = 1790000600,
				   .upstream = upstream,
				   .answers = answers };
}

static void assert_same_state(const struct mcp_state *a, const struct mcp_state *b)
{
	assert_true(mcp_digest_eq(&a->tenant, &b->tenant) &&
		    mcp_digest_eq(&a->principal, &b->principal));
	assert_true(mcp_digest_eq(&a->params, &b->params));
	assert_true(slice_eq(a->method, b->method) && a->expires_s == b->expires_s);
	assert_true(slice_eq(a->upstream, b->upstream) && slice_eq(a->answers, b->answers));
	assert_int_equal(slice_absent(a->upstream), slice_absent(b->upstream));
	assert_int_equal(slice_absent(a->answers), slice_absent(b->answers));
}

static void a_state_comes_back_as_it_was(void **state)
{
	const struct slice none = { NULL, 0 };
	const struct slice texts[] = { none, SLICE(""), SLICE("\"abc\""),
				       slice_of(long_text, 3000) };
	struct mcp_state found;
	struct slice text;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(texts) * COUNT_OF(texts); i++) {
		struct mcp_state sealed = state_of(texts[i % 4], texts[i / 4]);
		assert_int_equal(mcp_state_seal(seal, &sealed, &arena, &text), ERR_OK);
		assert_int_equal(mcp_state_open(seal, SLICE("files"), text, &arena, &found),
				 ERR_OK);
		assert_same_state(&sealed, &found);
		assert_int_equal(mcp_state_open(seal, SLICE("others"), text, &arena, &found),
				 ERR_SESSION_UNKNOWN);
	}
}

static void a_state_has_bounds_and_one_form(void **state)
{
	struct mcp_state sealed = state_of(SLICE("up"), SLICE("answers")), found;
	static char packed[SEAL_PLAIN_MAX + 1];
	struct slice text;

	(void)state;
	const size_t len = mcp_state_pack(&sealed, packed, SEAL_PLAIN_MAX);
	for (size_t cut = 0; cut < len; cut++)
		assert_false(mcp_state_unpack(slice_of(packed, cut), &found));
	packed[len] = 0;
	assert_false(mcp_state_unpack(slice_of(packed, len + 1), &found));
	sealed.answers = slice_of(long_text, SEAL_PLAIN_MAX - len + 7); /* the longest that fits */
	assert_int_equal(mcp_state_pack(&sealed, packed, SEAL_PLAIN_MAX), SEAL_PLAIN_MAX);
	assert_int_equal(mcp_state_seal(seal, &sealed, &arena, &text), ERR_OK);
	assert_int_equal(mcp_state_open(seal, SLICE("files"), text, &arena, &found), ERR_OK);
	assert_same_state(&sealed, &found);
	sealed.answers.len++;
	assert_int_equal(mcp_state_seal(seal, &sealed, &arena, &text), ERR_BODY_TOO_LARGE);
	sealed.answers = SLICE("answers");
	sealed.method = slice_of(long_text, MCP_METHOD_MAX + 1);
	assert_int_equal(mcp_state_seal(seal, &sealed, &arena, &text), ERR_BODY_TOO_LARGE);
}

static void refused_memory_is_said(void **state)
{
	struct mcp_token token = token_of("1"), found_token;
	struct mcp_state round = state_of(SLICE("u"), SLICE("a")), found_state;
	struct slice text, state_text;
	struct arena none;

	(void)state;
	assert_int_equal(mcp_token_seal(seal, MCP_TOKEN_SESSION, &token, &arena, &text), ERR_OK);
	assert_int_equal(mcp_state_seal(seal, &round, &arena, &state_text), ERR_OK);
	arena_init(&none, &pool, 0);
	assert_int_equal(mcp_token_seal(seal, MCP_TOKEN_SESSION, &token, &none, &text), ERR_BUSY);
	assert_int_equal(mcp_state_seal(seal, &round, &none, &text), ERR_BUSY);
	assert_int_equal(
		mcp_token_open(seal, MCP_TOKEN_SESSION, SLICE("files"), text, &none, &found_token),
		ERR_BUSY);
	assert_int_equal(mcp_state_open(seal, SLICE("files"), state_text, &none, &found_state),
			 ERR_BUSY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define IN(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
		IN(a_token_comes_back_as_it_was),
		IN(a_token_is_good_for_its_kind_and_server_only),
		IN(what_is_sealed_but_no_token_is_refused),
		IN(a_part_that_is_too_long_is_refused),
		IN(a_packed_token_has_one_form),
		IN(a_digest_of_zeros_is_left_out),
		IN(a_revision_may_be_unknown),
		IN(every_part_makes_another_principal),
		IN(sessions_and_their_requests_have_keys_of_their_own),
		IN(an_address_survives_its_pin),
		IN(what_means_nothing_elsewhere_is_no_pin),
		IN(a_state_comes_back_as_it_was),
		IN(a_state_has_bounds_and_one_form),
		IN(refused_memory_is_said),
	};

	return cmocka_run_group_tests_name("mcp_token", tests, NULL, NULL);
}
