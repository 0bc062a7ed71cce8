/* Client contexts against an OpenSSL server on the other end of a BIO pair. */
#include "gateway/tls/tls.h"

#include "tests/unit/gateway/tls/tls_rig.h"

struct fixture {
	struct identity ca, other_ca, middle;
	struct identity name, wild, ip, old_style, other, below_middle, below_other;
	struct slice ca_pem, other_pem, both_pem, middle_pem;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->ca = make_identity("CA", NULL, NULL);
	f->other_ca = make_identity("Other CA", NULL, NULL);
	f->middle = make_identity("Middle CA", NULL, &f->ca);
	f->name = make_identity("x", "DNS:api.example", &f->ca);
	f->wild = make_identity("x", "DNS:*.wild.example", &f->ca);
	f->ip = make_identity("x", "IP:127.0.0.1,IP:::1", &f->ca);
	/* a name in CN only counts where there is no DNS SAN at all, as for an IP SAN */
	f->old_style = make_identity("127.0.0.1", "DNS:127.0.0.1", &f->ca);
	f->other = make_identity("api.example", "DNS:evil.example", &f->ca);
	f->below_middle = make_identity("x", "DNS:api.example", &f->middle);
	f->below_other = make_identity("x", "DNS:api.example", &f->other_ca);
	const struct identity *const both[] = { &f->other_ca, &f->ca };
	const struct identity *const middle[] = { &f->middle };
	f->ca_pem = pem_of(both + 1, 1);
	f->other_pem = pem_of(both, 1);
	f->both_pem = pem_of(both, 2);
	f->middle_pem = pem_of(middle, 1);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;
	struct identity *const ids[] = { &f->ca,           &f->other_ca,   &f->middle,    &f->name,
					 &f->wild,         &f->ip,         &f->old_style, &f->other,
					 &f->below_middle, &f->below_other };

	for (size_t i = 0; i < COUNT_OF(ids); i++)
		identity_free(ids[i]);
	free((void *)f->ca_pem.at);
	free((void *)f->other_pem.at);
	free((void *)f->both_pem.at);
	free((void *)f->middle_pem.at);
	free(f);
	return 0;
}

/* ---- handshakes ---- */

static SSL_CTX *client_for(const char *host, struct slice ca_pem)
{
	char problem[128] = "";
	SSL_CTX *ctx = tls_client_new(host, ca_pem, problem, sizeof(problem));

	if (ctx == NULL)
		fail_msg("%s", problem);
	return ctx;
}

/* The handshake; `session` may be NULL, then the context's own is offered. */
static struct pair connect_pair(SSL_CTX *client, SSL_CTX *server, SSL_SESSION *session)
{
	struct pair pair = pair_new(client, server);

	if (session != NULL)
		assert_int_equal(SSL_set_session(pair.client, session), 1);
	else
		tls_client_resume(client, pair.client);
	pair_open(&pair);
	return pair;
}

/* ---- tests ---- */

static void only_the_expected_name_under_the_expected_ca_gets_a_connection(void **state)
{
	const struct fixture *f = *state;
	const struct {
		const char *name, *host;
		const struct identity *server;
		struct slice ca;
		bool accepted;
	} rows[] = {
		{ "the right name", "api.example", &f->name, f->ca_pem, true },
		{ "in capitals", "API.Example", &f->name, f->ca_pem, true },
		{ "another name", "api.example", &f->other, f->ca_pem, false },
		{ "a name below", "x.api.example", &f->name, f->ca_pem, false },
		{ "a name above", "example", &f->name, f->ca_pem, false },
		{ "a wildcard", "a.wild.example", &f->wild, f->ca_pem, true },
		{ "a wildcard and two labels", "a.b.wild.example", &f->wild, f->ca_pem, false },
		{ "another CA", "api.example", &f->name, f->other_pem, false },
		{ "signed by another CA", "api.example", &f->below_other, f->ca_pem, false },
		{ "the second CA of two", "api.example", &f->name, f->both_pem, true },
		{ "the first CA of two", "api.example", &f->below_other, f->both_pem, true },
		{ "an intermediate CA alone", "api.example", &f->below_middle, f->middle_pem,
		  true },
		{ "IPv4", "127.0.0.1", &f->ip, f->ca_pem, true },
		{ "IPv6", "::1", &f->ip, f->ca_pem, true },
		{ "IPv6 written out", "0:0:0:0:0:0:0:1", &f->ip, f->ca_pem, true },
		{ "another IPv4", "127.0.0.2", &f->ip, f->ca_pem, false },
		{ "an address as DNS name", "127.0.0.1", &f->old_style, f->ca_pem, false },
		{ "a name where only addresses are", "api.example", &f->ip, f->ca_pem, false },
	};
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		for (size_t v = 0; v < COUNT_OF(versions); v++) {
			SSL_CTX *client = client_for(rows[i].host, rows[i].ca);
			SSL_CTX *server = bare_server(rows[i].server, versions[v].number);
			/* the second try may not profit from the first */
			for (int attempt = 0; attempt < 2; attempt++) {
				struct pair pair = connect_pair(client, server, NULL);
				if (pair.open != rows[i].accepted)
					fail_msg("%s, TLS %s, try %d: open %d, verified: %s",
						 rows[i].name, versions[v].name, attempt, pair.open,
						 X509_verify_cert_error_string(
							 SSL_get_verify_result(pair.client)));
				pair_free(&pair);
			}
			tls_client_free(client);
			SSL_CTX_free(server);
		}
	}
}

static void the_second_connection_resumes_the_first_ones_session(void **state)
{
	const struct fixture *f = *state;

	for (size_t v = 0; v < COUNT_OF(versions); v++) {
		SSL_CTX *client = client_for("api.example", f->ca_pem);
		SSL_CTX *server = bare_server(&f->name, versions[v].number);
		for (int n = 0; n < 4; n++) {
			struct pair pair = connect_pair(client, server, NULL);
			assert_true(pair.open);
			assert_int_equal(SSL_version(pair.client), versions[v].number);
			assert_int_equal(pair.resumed, n > 0);
			pair_free(&pair);
		}
		tls_client_free(client);
		SSL_CTX_free(server);
	}
}

static void a_session_of_another_host_is_refused_though_the_server_would_resume_it(void **state)
{
	const struct fixture *f = *state;

	for (size_t v = 0; v < COUNT_OF(versions); v++) {
		SSL_CTX *right = client_for("api.example", f->ca_pem);
		SSL_CTX *wrong = client_for("evil.example", f->ca_pem);
		SSL_CTX *server = bare_server(&f->name, versions[v].number);
		struct pair first = connect_pair(right, server, NULL);
		assert_true(first.open);
		SSL_SESSION *session = SSL_get1_session(first.client);
		pair_free(&first);

		struct pair honest = connect_pair(right, server, session);
		assert_true(honest.open && honest.resumed);
		pair_free(&honest);
		struct pair stolen = connect_pair(wrong, server, session);
		assert_false(stolen.open);
		pair_free(&stolen);

		SSL_SESSION_free(session);
		tls_client_free(right);
		tls_client_free(wrong);
		SSL_CTX_free(server);
	}
}

static void a_server_that_forgot_the_session_gets_a_full_handshake(void **state)
{
	const struct fixture *f = *state;

	for (size_t v = 0; v < COUNT_OF(versions); v++) {
		SSL_CTX *client = client_for("api.example", f->ca_pem);
		SSL_CTX *before = bare_server(&f->name, versions[v].number);
		SSL_CTX *after = bare_server(&f->name, versions[v].number);
		struct pair pair = connect_pair(client, before, NULL);
		assert_true(pair.open);
		pair_free(&pair);
		pair = connect_pair(client, after, NULL);
		assert_true(pair.open);
		assert_false(pair.resumed);
		pair_free(&pair);
		tls_client_free(client);
		SSL_CTX_free(before);
		SSL_CTX_free(after);
	}
}

static void a_connection_may_outlive_its_context(void **state)
{
	const struct fixture *f = *state;
	SSL_CTX *client = client_for("api.example", f->ca_pem);
	SSL_CTX *server = bare_server(&f->name, TLS1_3_VERSION);
	struct pair pair = connect_pair(client, server, NULL);
	char byte;

	assert_true(pair.open);
	tls_client_free(client);
	/* one more ticket comes for a context that is gone */
	assert_int_equal(SSL_new_session_ticket(pair.server), 1);
	assert_int_equal(SSL_write(pair.server, "y", 1), 1);
	assert_int_equal(SSL_read(pair.client, &byte, 1), 1);
	pair_free(&pair);
	SSL_CTX_free(server);
}

static void tls_1_1_is_refused(void **state)
{
	const struct fixture *f = *state;
	SSL_CTX *client = client_for("api.example", f->ca_pem);
	SSL_CTX *server = bare_server(&f->name, TLS1_1_VERSION);
	SSL_CTX_set_security_level(client, 0); /* else that would refuse it already */
	struct pair pair = connect_pair(client, server, NULL);

	assert_false(pair.open);
	pair_free(&pair);
	tls_client_free(client);
	SSL_CTX_free(server);
}

static void without_a_private_ca_the_systems_store_decides(void **state)
{
	const struct fixture *f = *state;
	SSL_CTX *client = client_for("api.example", slice_of(NULL, 0));
	SSL_CTX *server = bare_server(&f->name, TLS1_3_VERSION);
	struct pair pair = connect_pair(client, server, NULL);

	assert_false(pair.open);
	assert_int_equal(SSL_get_verify_result(pair.client),
			 X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY);
	pair_free(&pair);
	tls_client_free(client);
	SSL_CTX_free(server);
}

static void a_ca_file_that_cannot_be_used_is_refused_in_words(void **state)
{
	const struct fixture *f = *state;
	char broken[4096];
	assert_true(f->both_pem.len < sizeof(broken));
	(void)memcpy(broken, f->both_pem.at, f->both_pem.len);
	/* the second certificate loses its inside */
	char *second = strstr(broken + 10, "-----BEGIN");
	assert_non_null(second);
	(void)memset(second + 64, '!', 64);
	const struct {
		const char *name;
		struct slice pem;
		const char *says;
	} rows[] = {
		{ "empty", SLICE_INIT(""), "no certificate" },
		{ "not PEM", SLICE_INIT("hello\n"), "no certificate" },
		{ "half a certificate", slice_of(f->ca_pem.at, f->ca_pem.len / 2),
		  "cannot be used" },
		{ "a broken second one", slice_of(broken, f->both_pem.len), "cannot be used" },
	};
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		char problem[128] = "";
		if (tls_client_new("x", rows[i].pem, problem, sizeof(problem)) != NULL)
			fail_msg("%s: was taken", rows[i].name);
		if (strstr(problem, rows[i].says) == NULL)
			fail_msg("%s: says \"%s\"", rows[i].name, problem);
		assert_int_equal(ERR_peek_error(), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_the_expected_name_under_the_expected_ca_gets_a_connection),
		cmocka_unit_test(the_second_connection_resumes_the_first_ones_session),
		cmocka_unit_test(
			a_session_of_another_host_is_refused_though_the_server_would_resume_it),
		cmocka_unit_test(a_server_that_forgot_the_session_gets_a_full_handshake),
		cmocka_unit_test(a_connection_may_outlive_its_context),
		cmocka_unit_test(tls_1_1_is_refused),
		cmocka_unit_test(without_a_private_ca_the_systems_store_decides),
		cmocka_unit_test(a_ca_file_that_cannot_be_used_is_refused_in_words),
	};
	return cmocka_run_group_tests_name("tls", tests, set_up, tear_down);
}
