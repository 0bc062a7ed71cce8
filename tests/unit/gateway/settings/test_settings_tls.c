/* Certificates of listeners, and names of tenants, in configurations made on the spot. */
#include "gateway/tls/tls.h"
#include "tests/unit/gateway/settings/settings_rig.h"
#include "tests/unit/gateway/tls/tls_rig.h"

#include <string.h>

struct fixture {
	struct identity ca, one, two;
	struct slice ca_pem, one_pem, one_key, two_pem, two_key, encrypted;
};

static struct slice one_pem(const struct identity *id)
{
	const struct identity *const ids[] = { id };

	return pem_of(ids, 1);
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->ca = make_identity("CA", NULL, NULL);
	f->one = make_identity("x", "DNS:gateway.example", &f->ca);
	f->two = make_identity("x", "DNS:gateway.example", &f->ca);
	f->ca_pem = one_pem(&f->ca);
	f->one_pem = one_pem(&f->one);
	f->one_key = key_pem_of(&f->one, NULL);
	f->two_pem = one_pem(&f->two);
	f->two_key = key_pem_of(&f->two, NULL);
	f->encrypted = key_pem_of(&f->one, "hush");
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;
	const struct slice *const texts[] = { &f->ca_pem,  &f->one_pem, &f->one_key,
					      &f->two_pem, &f->two_key, &f->encrypted };

	identity_free(&f->ca);
	identity_free(&f->one);
	identity_free(&f->two);
	for (size_t i = 0; i < COUNT_OF(texts); i++)
		free((void *)(uintptr_t)texts[i]->at);
	free(f);
	return 0;
}

enum { FILES = 7 };

/* A configuration that begins with `listen`, and the files that it may name. */
static void load(const struct fixture *f, struct rig *rig, const char *listen)
{
	char text[2048];
	int len = snprintf(text, sizeof(text), "%s" RIG_PROVIDERS RIG_MODELS, listen);
	const struct config_file files[FILES] = {
		{ SLICE("conf/sluice.yaml"), slice_of(text, (size_t)len) },
		{ SLICE("conf/ca.crt"), f->ca_pem },
		{ SLICE("conf/one.crt"), f->one_pem },
		{ SLICE("conf/one.key"), f->one_key },
		{ SLICE("conf/two.crt"), f->two_pem },
		{ SLICE("conf/two.key"), f->two_key },
		{ SLICE("conf/encrypted.key"), f->encrypted },
	};

	assert_true(len > 0 && (size_t)len < sizeof(text));
	rig_load_files(rig, files, FILES);
}

static void a_listener_with_tls_gets_a_context_and_its_files_are_kept(void **state)
{
	const struct fixture *f = *state;
	struct rig rig;

	load(f, &rig,
	     "listen:\n"
	     "  - {address: \"127.0.0.1:1\"}\n"
	     "  - {address: \"127.0.0.1:2\", tls: {cert: one.crt, key: one.key}}\n"
	     "  - {address: \"127.0.0.1:3\", tls: {cert: two.crt, key: two.key, client_ca: "
	     "ca.crt}}\n");
	assert_string_equal(rig.problems, "");
	const struct listen_address *listen = rig.config->listen;
	assert_null(listen[0].tls);
	assert_non_null(listen[1].tls);
	assert_non_null(listen[2].tls);
	assert_int_equal(X509_cmp(SSL_CTX_get0_certificate(listen[1].tls), f->one.certificate), 0);
	assert_int_equal(X509_cmp(SSL_CTX_get0_certificate(listen[2].tls), f->two.certificate), 0);
	assert_int_equal(SSL_CTX_get_verify_mode(listen[1].tls), SSL_VERIFY_NONE);
	assert_int_equal(SSL_CTX_get_verify_mode(listen[2].tls), SSL_VERIFY_PEER);
	assert_int_equal(rig.config->file_count, 6);
	rig_fini(&rig);
}

static void what_does_not_fit_together_is_named_with_its_line(void **state)
{
	static const struct {
		const char *tls, *problem;
	} rows[] = {
		{ "{cert: one.crt, key: two.key}",
		  "key: conf/two.key cannot be used (it is not the certificate's); name a PEM file "
		  "with the key of cert, without a passphrase\n" },
		{ "{cert: one.crt, key: encrypted.key}",
		  "key: conf/encrypted.key cannot be used (it is encrypted); name a PEM file with "
		  "the key of cert, without a passphrase\n" },
		{ "{cert: one.key, key: one.crt}",
		  "cert: conf/one.key cannot be used (it holds no certificate that can be used: no "
		  "start line); name a PEM file with the certificate, then its chain\n" },
		{ "{cert: one.crt, key: one.key, client_ca: one.key}",
		  "client_ca: conf/one.key cannot be used (the CA file has no certificate in PEM "
		  "form); name a PEM file with certificates of authorities\n" },
		{ "{cert: one.crt, key: one.key, client_ca: nowhere.crt}",
		  "client_ca: conf/nowhere.crt cannot be read (it is not part of the kept "
		  "configuration); name a file that this process may read\n" },
	};
	const struct fixture *f = *state;
	char listen[256], problem[512];
	struct rig rig;

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		(void)snprintf(listen, sizeof(listen),
			       "listen:\n  - {address: \"127.0.0.1:1\", tls: %s}\n", rows[i].tls);
		(void)snprintf(problem, sizeof(problem), "conf/sluice.yaml:2: listen[0].tls.%s",
			       rows[i].problem);
		load(f, &rig, listen);
		assert_null(rig.config);
		assert_string_equal(rig.problems, problem);
		rig_fini(&rig);
	}
}

static void certificates_may_change_by_reload_but_not_whether_there_is_tls(void **state)
{
	static const struct {
		const char *before, *after, *restart;
	} rows[] = {
		{ "tls: {cert: one.crt, key: one.key}", "tls: {cert: two.crt, key: two.key}",
		  NULL },
		{ "tls: {cert: one.crt, key: one.key}",
		  "tls: {cert: one.crt, key: one.key, client_ca: ca.crt}", NULL },
		{ "tls: {cert: one.crt, key: one.key}", "", "listen" },
		{ "", "tls: {cert: one.crt, key: one.key}", "listen" },
	};
	const struct fixture *f = *state;
	struct rig before, after;
	char text[256];
	uint32_t line;

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		(void)snprintf(text, sizeof(text), "listen:\n  - {address: \"127.0.0.1:1\", %s}\n",
			       rows[i].before);
		load(f, &before, text);
		(void)snprintf(text, sizeof(text), "listen:\n  - {address: \"127.0.0.1:1\", %s}\n",
			       rows[i].after);
		load(f, &after, text);
		assert_non_null(before.config);
		assert_non_null(after.config);
		const char *key = settings_needs_restart(before.config, after.config, &line);
		if (key != rows[i].restart &&
		    (key == NULL || rows[i].restart == NULL || strcmp(key, rows[i].restart) != 0))
			fail_msg("%s, then %s: %s", rows[i].before, rows[i].after,
				 key == NULL ? "no restart" : key);
		rig_fini(&before);
		rig_fini(&after);
	}
}

static void tenants_have_the_names_that_are_given_or_else_their_id(void **state)
{
	const struct fixture *f = *state;
	struct rig rig;

	load(f, &rig,
	     "identity: {certificates: {san: dns}}\n"
	     "tenants:\n"
	     "  - {id: acme, names: [\"spiffe://mesh/acme\", billing.acme.example]}\n"
	     "  - {id: beta, names: []}\n"
	     "  - {id: gamma}\n");
	assert_string_equal(rig.problems, "");
	assert_int_equal(rig.config->certificates_by, TLS_NAME_DNS);
	const struct tenants *tenants = &rig.config->tenants;
	const struct tenant *acme = tenants_by_id(tenants, SLICE("acme"));
	assert_ptr_equal(tenants_by_name(tenants, SLICE("spiffe://mesh/acme")), acme);
	assert_ptr_equal(tenants_by_name(tenants, SLICE("billing.acme.example")), acme);
	assert_null(tenants_by_name(tenants, SLICE("acme")));
	assert_non_null(tenants_by_name(tenants, SLICE("beta")));
	assert_non_null(tenants_by_name(tenants, SLICE("gamma")));
	rig_fini(&rig);

	load(f, &rig, "");
	assert_int_equal(rig.config->certificates_by, TLS_NAME_URI);
	rig_fini(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_listener_with_tls_gets_a_context_and_its_files_are_kept),
		cmocka_unit_test(what_does_not_fit_together_is_named_with_its_line),
		cmocka_unit_test(certificates_may_change_by_reload_but_not_whether_there_is_tls),
		cmocka_unit_test(tenants_have_the_names_that_are_given_or_else_their_id),
	};

	return cmocka_run_group_tests_name("settings_tls", tests, set_up, tear_down);
}
