/* Names in certificates that callers show in a handshake over a BIO pair. */
#include "gateway/tls/tls_names.h"

#include "gateway/tls/tls.h"
#include "tests/unit/gateway/tls/tls_rig.h"

struct fixture {
	struct identity ca, server;
	SSL_CTX *context;
	struct slice ca_pem, server_pem, server_key;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct tls_problem problem;

	assert_non_null(f);
	f->ca = make_identity("CA", NULL, NULL);
	f->server = make_identity("x", "DNS:gateway.example", &f->ca);
	const struct identity *const ids[] = { &f->ca, &f->server };
	f->ca_pem = pem_of(ids, 1);
	f->server_pem = pem_of(ids + 1, 1);
	f->server_key = key_pem_of(&f->server, NULL);
	const struct tls_server_texts texts = { SLICE_INIT("x"), f->server_pem, f->server_key,
						f->ca_pem };
	f->context = tls_server_new(&texts, NULL, &problem);
	assert_non_null(f->context);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	identity_free(&f->ca);
	identity_free(&f->server);
	free((void *)(uintptr_t)f->ca_pem.at);
	free((void *)(uintptr_t)f->server_pem.at);
	free((void *)(uintptr_t)f->server_key.at);
	tls_server_free(f->context);
	free(f);
	return 0;
}

/* What the server reads of `id`. */
static struct tls_names *names_of(const struct fixture *f, const struct identity *id)
{
	SSL_CTX *client = SSL_CTX_new(TLS_client_method());

	assert_non_null(client);
	assert_int_equal(SSL_CTX_use_certificate(client, id->certificate), 1);
	assert_int_equal(SSL_CTX_use_PrivateKey(client, id->key), 1);
	struct pair pair = pair_new(client, f->context);
	pair_open(&pair);
	assert_true(pair.open);
	struct tls_names *names = tls_names_of(pair.server);
	assert_int_equal(ERR_peek_error(), 0);
	pair_free(&pair);
	SSL_CTX_free(client);
	return names;
}

static void uris_and_dns_names_are_read_in_their_order(void **state)
{
	static const struct {
		const char *name, *san, *read; /* "uri:... dns:... ", NULL: nobody */
	} rows[] = {
		{ "a URI", "URI:spiffe://mesh/acme", "uri:spiffe://mesh/acme " },
		{ "a URI in capitals", "URI:Spiffe://Mesh/Acme", "uri:Spiffe://Mesh/Acme " },
		{ "a DNS name is folded", "DNS:Billing.Acme.Example", "dns:billing.acme.example " },
		{ "both, and more than one", "DNS:b,URI:z,URI:a,DNS:c",
		  "dns:b uri:z uri:a dns:c " },
		{ "other kinds are left out", "email:a@b.example,URI:u,IP:127.0.0.1", "uri:u " },
		{ "other kinds alone", "email:a@b.example,IP:127.0.0.1", NULL },
		{ "a space inside", "URI:a b", NULL },
	};
	const struct fixture *f = *state;

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct identity id = make_identity("URI:common", rows[i].san, &f->ca);
		struct tls_names *names = names_of(f, &id);
		char text[256] = "";
		for (size_t n = 0; names != NULL && n < names->count; n++) {
			size_t len = strlen(text);
			(void)snprintf(text + len, sizeof(text) - len, "%s:%.*s ",
				       names->at[n].kind == TLS_NAME_URI ? "uri" : "dns",
				       (int)names->at[n].text.len, names->at[n].text.at);
		}
		if ((names == NULL) != (rows[i].read == NULL) ||
		    (names != NULL && strcmp(text, rows[i].read) != 0))
			fail_msg("%s: %s", rows[i].name, names == NULL ? "nobody" : text);
		tls_names_free(names);
		identity_free(&id);
	}
}

/* A certificate for one URI that is `len` bytes of `text`, repeated `count` times. */
static struct identity with_uris(const struct fixture *f, const char *text, size_t len,
				 size_t count)
{
	struct identity id = make_identity("x", NULL, &f->ca);
	GENERAL_NAMES *all = sk_GENERAL_NAME_new_null();

	for (size_t i = 0; i < count; i++) {
		ASN1_IA5STRING *uri = ASN1_IA5STRING_new();
		GENERAL_NAME *name = GENERAL_NAME_new();
		assert_int_equal(ASN1_STRING_set(uri, text, (int)len), 1);
		GENERAL_NAME_set0_value(name, GEN_URI, uri);
		assert_true(sk_GENERAL_NAME_push(all, name) > 0);
	}
	assert_int_equal(X509_add1_ext_i2d(id.certificate, NID_subject_alt_name, all, 0, 0), 1);
	assert_true(X509_sign(id.certificate, f->ca.key, EVP_sha256()) > 0);
	GENERAL_NAMES_free(all);
	return id;
}

static void names_that_are_none_or_too_much_count_for_nothing(void **state)
{
	static char text[TLS_NAME_LEN_MAX + 1];
	const struct fixture *f = *state;
	(void)memset(text, 'u', sizeof(text));
	const struct {
		const char *name, *text;
		size_t len, count, read;
	} rows[] = {
		{ "a NUL inside", "spiffe://mesh/acme\0.evil", 24, 1, 0 },
		{ "a NUL at the end", "acme", 5, 1, 0 },
		{ "not ASCII", "acm\xc3\xa9", 5, 1, 0 },
		{ "the longest", text, TLS_NAME_LEN_MAX, 1, 1 },
		{ "one byte longer", text, TLS_NAME_LEN_MAX + 1, 1, 0 },
		{ "the most", "acme", 4, TLS_NAMES_MAX, TLS_NAMES_MAX },
		{ "one more", "acme", 4, TLS_NAMES_MAX + 1, 0 },
	};
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct identity id = with_uris(f, rows[i].text, rows[i].len, rows[i].count);
		struct tls_names *names = names_of(f, &id);
		size_t count = names == NULL ? 0 : names->count;
		if (count != rows[i].read)
			fail_msg("%s: %zu names", rows[i].name, count);
		tls_names_free(names);
		identity_free(&id);
	}
}

static void who_shows_no_certificate_has_no_name(void **state)
{
	const struct fixture *f = *state;
	SSL_CTX *client = SSL_CTX_new(TLS_client_method());
	struct pair pair = pair_new(client, f->context);

	pair_open(&pair);
	assert_true(pair.open);
	assert_null(tls_names_of(pair.server));
	pair_free(&pair);
	SSL_CTX_free(client);
}

/* As when a session is resumed after the certificate's end: the handshake does not look. */
static void a_certificate_that_has_expired_names_nobody(void **state)
{
	const struct fixture *f = *state;
	struct identity id = make_identity("x", "URI:u", &f->ca);
	X509_VERIFY_PARAM *param = SSL_CTX_get0_param(f->context);

	struct tls_names *names =
		names_of(f, &id); /* it is good for some time yet, and says how long */
	assert_non_null(names);
	assert_int_equal(ASN1_TIME_cmp_time_t(X509_get0_notAfter(id.certificate),
					      (time_t)names->good_until_s),
			 0);
	tls_names_free(names);
	assert_non_null(X509_gmtime_adj(X509_getm_notAfter(id.certificate), -1));
	assert_true(X509_sign(id.certificate, f->ca.key, EVP_sha256()) > 0);
	assert_int_equal(X509_VERIFY_PARAM_set_flags(param, X509_V_FLAG_NO_CHECK_TIME), 1);
	assert_null(names_of(f, &id));
	assert_int_equal(X509_VERIFY_PARAM_clear_flags(param, X509_V_FLAG_NO_CHECK_TIME), 1);
	identity_free(&id);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(uris_and_dns_names_are_read_in_their_order),
		cmocka_unit_test(names_that_are_none_or_too_much_count_for_nothing),
		cmocka_unit_test(who_shows_no_certificate_has_no_name),
		cmocka_unit_test(a_certificate_that_has_expired_names_nobody),
	};

	return cmocka_run_group_tests_name("tls_names", tests, set_up, tear_down);
}
